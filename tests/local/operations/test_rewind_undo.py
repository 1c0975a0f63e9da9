"""Rewinds that are undone, and rewinds of rewinds. Real tables of both formats, no JVM."""

from __future__ import annotations

import pytest
from tests.support.tables.rewinding import PowerCutError, World, cut_short_at, now_ms, world_fixture  # noqa: F401

from lakebound.operations.recovery.plan import PlanRefusedError
from lakebound.tables.iceberg.table import IcebergTable


def test_undone_the_tables_are_what_they_were_and_what_landed_since_is_landed_again(world: World) -> None:
    world.land(0, 10, bad=[3])
    then = now_ms()
    world.land(10, 20, bad=[12])
    rewind = world.plan(then)
    world.apply(then)
    world.relands(15, bad=(3, 12))
    undo = world.plan(None)
    assert undo.action == "undo_rewind" and undo.facts["undoes"] == rewind.hash
    assert undo.replays_records == 0
    world.apply(None)
    assert [world.coverage_end(table) for table in world.spec.tables] == [20, 20]
    world.relands(40, bad=(3, 12, 33))
    world.assert_landed_once(40, (3, 12, 33))
    with pytest.raises(PlanRefusedError, match="already undone"):
        world.plan(None)


def test_undone_after_another_verdict_on_the_same_records_the_first_one_holds_again(world: World) -> None:
    """A transform was changed between: the entries of what was undone say nothing of the rows that are back."""
    world.land(0, 10)
    then = now_ms()
    world.land(10, 20)
    world.apply(then)
    world.relands(20, bad=(11, 12))
    world.assert_landed_once(20, (11, 12))
    world.apply(None)
    world.assert_landed_once(20)
    assert sum(table.rows for table in world.prove(20).tables) == 40


def test_undone_after_the_stream_went_further_it_reads_the_rest_again(world: World) -> None:
    world.land(0, 10)
    then = now_ms()
    world.land(10, 20)
    world.apply(then)
    world.relands(50, bad=(45,))
    assert world.plan(None).replays_records == 30
    world.apply(None)
    assert [world.rows(table) for table in world.all] == [list(range(20)), list(range(20)), []]
    world.relands(50, bad=(45,))
    world.assert_landed_once(50, (45,))


def test_an_undo_that_was_cut_short_is_finished_by_applying_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.land(0, 10, bad=[3])
    then = now_ms()
    world.land(10, 20, bad=[12])
    world.apply(then)
    approved = world.plan(None).hash
    with monkeypatch.context() as patched:
        cut_short_at(patched, IcebergTable)
        with pytest.raises(PowerCutError):
            world.apply(None, approved=approved)
    assert [world.rows(table)[-1] for table in world.all] == [19, 9, 12], "the quarantine goes forward before the tables"
    world.apply(None, approved=approved)
    world.assert_landed_once(20, (3, 12))
    with pytest.raises(PlanRefusedError, match="already undone"):
        world.plan(None)


def test_a_rewind_that_was_cut_short_and_finished_is_undone_whole(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.land(0, 10)
    then = now_ms()
    world.land(10, 20)
    with monkeypatch.context() as patched:
        cut_short_at(patched, IcebergTable)
        with pytest.raises(PowerCutError):
            world.apply(then)
    world.start()
    world.apply(then)
    world.apply(None)
    world.assert_landed_once(20)


def test_what_was_never_rewound_cannot_be_undone(world: World) -> None:
    world.land(0, 10)
    with pytest.raises(PlanRefusedError, match="no rewind"):
        world.plan(None)


def test_only_the_table_that_was_rewound_is_undone(world: World) -> None:
    world.land(0, 10)
    then = now_ms()
    world.land(10, 20)
    world.apply(then, table=world.delta.id)
    assert [step.table for step in world.plan(None).steps if step.table] == [world.delta.id]
    world.apply(None)
    world.assert_landed_once(20)


def test_a_second_rewind_further_back_and_one_to_what_the_first_undid(world: World) -> None:
    world.land(0, 10)
    first = now_ms()
    world.land(10, 20)
    second = now_ms()
    world.land(20, 30, bad=[25])
    world.apply(second)
    world.relands(30, bad=(25,))
    relanded = now_ms()
    world.apply(first)
    assert [world.rows(table) for table in world.all] == [list(range(10)), list(range(10)), []]
    world.relands(12)
    world.apply(relanded)
    world.assert_landed_once(30, (25,))
