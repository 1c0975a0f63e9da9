"""The history in a metadata file, whoever wrote it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lakebound.tables.iceberg.history import IcebergHistory, history_of_body
from lakebound.tables.places import local_places


def history(body: dict[str, Any]) -> IcebergHistory:
    return history_of_body(body, "iceberg:shop.orders", local_places(Path("/nowhere"), Path("/nowhere")))


def snapshots(*numbers: int, **more: Any) -> list[dict[str, Any]]:
    """Return snapshots each of which stands on the one before."""
    parents = (None, *numbers)
    return [
        {"snapshot-id": number, "timestamp-ms": number, "parent-snapshot-id": parent, **more}
        for number, parent in zip(numbers, parents, strict=False)
    ]


def test_snapshots_without_sequence_numbers_are_in_the_order_of_the_file() -> None:
    found = history({"current-snapshot-id": 5, "snapshots": snapshots(9, 7, 5)})
    assert [commit.version for commit in found.commits()] == ["5", "7", "9"]
    assert [commit.version for commit in found.ancestry()] == ["5", "7", "9"]
    assert {commit.number for commit in found.commits()} == {0}


def test_an_empty_metadata_file_has_no_commit() -> None:
    for body in ({}, {"current-snapshot-id": -1, "snapshots": []}, {"current-snapshot-id": None, "snapshots": None}):
        found = history(body)
        assert found.current is None and list(found.commits()) == list(found.ancestry()) == list(found.versions()) == []


def test_what_is_logged_and_has_expired_was_no_version_that_is_kept() -> None:
    log = [{"snapshot-id": number, "timestamp-ms": at_ms} for number, at_ms in ((1, 10), (2, 20), (3, 30), (2, 40))]
    found = history({"current-snapshot-id": 2, "snapshots": snapshots(2, 3), "snapshot-log": log})
    assert found.current_since == ((20, "2"), (30, "3"), (40, "2"))
    assert [(one.version, one.committed_at_ms) for one in found.versions()] == [("2", 40), ("3", 30), ("2", 20)]


def test_what_a_branch_or_tag_names_is_referenced() -> None:
    refs = {"main": {"snapshot-id": 2}, "audit": {"snapshot-id": 1}}
    found = history({"current-snapshot-id": 3, "snapshots": snapshots(1, 2, 3), "refs": refs})
    assert [commit.version for commit in found.commits() if commit.is_referenced] == ["2", "1"]


def test_an_operation_that_is_not_known_is_another() -> None:
    for said, meant in (("append", "append"), ("delete", "overwrite"), ("replace", "replace"), ("", "other")):
        (commit,) = history({"snapshots": snapshots(1, summary={"operation": said})}).commits()
        assert commit.operation == meant
