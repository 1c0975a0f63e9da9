"""What is half done stays known, in real tables of both formats, and there is always a way on."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.support.tables.foreign_hands import foreign_iceberg
from tests.support.tables.local_tables import offsets
from tests.support.tables.redoing import LANDED, Scene, scene_fixture  # noqa: F401

from lakebound import faults
from lakebound.control.incidents import read_incidents
from lakebound.control.redone import read_redone
from lakebound.ledger.entry import common
from lakebound.operations.backfill.half_done import RedoUnfinishedError
from lakebound.operations.erase.prepare import prepare
from lakebound.operations.maintenance.keep import left_by_repairs
from lakebound.operations.maintenance.table_past import past_of
from lakebound.operations.redo.apply import apply_undo_of_redo
from lakebound.operations.redo.orders import RedoOrders
from lakebound.operations.redo.replacing import RedoOvertakenError
from lakebound.operations.redo.undo import apply_undo
from lakebound.operations.redo.undo_facts import prepare_undo
from lakebound.operations.redo.undo_plan import AlreadyUndoneError, NotUndoableError
from lakebound_spark.backfill.rows_replaced import redo


def at_commit(patch: pytest.MonkeyPatch, number: int, do: Callable[[], object]) -> None:
    """Do something after the how many-th commit; the first two are those by which both tables say that it begins."""
    reach, seen = faults.reach, list[str]()

    def watched(where: str, detail: str = "") -> None:
        reach(where, detail)
        if where == "after_commit":
            seen.append(where)
            if len(seen) == number:
                do()

    patch.setattr(faults, "reach", watched)


def die() -> None:
    raise KeyboardInterrupt


def run_until(scene: Scene, number: int, start: int, end: int, plan: str) -> None:
    """Redo a range, and die after the how many-th commit."""
    with pytest.MonkeyPatch.context() as patch:
        at_commit(patch, number, die)
        with pytest.raises(KeyboardInterrupt):
            scene.run(start, end, plan=plan)


def undo_until(scene: Scene, number: int) -> str:
    """Undo the newest redo, die after the how many-th commit, and return the plan's hash."""
    plan = prepare_undo(scene.spec, scene.at).hash
    with pytest.MonkeyPatch.context() as patch:
        at_commit(patch, number, die)
        with pytest.raises(KeyboardInterrupt):
            apply_undo(scene.spec, scene.at, plan)
    return plan


def left(scene: Scene) -> list[int]:
    return [table.read_ledger().redo_progress.left for table in scene.tables()]


def delete(scene: Scene, number: int) -> None:
    foreign_iceberg(scene.spec.tables[1], scene.at).delete(f"id == {number}")


def test_an_undoing_that_can_no_longer_be_finished_makes_way_for_a_redo_of_the_range(scene: Scene) -> None:
    scene.run(0, 300)
    undo_until(scene, 3)
    assert scene.run(0, 300, plan="plan-2").error_class == "UndoUnfinishedError", "it can be finished still"
    delete(scene, 350)
    with pytest.raises(NotUndoableError, match="others changed rows"):
        prepare_undo(scene.spec, scene.at)
    result = scene.run(0, 100, plan="plan-2")
    assert (result.state, result.error_class) == ("refused", "UnfinishedLeftOutError"), "the old rows of [200, 300) are back"
    assert any(left(scene))
    assert scene.run(0, 300, plan="plan-2").state == "completed"
    assert left(scene) == [0, 0]
    expected = scene.expected(0, 300)[0]
    assert scene.shown() == [expected, {at: city for at, city in expected.items() if at != 350}]
    prepare(scene.spec, scene.at, "id = 3")
    with pytest.raises(NotUndoableError, match="redo plan-1, which was not finished"):
        prepare_undo(scene.spec, scene.at)


@pytest.mark.parametrize("number", [3, 4])
def test_a_smaller_redo_does_not_take_the_place_of_one_that_is_half_done(scene: Scene, number: int) -> None:
    run_until(scene, number, 0, 300, "plan-1")
    result = scene.run(200, 300, plan="plan-2")
    assert (result.state, result.error_class) == ("refused", "UnfinishedLeftOutError"), result
    assert "100 offsets of which rows were replaced: orders/0 [0, 100)" in result.reason
    with pytest.raises(RedoUnfinishedError):
        prepare(scene.spec, scene.at, "id = 3")
    scene.city = "mended again"
    assert scene.run(0, 100, plan="plan-2").state == "completed"
    assert scene.shown() == scene.expected(0, 100, city="mended again")
    prepare(scene.spec, scene.at, "id = 3")
    with pytest.raises(NotUndoableError, match="redo plan-1, which was not finished"):
        prepare_undo(scene.spec, scene.at)


def test_what_a_redo_had_done_is_known_after_a_second_one_died_in_its_place(scene: Scene) -> None:
    run_until(scene, 3, 0, 300, "plan-1")
    run_until(scene, 2, 0, 300, "plan-2")
    assert scene.run(200, 300, plan="plan-3").error_class == "UnfinishedLeftOutError"
    assert scene.run(0, 300, plan="plan-2").state == "completed"
    assert scene.shown() == scene.expected(0, 300)
    assert scene.run(200, 250, plan="plan-3").state == "completed"


def test_what_somebody_deletes_while_a_redo_is_undone_does_not_come_back(scene: Scene) -> None:
    scene.run(0, 300)
    plan = prepare_undo(scene.spec, scene.at).hash
    with pytest.MonkeyPatch.context() as patch:
        at_commit(patch, 6, lambda: delete(scene, 3))  # of three chunks in Iceberg two are left
        with pytest.raises(RedoOvertakenError, match="others changed its rows"):
            apply_undo(scene.spec, scene.at, plan)
    assert 3 not in scene.shown()[1]
    assert scene.run(0, 300, plan="plan-2").state == "completed" and left(scene) == [0, 0]


def test_a_redo_of_which_kafka_has_nothing_left_ends(scene: Scene) -> None:
    run_until(scene, 3, 0, 300, "plan-1")
    shown = scene.shown()
    body = {"spec": scene.spec, "places": scene.at, "app_id": "redo-1", "freshness": "available_now"}
    gone = common(offsets(0, 300), scene.tables()[0].read_ledger().coverage)
    result = redo(RedoOrders(**body, wanted={}, replaces={}, plan="plan-1", gone=gone))
    assert (result.state, left(scene)) == ("completed", [0, 0]), result
    assert "the rows of 200 offsets stay as they are" in result.reason
    assert scene.shown() == shown
    prepare(scene.spec, scene.at, "id = 3")


def test_an_undoing_that_died_after_its_last_commit_is_told_and_recorded_by_the_same_plan(scene: Scene) -> None:
    scene.run(0, 100)
    plan = undo_until(scene, 4)
    assert scene.shown() == scene.expected(0, 0) and left(scene) == [0, 0]
    assert read_redone(scene.control)[0].undoes is None and not read_incidents(scene.control)
    incident = apply_undo_of_redo(scene.spec, scene.at, plan, by="bob", asked_by="ada")
    assert (read_redone(scene.control)[0].plan, read_redone(scene.control)[0].undoes) == (plan, "plan-1")
    assert read_incidents(scene.control) == [incident] and incident.outcome.startswith("done")
    with pytest.raises(AlreadyUndoneError, match="plan-1, is undone"):
        apply_undo_of_redo(scene.spec, scene.at, plan, by="bob", asked_by="ada")
    assert read_incidents(scene.control) == [incident]


def test_maintenance_keeps_what_an_undoing_needs_until_it_is_finished(scene: Scene) -> None:
    scene.run(0, 300)
    befores = [int(share.before) for share in prepare_undo(scene.spec, scene.at).tables]
    plan, policy = undo_until(scene, 3), scene.spec.maintenance.history
    late_ms = max(share.until_ms for share in prepare_undo(scene.spec, scene.at).tables) + 10 * 86_400_000

    def kept() -> list[bool]:
        found = []
        for table, before in zip(scene.tables(), befores, strict=True):
            table.read_ledger()
            found.append(before in left_by_repairs(past_of(table.history(), table.spec.id), policy, late_ms))
        return found

    assert kept() == [True, True]
    apply_undo(scene.spec, scene.at, plan)
    assert kept() == [False, False] and scene.shown() == scene.expected(0, 0, landed=LANDED)
