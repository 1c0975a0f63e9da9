"""What a redo and its undoing note for the events of the tables' assets, in real tables of both formats."""

from __future__ import annotations

import pytest
from tests.support.tables.local_tables import TOPIC
from tests.support.tables.redoing import Scene, scene_fixture  # noqa: F401

from lakebound import faults
from lakebound.control.desired import change_desired
from lakebound.control.incidents import read_incidents
from lakebound.control.redone import Redone, read_redone
from lakebound.operations.redo import announce
from lakebound.operations.redo.apply import apply_undo_of_redo
from lakebound.operations.redo.undo_facts import prepare_undo


def told(scene: Scene) -> list[tuple[str, str | None, dict[str, list[tuple[str, int, int, int]]]]]:
    """Return what was noted, newest first: plan, what it undid, and the ranges of each table."""
    return [(one.plan, one.undoes, {table: _ranges(one, table) for table in one.tables}) for one in read_redone(scene.control)]


def _ranges(one: Redone, table: str) -> list[tuple[str, int, int, int]]:
    return [(held.topic, held.partition, held.first_offset, held.next_offset) for held in one.tables[table].ranges]


def of_both(scene: Scene, start: int, end: int) -> dict[str, list[tuple[str, int, int, int]]]:
    return {one.id: [(TOPIC, 0, start, end)] for one in scene.spec.tables}


def undo(scene: Scene) -> str:
    plan = prepare_undo(scene.spec, scene.at).hash
    apply_undo_of_redo(scene.spec, scene.at, plan, by="bob", asked_by="ada")
    return plan


def test_a_redo_and_its_undoing_are_noted_with_the_version_that_has_the_rows(scene: Scene) -> None:
    scene.run(20, 330)
    assert told(scene) == [("plan-1", None, of_both(scene, 20, 330))]
    (redo,) = read_redone(scene.control)
    assert {name: one.version for name, one in redo.tables.items()} == _versions(scene)
    scene.run(20, 330)
    assert len(told(scene)) == 1, "there was nothing left to do"
    plan = undo(scene)
    assert told(scene)[0] == (plan, "plan-1", of_both(scene, 20, 330))
    newest = read_redone(scene.control)[0]
    assert (newest.source_before, newest.source_after) == (redo.source_after, redo.source_before)
    assert {name: one.version for name, one in newest.tables.items()} == _versions(scene)
    scene.run(20, 330)
    assert told(scene)[0][:2] == ("plan-1", None) and len(told(scene)) == 3


def _versions(scene: Scene) -> dict[str, str]:
    return {table.spec.id: table.read_ledger().version for table in scene.tables()}


def test_what_a_killed_run_had_committed_is_told_by_the_next_one(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    reach, seen = faults.reach, list[str]()

    def die(where: str, detail: str = "") -> None:
        reach(where, detail)
        if where == "after_commit":
            seen.append(where)
            if len(seen) == 3:
                raise KeyboardInterrupt

    monkeypatch.setattr(faults, "reach", die)
    with pytest.raises(KeyboardInterrupt):
        scene.run(0, 300)
    monkeypatch.setattr(faults, "reach", reach)
    assert told(scene) == []
    assert scene.run(0, 300).state == "completed"
    assert told(scene) == [("plan-1", None, of_both(scene, 0, 300))]


def test_a_run_that_was_ended_early_tells_what_it_has_done(scene: Scene) -> None:
    scene.meanwhile[2] = lambda: change_desired(scene.control, "held", reason="wait", by="ada")
    assert scene.run(0, 300).state == "refused"
    assert told(scene) == [("plan-1", None, of_both(scene, 0, 200))]


@pytest.mark.parametrize("error", [OSError("no space left on device"), RuntimeError("from a store's own library")])
def test_a_redo_and_its_undoing_are_done_and_recorded_although_they_cannot_be_noted(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fails(*_: object) -> None:
        raise error

    monkeypatch.setattr(announce, "note_redone", fails)
    assert scene.run(0, 300).state == "completed"
    assert scene.shown() == scene.expected(0, 300)
    plan = undo(scene)
    assert scene.shown() == scene.expected(0, 0) and told(scene) == []
    assert [incident.facts["plan"] for incident in read_incidents(scene.control)] == [plan]
