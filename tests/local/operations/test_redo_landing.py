"""A redo's batches on real tables, with a stand-in for what Spark does: whatever is committed meanwhile, each row is new."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tests.support.streams.long_form import examples
from tests.support.tables.local_tables import landed_offsets, offsets
from tests.support.tables.redoing import LANDED, Scene, dies_at, scene_fixture  # noqa: F401

from lakebound import faults
from lakebound.control.desired import change_desired, request_stop
from lakebound.control.folder import locked
from lakebound.ledger.entry import Entry, new_commit_id
from lakebound.ledger.redo_progress import RedoProgress
from lakebound.operations.backfill.half_done import RedoUnfinishedError
from lakebound.operations.erase.prepare import prepare
from lakebound.operations.redo.undo import apply_undo
from lakebound.operations.redo.undo_facts import prepare_undo
from lakebound.tables.commit import commit_entry
from lakebound_spark.backfill import rows_replaced


def test_a_range_is_redone_in_pieces_and_its_old_rows_are_gone(scene: Scene) -> None:
    before = [table.read_ledger().coverage for table in scene.tables()]
    result = scene.run(20, 330)
    assert (result.state, result.chunks_done) == ("completed", 4), result
    assert scene.shown() == scene.expected(20, 330)
    assert [table.read_ledger().coverage for table in scene.tables()] == before
    entry = next(iter(scene.tables()[0].entries())).entry
    assert (entry.kind, entry.decision, entry.newest_redo) == ("redo", "plan-1", entry.commit)


def test_a_piece_that_lands_in_many_parts_is_one_commit(scene: Scene) -> None:
    scene.parts = 10
    result = scene.run(20, 220)
    assert scene.shown() == scene.expected(20, 220)
    assert [one.commits for one in result.tables.values()] == [2, 2]
    assert [one.rows for one in result.tables.values()] == [len(range(20, 220)) - len(range(21, 220, 7))] * 2
    entry = next(iter(scene.tables()[0].entries())).entry
    assert (entry.read, entry.redo_progress) == (100, RedoProgress(plan="plan-1"))


def test_the_same_plan_again_does_nothing_and_another_plan_does_all(scene: Scene) -> None:
    scene.run(0, 200)
    versions = [table.read_ledger().version for table in scene.tables()]
    scene.reads.clear()
    assert scene.run(0, 200).state == "completed"
    assert not scene.reads and [table.read_ledger().version for table in scene.tables()] == versions
    scene.city = "once more"
    assert scene.run(0, 200, plan="plan-2").state == "completed"
    assert scene.shown() == scene.expected(0, 200, city="once more")


@pytest.mark.parametrize("point", ["before_commit", "after_commit"])
@pytest.mark.parametrize("at", ["delta", "iceberg"])
@pytest.mark.parametrize("number", [1, 2])
def test_one_that_died_goes_on_where_it_was(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, point: str, at: str, number: int
) -> None:
    reach, seen = faults.reach, list[str]()

    def die(where: str, detail: str = "") -> None:
        reach(where, detail)
        if (where, detail) == (point, at):
            seen.append(where)
            if len(seen) == number:
                raise KeyboardInterrupt

    monkeypatch.setattr(faults, "reach", die)
    with pytest.raises(KeyboardInterrupt):
        scene.run(0, 300)
    monkeypatch.setattr(faults, "reach", reach)
    assert scene.run(0, 300).state == "completed"
    assert scene.shown() == scene.expected(0, 300)


def test_one_that_died_between_two_tables_is_known_and_nobody_goes_by_its_rows(scene: Scene) -> None:
    for number in range(1, 9):
        with pytest.MonkeyPatch.context() as patch:
            dies_at(patch, number)
            with pytest.raises(KeyboardInterrupt):
                scene.run(0, 100, plan=f"plan-{number}")
        shown, left = scene.shown(), [table.read_ledger().redo_progress.left for table in scene.tables()]
        assert shown[0] == shown[1] or any(left), number
        if any(left):
            with pytest.raises(RedoUnfinishedError, match="has been done in part"):
                prepare(scene.spec, scene.at, "id = 3")
        assert scene.run(0, 100, plan=f"plan-{number}").state == "completed"
        assert [table.read_ledger().redo_progress.left for table in scene.tables()] == [0, 0]
        prepare(scene.spec, scene.at, "id = 3")


def test_what_is_left_is_looked_for_when_nobody_else_can_change_it(scene: Scene) -> None:
    scene.run(0, 400)
    undo = prepare_undo(scene.spec, scene.at)

    @contextmanager
    def late(repair: object) -> Iterator[bool]:
        """Others had the lock, and undid the redo."""
        patch.undo()
        apply_undo(scene.spec, scene.at, undo.hash)
        yield True

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows_replaced, "locked_if_free", late)
        assert scene.run(0, 400).state == "completed"
    assert scene.shown() == scene.expected(0, 400)


def test_it_is_not_completed_where_somebody_took_back_what_it_had_done(scene: Scene) -> None:
    def forget() -> None:
        table = scene.tables()[0]
        view = table.read_ledger()
        draft = Entry(kind="redo", pipeline="orders", epoch=view.epoch, commit=new_commit_id(), decision="other")
        draft = draft.model_copy(update={"redoes": offsets(0, 50), "redo_progress": RedoProgress(plan="other")})
        commit_entry(table, view, [], draft, own_epoch=view.epoch, check_lease=lambda: None, attempts=1)

    scene.meanwhile[2] = forget
    result = scene.run(0, 400)
    assert (result.state, result.error_class) == ("refused", "RedoOvertakenError"), result


def test_one_that_was_asked_to_end_leaves_whole_pieces(scene: Scene) -> None:
    scene.meanwhile[2] = lambda: request_stop(scene.control, "redo-1", reason="test", by="test")
    result = scene.run(0, 400)
    assert (result.state, result.chunks_done) == ("stopped", 2)
    assert scene.shown() == scene.expected(0, 200)


def test_what_the_stream_lands_meanwhile_stays(scene: Scene) -> None:
    scene.meanwhile[1] = lambda: scene.land(400, 450)
    scene.meanwhile[2] = lambda: scene.land(450, 500)
    assert scene.run(100, 300).state == "completed"
    assert scene.shown() == scene.expected(100, 300, landed=500)


def test_a_held_pipeline_gets_the_rows_of_a_plan_that_was_applied_under_the_hold(scene: Scene) -> None:
    hold = change_desired(scene.control, "held", reason="look first", by="test")
    assert scene.run(0, 100).state == "refused", "it was held after the plan was applied"
    assert scene.shown() == scene.expected(0, 0)
    assert scene.run(0, 100, held_since=hold.since).state == "completed"
    assert scene.shown() == scene.expected(0, 100)


@pytest.mark.parametrize("is_held", [False, True])
def test_a_hold_that_comes_meanwhile_ends_it_after_the_piece(scene: Scene, is_held: bool) -> None:
    since = change_desired(scene.control, "held", reason="look first", by="test").since if is_held else None
    scene.meanwhile[2] = lambda: change_desired(scene.control, "held", reason="stop that", by="test")
    result = scene.run(0, 400, held_since=since)
    assert (result.state, result.chunks_done) == ("refused", 2)
    assert scene.shown() == scene.expected(0, 200)


def test_a_repair_waits_until_it_has_ended(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows_replaced, "_ANOTHER_REPAIR_SECONDS", 0.1)
    with locked(scene.control.repair, 1.0):
        result = scene.run(0, 100)
    assert result.state in ("refused", "failed") and scene.shown() == scene.expected(0, 0)
    assert scene.run(0, 100).state == "completed"


def test_any_sequence_of_landing_and_redo_shows_what_the_newest_transform_makes(scene: Scene) -> None:
    choice, landed = random.Random(54), LANDED
    expected: dict[int, str] = {at: f"city {at % 3}" for at in range(landed)}
    for number in range(5):
        if choice.random() < 0.5:
            scene.land(landed, landed + 30)
            expected |= {at: f"city {at % 3}" for at in range(landed, landed + 30)}
            landed += 30
        start, end = sorted(choice.sample(range(landed + 1), 2))
        scene.city = f"redone {number}"
        assert scene.run(start, end, plan=f"plan-{number}").state == "completed"
        expected = {at: city for at, city in expected.items() if not start <= at < end}
        expected |= {at: scene.city for at in range(start, end) if at % 7}
        assert scene.shown() == [expected] * 2
    assert [sorted(landed_offsets(table)) for table in scene.tables()] == [sorted(expected)] * 2


def test_kills_at_any_moment_beside_a_stream_leave_each_row_once(scene: Scene) -> None:
    """A redo dies between any two steps that reach a table, again and again; the stream lands meanwhile."""
    choice, landed, died = random.Random(54), LANDED, 0
    expected: dict[int, str] = {at: f"city {at % 3}" for at in range(landed)}
    for number in range(examples(20)):
        scene.city = f"redone {number}"
        start, end = sorted(choice.sample(range(landed + 1), 2))
        new = {at: scene.city for at in range(start, end) if at % 7}
        with pytest.MonkeyPatch.context() as patch:
            dies_at(patch, choice.randint(1, 6))
            try:
                scene.run(start, end, plan=f"plan-{number}")
            except KeyboardInterrupt:
                died += 1
        for shown in scene.shown():
            assert all(city in (expected.get(at), new.get(at)) for at, city in shown.items())
            assert expected.keys() & (new.keys() | (expected.keys() - set(range(start, end)))) <= shown.keys()
        scene.land(landed, landed + 10)
        expected |= {at: f"city {at % 3}" for at in range(landed, landed + 10)}
        landed += 10
        assert scene.run(start, end, plan=f"plan-{number}").state == "completed"
        expected = {at: city for at, city in expected.items() if not start <= at < end} | new
        assert scene.shown() == [expected] * 2
    assert died > examples(20) // 2
