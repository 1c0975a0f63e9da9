"""Which code landed which offsets, and which schemas entries name, is shown per table."""

from __future__ import annotations

import json

import pytest

from lakebound.cli.sources import print_sources
from lakebound.cli.tables import print_entries
from lakebound.ledger.entry import Entry, TopicOffsets
from lakebound.ledger.sources import SourceVersion
from lakebound.operations.redo.made_by import made_by
from lakebound.tables.table import CommittedEntry

ENTRY = Entry(
    kind="land",
    pipeline="orders",
    epoch=1,
    commit="c",
    coverage={"orders": TopicOffsets(topic_id="id", partitions={0: ((0, 9),)})},
    sources=(SourceVersion(hash="abc", revision="0123", since_ms=1_000, first_offsets={"orders": {0: 4}}),),
)


def test_versions_are_shown_with_their_offsets(capsys: pytest.CaptureFixture[str]) -> None:
    print_sources({"delta:shop.orders": made_by(ENTRY, ()), "iceberg:shop.orders": None}, json=False)
    lines = capsys.readouterr().out.splitlines()
    shown = [line.split() for line in lines]
    first, second = [row for row in shown if "orders/0" in row]
    assert first[2:] == ["abc", "0123", "5", "orders/0", "[4,", "9)"]
    assert second == ["-", "not", "known", "-", "4", "orders/0", "[0,", "4)"]
    assert "iceberg:shop.orders: no table yet" in lines


def test_what_a_redo_made_is_its_versions(capsys: pytest.CaptureFixture[str]) -> None:
    redo = {"kind": "redo", "commit": "r", "redo_source": "def", "decision": "plan", "newest_redo": "r"}
    done = ENTRY.model_copy(update=redo | {"redoes": {"orders": TopicOffsets(topic_id="id", partitions={0: ((2, 6),)})}})
    print_sources({"delta:shop.orders": made_by(done, [CommittedEntry("2", 2_000, done)])}, json=True)
    found = json.loads(capsys.readouterr().out)
    assert [(one["source"], one["redone"], one["offsets"]["orders"]["partitions"]["0"]) for one in found] == [
        ("def", True, [[2, 6]]),
        ("abc", False, [[6, 9]]),
        (None, False, [[0, 2]]),
    ]
    print_sources({"delta:shop.orders": made_by(done, [CommittedEntry("2", 2_000, done)])}, json=False)
    assert "delta:shop.orders: 3 versions of the code" in capsys.readouterr().out.splitlines()


def test_a_program_gets_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    print_sources({"delta:shop.orders": made_by(ENTRY, ()), "iceberg:shop.orders": None}, json=True)
    found = json.loads(capsys.readouterr().out)
    assert [(one["table"], one["source"], one["records"]) for one in found] == [
        ("delta:shop.orders", "abc", 5),
        ("delta:shop.orders", None, 4),
    ]


def test_the_ledger_shows_which_schemas_the_newest_entry_names(capsys: pytest.CaptureFixture[str]) -> None:
    older = ENTRY.model_copy(update={"schemas": {"shop": {"6": "cc"}}})
    newer = ENTRY.model_copy(update={"schemas": {"shop": {"7": "ab", "d9b6-guid": "cd"}}})
    print_entries([CommittedEntry("2", 2_000, newer), CommittedEntry("1", 1_000, older)])
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1].endswith("registry shop that the newest entry names, by id and fingerprint: 7 (ab), d9b6-guid (cd)")
    assert sum("registry" in line for line in lines) == 1
