"""Whatever a commit answers, the batch lands once. Real tables of both formats."""

from __future__ import annotations

import errno
import json
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from tests.support.tables.local_tables import Lander, app_fixture, draft, landed_offsets, lander, make_table, rows  # noqa: F401

from lakebound import faults
from lakebound.errors import (
    CommitFailedError,
    CommitRefusedError,
    CommitUnknownError,
    ForeignTableError,
    LeaseLostError,
    TableMismatchError,
    TopicRecreatedError,
)
from lakebound.ledger.entry import Entry
from lakebound.spec.table import TableSpec
from lakebound.tables.commit import BatchOverlapError, LedgerWentBackError, Waits, commit_entry
from lakebound.tables.datafiles import write_data_files
from lakebound.tables.delta.open import open_at
from lakebound.tables.places import Places
from lakebound.tables.table import DataFile, LedgerView, open_table


def test_batches_land_one_after_another(app: Lander) -> None:
    for start in range(10, 50, 10):
        assert app.land(start, start + 10).attempts == 1
    assert landed_offsets(app.table) == list(range(50))
    assert [found.entry.kind for found in app.table.entries()] == ["land"] * 5 + ["open", "genesis"]
    assert app.table.read_ledger() == app.view


def test_a_stale_handle_is_refused(app: Lander, spec: TableSpec, at: Places) -> None:
    stale = lander(spec, at)
    files = stale.write(10, 20)
    app.land(10, 20)
    with pytest.raises(CommitRefusedError):
        stale.table.commit(files, draft(10, 20))
    assert landed_offsets(app.table) == list(range(20))


def test_a_handle_that_has_not_read_the_ledger_is_refused(app: Lander, spec: TableSpec, at: Places) -> None:
    with pytest.raises(CommitRefusedError, match="not read"):
        open_table(spec, at).commit([], draft(0, 0, epoch=9))


def test_a_stale_application_is_told_that_its_batch_has_landed(app: Lander, spec: TableSpec, at: Places) -> None:
    stale = lander(spec, at)
    app.land(10, 20)
    with pytest.raises(BatchOverlapError, match="5 offsets"):
        stale.land(15, 25)
    stale.view = stale.table.read_ledger()
    stale.land(20, 25)
    assert landed_offsets(app.table) == list(range(25))


@pytest.mark.parametrize("point", ["before_commit", "after_commit"])
def test_a_commit_that_answers_with_an_error_lands_once(app: Lander, monkeypatch: pytest.MonkeyPatch, point: str) -> None:
    rule = faults.FaultRule("fail", point, app.table.spec.format, 1)
    monkeypatch.setattr(faults, "_rules", lambda: (rule,))
    monkeypatch.setattr(faults, "_seen", type(faults._seen)())
    committed = app.land(10, 20)
    assert committed.attempts == (2 if point == "before_commit" else 1)
    assert landed_offsets(app.table) == list(range(20))
    app.land(20, 30)
    assert landed_offsets(app.table) == list(range(30))
    assert app.table.read_ledger() == app.view


def test_an_error_after_which_the_ledger_cannot_be_read_at_first(app: Lander, monkeypatch: pytest.MonkeyPatch) -> None:
    commit, read = app.table.commit, app.table.read_ledger
    outage = iter([OSError("disk away"), OSError("disk away")])

    def commit_then_fail(files: Sequence[DataFile], entry: Entry) -> str:
        commit(files, entry)
        raise OSError("connection reset")

    def read_in_an_outage(**asked: bool) -> LedgerView:
        for error in outage:
            raise error
        return read(**asked)

    monkeypatch.setattr(app.table, "commit", commit_then_fail)
    monkeypatch.setattr(app.table, "read_ledger", read_in_an_outage)
    app.land(10, 20)
    assert landed_offsets(app.table) == list(range(20))


def test_a_ledger_that_stays_unreadable_is_an_unknown_outcome(app: Lander, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> LedgerView:
        raise OSError("disk away")

    monkeypatch.setattr(app.table, "commit", fail)
    monkeypatch.setattr(app.table, "read_ledger", fail)
    with pytest.raises(CommitUnknownError, match="cannot be read"):
        commit_entry(
            app.table,
            app.view,
            [],
            draft(10, 20),
            own_epoch=1,
            check_lease=lambda: None,
            attempts=3,
            waits=Waits(reread_seconds=0.2),
        )


def test_attempts_are_bounded_and_waited_for_longer_each_time(app: Lander, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    checks: list[int] = []

    def fail(*_: object) -> str:
        raise OSError(errno.ENOSPC, "disk full")

    monkeypatch.setattr(app.table, "commit", fail)
    with pytest.raises(CommitUnknownError, match="no space is left on the disk"):
        commit_entry(
            app.table,
            app.view,
            [],
            draft(10, 20),
            own_epoch=1,
            check_lease=lambda: checks.append(1),
            attempts=4,
            waits=Waits(between=waits.append),
        )
    assert len(checks) == 4 and len(waits) == 3 and waits == sorted(waits)
    assert landed_offsets(app.table) == list(range(10))


def test_an_error_that_would_come_again_is_no_outage(app: Lander, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> str:
        raise ValueError("a bug")

    monkeypatch.setattr(app.table, "commit", fail)
    with pytest.raises(CommitFailedError, match=r"failed 2 times \(ValueError; .*log has the full.*runbook commit-failed"):
        commit_entry(
            app.table,
            app.view,
            [],
            draft(10, 20),
            own_epoch=1,
            check_lease=lambda: None,
            attempts=2,
            waits=Waits(between=lambda _: None),
        )
    assert landed_offsets(app.table) == list(range(10))


def test_the_lease_is_looked_at_before_another_attempt(app: Lander, monkeypatch: pytest.MonkeyPatch) -> None:
    def lost() -> None:
        raise LeaseLostError("orders", 1, 2)

    def fail(*_: object) -> str:
        raise OSError("disk full")

    monkeypatch.setattr(app.table, "commit", fail)
    with pytest.raises(LeaseLostError):
        commit_entry(app.table, app.view, [], draft(10, 20), own_epoch=1, check_lease=lost, attempts=4)


@pytest.mark.parametrize("lands_first", [False, True])
def test_a_zombie_is_refused_by_the_table(app: Lander, spec: TableSpec, at: Places, lands_first: bool) -> None:
    """Its handle, ledger and files are older than the second application's ``open`` entry."""
    files = app.write(10, 20)
    second = lander(spec, at, epoch=2)
    second.open()
    if lands_first:
        second.land(10, 30)
    with pytest.raises(LeaseLostError, match="epoch 2"):
        app.land(10, 20, files)
    with pytest.raises(LeaseLostError):
        app.land(10, 20, files)
    end = 30 if lands_first else 10
    assert landed_offsets(second.table) == list(range(end))
    assert second.table.read_ledger().epoch == 2


def test_a_zombie_that_reads_the_ledger_anew_is_refused_too(app: Lander, spec: TableSpec, at: Places) -> None:
    lander(spec, at, epoch=2).open()
    view = app.table.read_ledger()
    with pytest.raises(CommitRefusedError, match="epoch 2"):
        app.table.commit([], draft(10, 20, epoch=1))
    app.view = view
    with pytest.raises(LeaseLostError):
        app.land(10, 20)


def test_a_zombie_whose_commit_succeeded_unheard_ends_and_the_batch_is_there_once(
    app: Lander, spec: TableSpec, at: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = app.table.commit

    def commit_then_fail(files: Sequence[DataFile], entry: Entry) -> str:
        commit(files, entry)
        lander(spec, at, epoch=2).open()
        raise OSError("connection reset")

    monkeypatch.setattr(app.table, "commit", commit_then_fail)
    with pytest.raises(LeaseLostError):
        app.land(10, 20)
    second = lander(spec, at, epoch=2)
    assert second.view.coverage["orders"].partitions == {0: ((0, 20),)}
    assert landed_offsets(second.table) == list(range(20))


def test_after_an_unheard_commit_the_next_one_keeps_what_others_have_landed_since(
    app: Lander, spec: TableSpec, at: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as a replay of the same application, which waited for the end of the same outage."""
    fail_unheard(app, monkeypatch, lambda: lander(spec, at, epoch=1).land(100, 110))
    app.land(10, 20)
    assert app.view == lander(spec, at).view
    app.land(20, 30)
    assert lander(spec, at).view.coverage["orders"].partitions == {0: ((0, 30), (100, 110))}
    assert landed_offsets(app.table) == [*range(30), *range(100, 110)]


def test_an_unheard_commit_that_was_taken_back_at_once_is_no_success(
    app: Lander, spec: TableSpec, at: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    def take_back() -> None:
        another, before = lander(spec, at, epoch=1), draft(0, 10)
        reset = before.model_copy(update={"kind": "reset", "coverage": before.range, "range": {}})
        commit_entry(another.table, another.view, [], reset, own_epoch=1, check_lease=lambda: None, attempts=1)

    fail_unheard(app, monkeypatch, take_back)
    with pytest.raises(LedgerWentBackError, match="10 offsets"):
        app.land(10, 20)


def fail_unheard(app: Lander, monkeypatch: pytest.MonkeyPatch, meanwhile: Callable[[], object]) -> None:
    """Have the next commit take effect, and something happen before its error."""
    commit = app.table.commit

    def commit_then_fail(files: Sequence[DataFile], entry: Entry) -> str:
        monkeypatch.setattr(app.table, "commit", commit)
        commit(files, entry)
        meanwhile()
        raise OSError("connection reset")

    monkeypatch.setattr(app.table, "commit", commit_then_fail)


def test_a_commit_right_after_ours_is_not_stepped_over(app: Lander, spec: TableSpec, at: Places) -> None:
    app.land(10, 20)
    lander(spec, at, epoch=2).open()
    with pytest.raises(LeaseLostError):
        app.land(20, 30)
    assert landed_offsets(app.table) == list(range(20))


def test_another_pipelines_table_is_refused(app: Lander) -> None:
    foreign = draft(10, 20).model_copy(update={"pipeline": "returns"})
    with pytest.raises(ForeignTableError):
        commit_entry(app.table, app.view, [], foreign, own_epoch=1, check_lease=lambda: None, attempts=1)


def test_a_recreated_topic_is_refused(app: Lander) -> None:
    other = draft(10, 20).model_dump(mode="json")
    other["range"]["orders"]["topic_id"] = "another"
    with pytest.raises(TopicRecreatedError):
        commit_entry(
            app.table,
            app.view,
            [],
            Entry.model_validate(other),
            own_epoch=1,
            check_lease=lambda: None,
            attempts=1,
        )


def test_files_that_do_not_fit_the_table_are_not_tried_again(at: Places) -> None:
    spec = TableSpec(format="iceberg", name="shop.orders", partition_by=("day(at)",))
    make_table(spec, at)
    app = lander(spec, at)
    files = write_data_files(rows(0, 60), replace(app.table.layout(), fields=()), "t")
    with pytest.raises(TableMismatchError, match="cannot be committed"):
        app.land(0, 60, files)
    assert app.table.read_ledger() == app.view


def test_the_entry_stands_where_other_tools_look_for_it(at: Places) -> None:
    delta = TableSpec(format="delta", name="shop.orders")
    make_table(delta, at)
    app = lander(delta, at)
    app.land(0, 10)
    newest = open_at(at.folder(delta)).history(1)[0]
    assert json.loads(newest["userMetadata"])["lakebound"]["commit"] == app.view.entry.commit  # type: ignore[union-attr]
    assert open_at(at.folder(delta)).transaction_version("lakebound") >= 2**40
