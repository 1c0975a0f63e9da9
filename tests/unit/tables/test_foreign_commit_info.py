"""What other writers may put into a Delta commit: nothing of it keeps anybody from reading the table's ledger."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lakebound.storage.location import location_of
from lakebound.tables.delta.foreign_changes import change_of, foreign_changes
from lakebound.tables.delta.history import DeltaHistory

ADD = {"path": "theirs.parquet", "dataChange": True, "stats": '{"numRecords": 3}'}
INFOS: list[dict[str, Any]] = [
    {"timestamp": "2026-01-31T00:00:00Z"},
    {"timestamp": {"seconds": 1}},
    {"timestamp": "", "operationMetrics": "none", "operationParameters": "none", "userMetadata": {"a": 1}},
    {"timestamp": 1e400, "operationMetrics": {"num_deleted_rows": None}},
    {"inCommitTimestamp": [1], "operation": {"name": "WRITE"}, "userName": 7},
    {},
]


@pytest.mark.parametrize("info", INFOS, ids=range(len(INFOS)))
def test_a_commit_is_read_whatever_its_information_says(info: dict[str, Any], tmp_path: Path) -> None:
    actions = [{"commitInfo": info}, {"add": ADD, "remove": None, "txn": None}]
    log = tmp_path / "_delta_log"
    log.mkdir()
    (log / f"{0:020d}.json").write_text("\n".join(json.dumps(one) for one in actions))
    folder = location_of(str(tmp_path), None)
    [commit] = DeltaHistory(folder, 0).commits()
    assert (commit.committed_at_ms, commit.entry, commit.parent, commit.operation) == (0, None, None, "other")
    [change] = foreign_changes(folder, -1, 0)
    assert (change.version, change.at_ms, change.added, change.removed) == ("0", 0, 3, 0)


def test_a_moment_is_a_number_of_milliseconds() -> None:
    for told in (1_700_000_000_000, "1700000000000", 1.7e12):
        change = change_of(1, {"timestamp": told}, [{"add": ADD}])
        assert change is not None and change.at_ms == 1_700_000_000_000


def test_a_vector_without_a_count_is_no_hindrance() -> None:
    change = change_of(1, {}, [{"add": {**ADD, "deletionVector": {"cardinality": None}}}])
    assert change is not None and change.added == 3
