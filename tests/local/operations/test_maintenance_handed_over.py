"""Commits that maintenance prepared, made by the stream: on the table that they were prepared for, and on one that changed."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.support.tables.foreign_hands import take_back
from tests.support.tables.local_tables import landed_offsets, lander, places
from tests.support.tables.maintained import compaction, content, live_files_of, small_commits
from tests.support.tables.taking import Inline, taking_stream

from lakebound.control.folder import ControlFolder
from lakebound.control.handover import Answer, HandOver
from lakebound.control.turns import AskForTurn
from lakebound.errors import LeaseLostError, TableRestoredError
from lakebound.operations.maintenance.delta.engine import DeltaEngine
from lakebound.operations.maintenance.delta.rewrite import live_files, replace, rewrite
from lakebound.operations.maintenance.engines import StepLostError, carried_entry
from lakebound.operations.maintenance.iceberg.expiry import expire
from lakebound.operations.maintenance.steps import ExpireSnapshots
from lakebound.spec.table import TableSpec
from lakebound.tables.delta.open import open_at
from lakebound.tables.places import Places
from lakebound.tables.schema_change import Addition, SchemaPlan
from lakebound.tables.table import open_table

DELTA = TableSpec(format="delta", name="shop.orders")
ICEBERG = TableSpec(format="iceberg", name="shop.orders")


@pytest.fixture
def at(tmp_path: Path) -> Places:
    return places(tmp_path)


def compacted(at: Places, hand: Any) -> tuple[int, int]:
    """Compact the Delta table, and hand its commit over."""
    root = at.folder(DELTA)
    handle = open_at(root)
    rewritten = rewrite(handle, root, live_files(handle), compaction(DELTA))
    return replace(root, DELTA.id, rewritten, hand_over=hand)


def snapshots(at: Places) -> tuple[int, ...]:
    return tuple(int(one.version) for one in open_table(ICEBERG, at).history().versions())


def expired(at: Places, hand: Any) -> int:
    """Expire all snapshots that may go, handed over; return how many are left."""
    step = ExpireSnapshots(table=ICEBERG.id, reason="a test", snapshot_ids=snapshots(at))
    expire(ICEBERG, step, at, AskForTurn(ControlFolder(at.home, "orders"), ICEBERG.id), hand)
    return len(snapshots(at))


def test_a_stream_that_never_rests_commits_a_compaction_of_delta(at: Places) -> None:
    small_commits(DELTA, at, 40)
    with taking_stream(DELTA, at, 40) as stream:
        hand = HandOver(ControlFolder(at.home, "orders"), DELTA.id)
        done = DeltaEngine(at).compact(DELTA, compaction(DELTA), hand_over=hand)
    assert done.files_before >= 40 and (done.files_after, done.commits, done.conflicts) == (1, 1, 0)
    assert [one.outcome for one in stream.answers.given] == ["committed"]
    assert landed_offsets(open_table(DELTA, at)) == list(range(stream.landed))
    assert live_files_of(DELTA, at) == stream.landed - done.files_before + 1
    newest = next(one.entry for one in open_table(DELTA, at).entries() if one.entry.kind == "carry")
    prepared = ControlFolder(at.home, "orders").prepared(DELTA.id)
    assert newest.epoch == stream.app.epoch and not list(prepared.iterdir())


def test_a_stream_that_never_rests_expires_snapshots(at: Places) -> None:
    small_commits(ICEBERG, at, 40)
    before, ids = content(ICEBERG, at), snapshots(at)
    with taking_stream(ICEBERG, at, 40) as stream:
        expired(at, HandOver(ControlFolder(at.home, "orders"), ICEBERG.id))
    assert [one.outcome for one in stream.answers.given] == ["committed"]
    assert not set(ids[1:]) & set(snapshots(at)), "all but the newest, which was handed over with them, are gone"
    assert landed_offsets(open_table(ICEBERG, at)) == list(range(stream.landed)) and before.rows == 40
    lander(ICEBERG, at, 9).land(stream.landed, stream.landed + 1)


def test_the_entry_and_the_offsets_are_the_streams_own(at: Places) -> None:
    app = small_commits(DELTA, at, 6)
    assert compacted(at, Inline(app, lambda: app.land(6, 8))) == (int(app.view.version), 0)
    assert app.view.coverage == lander(DELTA, at).view.coverage
    app.land(8, 9)
    assert landed_offsets(open_table(DELTA, at)) == list(range(9))


def added_column(spec: TableSpec, at: Places) -> None:
    import pyarrow as pa

    plan = SchemaPlan(additions=(Addition(("note",), pa.string()),))
    open_table(spec, at).change_schema(plan, carried_entry(spec, at) if spec.format == "delta" else None)


def test_what_is_stale_is_refused_and_the_next_run_prepares_it_anew(at: Places) -> None:
    """The stream has read the ledger since; the columns were changed, so it refuses. The next run's offer fits."""
    app = small_commits(DELTA, at, 6)
    hand = Inline(app)

    def changed() -> None:
        added_column(DELTA, at)
        app.view = app.table.read_ledger()

    hand.before = changed
    with pytest.raises(StepLostError, match="columns, properties or features were changed"):
        compacted(at, hand)
    compacted(at, hand)
    assert hand.answer_ is not None and hand.answer_.outcome == "committed"
    assert live_files_of(DELTA, at) == 1 and landed_offsets(open_table(DELTA, at)) == list(range(6))


def test_a_stream_whose_table_moved_on_refuses_and_goes_on(at: Places) -> None:
    for spec, act in ((DELTA, compacted), (ICEBERG, expired)):
        app = small_commits(spec, at, 6)
        hand = Inline(app, lambda spec=spec: added_column(spec, at))
        with suppress(StepLostError):  # of the Delta table: its columns are others now
            act(at, hand)
        app.land(6, 7)
        assert landed_offsets(open_table(spec, at)) == list(range(7)), spec.id


def test_after_a_rollback_nothing_is_committed_and_nothing_deleted(at: Places) -> None:
    app = small_commits(DELTA, at, 6)
    with pytest.raises(TableRestoredError):
        compacted(at, Inline(app, lambda: take_back(DELTA, at, "3")))
    assert landed_offsets(open_table(DELTA, at)) == [0, 1, 2]


def test_what_went_meanwhile_is_not_removed_twice(at: Places) -> None:
    app = small_commits(DELTA, at, 6)

    def compacted_by_another() -> None:
        DeltaEngine(at).compact(DELTA, compaction(DELTA))
        app.view = app.table.read_ledger()

    with pytest.raises(StepLostError, match="removed by somebody else"):
        compacted(at, Inline(app, compacted_by_another))
    assert landed_offsets(open_table(DELTA, at)) == list(range(6))


def test_a_zombie_commits_nothing_that_was_handed_to_it(at: Places) -> None:
    app = small_commits(DELTA, at, 6)
    with pytest.raises(LeaseLostError):
        compacted(at, Inline(app, lambda: lander(DELTA, at, 5).open()))
    assert live_files_of(DELTA, at) == 6


def test_a_commit_whose_answer_was_an_error_is_found_out(at: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    app = small_commits(DELTA, at, 6)
    real = app.table.commit_prepared  # type: ignore[attr-defined]

    def failing(prepared: Any, entry: Any) -> str:
        real(prepared, entry)
        raise OSError("the disk answered with an error after it had done it")

    monkeypatch.setattr(app.table, "commit_prepared", failing)
    hand = Inline(app)
    compacted(at, hand)
    assert hand.answer_ is not None and hand.answer_.outcome == "committed"
    app.land(6, 7)
    assert landed_offsets(open_table(DELTA, at)) == list(range(7))


def test_after_an_unheard_commit_what_others_have_landed_since_stays_in_the_ledger(
    at: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = small_commits(DELTA, at, 6)
    real = app.table.commit_prepared  # type: ignore[attr-defined]

    def failing(prepared: Any, entry: Any) -> str:
        real(prepared, entry)
        lander(DELTA, at, app.epoch).land(100, 110)
        raise OSError("the disk answered with an error after it had done it")

    monkeypatch.setattr(app.table, "commit_prepared", failing)
    compacted(at, Inline(app))
    app.land(6, 7)
    assert lander(DELTA, at).view.coverage["orders"].partitions == {0: ((0, 7), (100, 110))}


def test_an_answer_that_never_comes_deletes_nothing(at: Places) -> None:
    app = small_commits(DELTA, at, 6)
    late: list[str] = []

    def silent(body: str, since_ms: int) -> Answer:
        late.append(body)
        return Answer("unknown", reason="no answer")

    with pytest.raises(StepLostError, match="no answer"):
        compacted(at, silent)
    assert Inline(app)(late[0], 1) == Answer("committed", "7"), "the stream that was suspended goes on"
    assert live_files_of(DELTA, at) == 1 and landed_offsets(open_table(DELTA, at)) == list(range(6))
