"""What recovery asks of the commit: a ``reset`` where no entry counts, and no batch on top of a table that went back."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from tests.support.tables.foreign_hands import forget_entries, take_back
from tests.support.tables.local_tables import PIPELINE, TOPIC, Lander, landed_offsets, lander, make_table, offsets

from lakebound.errors import ForeignTableError, LeaseLostError, NoLedgerError, TableRestoredError
from lakebound.ledger.entry import Entry, Offsets, TopicOffsets, new_commit_id
from lakebound.spec.table import TableSpec
from lakebound.tables.commit import Committed, LedgerWentBackError, Waits, commit_entry
from lakebound.tables.places import Places
from lakebound.tables.table import DataFile, Table, open_table


@pytest.fixture
def app(spec: TableSpec, at: Places) -> Lander:
    """An application of epoch 1 that has landed [0, 10), [10, 20) and [20, 30)."""
    make_table(spec, at)
    opened = lander(spec, at)
    opened.open()
    for start in (0, 10, 20):
        opened.land(start, start + 10)
    return opened


def reset(table: Table, coverage: Offsets, *, epoch: int, pipeline: str = PIPELINE, former: Offsets | None = None) -> Committed:
    """Commit a ``reset`` with this coverage."""
    earlier = {topic: (held,) for topic, held in (former or {}).items()}
    draft = Entry(kind="reset", pipeline=pipeline, epoch=epoch, commit=new_commit_id(), coverage=coverage, former=earlier)
    view = table.read_ledger(to_reset=True)
    return commit_entry(
        table, view, [], draft, own_epoch=epoch, check_lease=lambda: None, attempts=3, waits=Waits(between=lambda _: None)
    )


def version_of(app: Lander, end: int) -> str:
    """Return the version whose entry covers [0, end)."""
    return next(found.version for found in app.table.entries() if found.entry.coverage == offsets(0, end))


def test_a_reset_makes_a_table_without_entries_writable_again(app: Lander, spec: TableSpec, at: Places) -> None:
    forget_entries(spec, at)
    table = open_table(spec, at)
    with pytest.raises(NoLedgerError):
        table.read_ledger()
    reset(table, offsets(0, 30), epoch=2)
    after = lander(spec, at, epoch=3)
    assert after.view.coverage == offsets(0, 30)
    after.land(30, 40)
    assert landed_offsets(after.table) == list(range(40))


def test_a_reset_makes_a_table_that_was_restored_by_hand_writable_again(app: Lander, spec: TableSpec, at: Places) -> None:
    take_back(spec, at, version_of(app, 10))
    table = open_table(spec, at)
    if spec.format == "delta":
        with pytest.raises(TableRestoredError):
            table.read_ledger()
    assert table.read_ledger(to_reset=True).epoch == 1
    reset(table, offsets(0, 10), epoch=2)
    after = lander(spec, at, epoch=3)
    after.land(10, 40)
    assert landed_offsets(after.table) == list(range(40))


def test_a_reset_whose_commit_answers_with_an_error_stands_there_once(
    app: Lander, spec: TableSpec, at: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    forget_entries(spec, at)
    table = open_table(spec, at)
    commit = table.commit

    def commit_then_fail(files: Sequence[DataFile], entry: Entry) -> str:
        commit(files, entry)
        raise OSError("connection reset")

    monkeypatch.setattr(table, "commit", commit_then_fail)
    assert reset(table, offsets(0, 30), epoch=2).attempts == 1
    assert [found.entry.kind for found in open_table(spec, at).entries()] == ["reset"]


def test_a_reset_whose_commit_fails_is_tried_again_although_no_entry_counts(
    app: Lander, spec: TableSpec, at: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    forget_entries(spec, at)
    table = open_table(spec, at)
    commit, answers = table.commit, iter([OSError("locked")])

    def fail_then_commit(files: Sequence[DataFile], entry: Entry) -> str:
        for error in answers:
            raise error
        return commit(files, entry)

    monkeypatch.setattr(table, "commit", fail_then_commit)
    assert reset(table, offsets(0, 30), epoch=2).attempts == 2


def test_a_reset_is_refused_by_a_table_of_another_pipeline_and_by_a_higher_epoch(app: Lander) -> None:
    with pytest.raises(ForeignTableError):
        reset(app.table, {}, epoch=2, pipeline="payments")
    with pytest.raises(LeaseLostError):
        reset(app.table, {}, epoch=0)


def test_former_incarnations_are_carried_on_by_every_entry(app: Lander, spec: TableSpec, at: Places) -> None:
    recreated = {TOPIC: TopicOffsets(topic_id="topic-id-2", partitions={0: ((0, 0),)})}
    committed = reset(app.table, recreated, epoch=2, former=offsets(0, 30))
    assert committed.entry.former == {TOPIC: (offsets(0, 30)[TOPIC],)}
    draft = Entry(
        kind="skip",
        pipeline=PIPELINE,
        epoch=2,
        commit=new_commit_id(),
        range={TOPIC: TopicOffsets(topic_id="topic-id-2", partitions={0: ((0, 5),)})},
    )
    after = commit_entry(app.table, committed.view, [], draft, own_epoch=2, check_lease=lambda: None, attempts=1)
    assert after.entry.former == committed.entry.former
    found = open_table(spec, at).read_ledger().entry
    assert found is not None
    assert found.former == committed.entry.former


def test_no_batch_lands_on_top_of_a_table_that_was_rolled_back_meanwhile(app: Lander, spec: TableSpec, at: Places) -> None:
    take_back(spec, at, version_of(app, 10))
    with pytest.raises(TableRestoredError if spec.format == "delta" else LedgerWentBackError):
        app.land(30, 40)
    assert landed_offsets(open_table(spec, at)) == list(range(10))
