"""Copies in the quarantine: there once, the ledger as it was, and no proof or repair takes them for quarantined records."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pytest
from tests.support.tables.local_tables import PIPELINE, TOPIC, TOPIC_ID, Lander, genesis, lander, offsets

from lakebound.errors import CommitUnknownError
from lakebound.inspection.proof.offset_arrays import index_rows, size
from lakebound.inspection.validation import quarantine_copies
from lakebound.inspection.validation.quarantine_copies import NoQuarantineError, commit_copies, has_copies, without_copies
from lakebound.ledger.entry import Entry, new_commit_id
from lakebound.ledger.erased import ErasedRows
from lakebound.operations.replay.take_back import nothing_stands_for
from lakebound.spec.table import TableSpec
from lakebound.tables.commit import commit_entry
from lakebound.tables.datafiles import write_data_files
from lakebound.tables.places import Places
from lakebound.tables.table import KAFKA_TYPE, DataFile, Table, open_table

SCHEMA = pa.schema([pa.field("_kafka", KAFKA_TYPE), pa.field("reason", pa.string())])


@pytest.fixture
def quarantine(spec: TableSpec, at: Places) -> Table:
    table = open_table(spec, at)
    table.create(SCHEMA, genesis())
    lander(spec, at).open()
    return open_table(spec, at)


def copies(table: Table, *at_offsets: int, ordinal: int = -1) -> list[DataFile]:
    place = {"topic": TOPIC, "topic_id": TOPIC_ID, "partition": 0, "timestamp": 1, "ordinal": ordinal}
    rows = [{"_kafka": {**place, "offset": offset}, "reason": "totals"} for offset in at_offsets]
    return write_data_files(pa.Table.from_pylist(rows, schema=SCHEMA), table.layout(), "copy")


def test_a_commit_of_copies_is_there_once_and_changes_nothing_of_the_ledger(quarantine: Table, at: Places) -> None:
    before, commit, since_ms = quarantine.read_ledger(), new_commit_id(), int(time.time() * 1000)
    assert not has_copies(quarantine, commit, since_ms)
    commit_copies(quarantine, PIPELINE, copies(quarantine, 3, 5), commit, attempts=4)
    assert has_copies(open_table(quarantine.spec, at), commit, since_ms)
    after = open_table(quarantine.spec, at).read_ledger()
    assert after.entry == before.entry and after.version != before.version
    assert quarantine.scan_kafka()["offset"].to_pylist() == [3, 5]


def test_a_running_stream_goes_on_over_it_and_it_over_the_stream(quarantine: Table, at: Places) -> None:
    app: Lander = lander(quarantine.spec, at)
    stale = open_table(quarantine.spec, at)
    stale.read_ledger()
    app.land(0, 10, copies(quarantine, 2, ordinal=0))
    commit_copies(stale, PIPELINE, copies(quarantine, 4), new_commit_id(), attempts=4)
    app.land(10, 20, copies(quarantine, 12, ordinal=0))
    view = open_table(quarantine.spec, at).read_ledger()
    assert view.coverage == offsets(0, 20)
    kinds = [one.entry.kind for one in open_table(quarantine.spec, at).entries()][:3]
    assert kinds == ["land", "carry", "land"]


def lose_the_lease(table: Table, at: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the next commit take effect and an application of a later epoch follow it; nobody answers the commit."""
    commit = table.commit

    def unheard(files: Sequence[DataFile], entry: Entry) -> str:
        monkeypatch.setattr(table, "commit", commit)
        commit(files, entry)
        lander(table.spec, at, epoch=entry.epoch + 1).open()
        raise ConnectionError("no answer")

    monkeypatch.setattr(table, "commit", unheard)


def leave_it_unknown(table: Table, at: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the next commit take effect, and its outcome be unknown."""

    def unknown(table: Table, *arguments: Any, **named: Any) -> None:
        monkeypatch.setattr(quarantine_copies, "commit_entry", commit_entry)
        commit_entry(table, *arguments, **named)
        raise CommitUnknownError(table.spec.id, 1, "no answer")

    monkeypatch.setattr(quarantine_copies, "commit_entry", unknown)


@pytest.mark.parametrize("fail", [lose_the_lease, leave_it_unknown])
def test_a_commit_that_took_effect_unheard_is_not_made_again(
    quarantine: Table, at: Places, monkeypatch: pytest.MonkeyPatch, fail: Callable[[Table, Places, pytest.MonkeyPatch], None]
) -> None:
    commit = new_commit_id()
    fail(quarantine, at, monkeypatch)
    commit_copies(quarantine, PIPELINE, copies(quarantine, 3, 5), commit, attempts=4)
    table = open_table(quarantine.spec, at)
    table.read_ledger()
    assert [one.entry.commit for one in table.entries()].count(commit) == 1
    assert table.scan_kafka()["offset"].to_pylist() == [3, 5]


def test_proofs_and_repairs_do_not_see_them(quarantine: Table, at: Places) -> None:
    app = lander(quarantine.spec, at)
    app.land(0, 10, copies(quarantine, 2, ordinal=0))
    commit_copies(quarantine, PIPELINE, copies(quarantine, 2, 4), new_commit_id(), attempts=4)
    rows = quarantine.scan_kafka()
    assert len(rows) == 3
    assert size(index_rows(without_copies(rows)).records) == 1
    assert nothing_stands_for(offsets(0, 5), quarantine, erased=ErasedRows())[TOPIC].partitions == {0: ((0, 2), (3, 5))}


def test_without_a_quarantine_nothing_is_copied(spec: TableSpec, at: Places) -> None:
    with pytest.raises(NoQuarantineError):
        has_copies(open_table(spec, at), new_commit_id(), 0)
