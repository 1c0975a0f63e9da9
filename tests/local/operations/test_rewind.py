"""Rewinds of whole pipelines: planned, applied, cut short, repeated. Real tables of both formats, no JVM."""

from __future__ import annotations

from pathlib import Path

import pytest
from deltalake import DeltaTable
from tests.support.tables.local_tables import TOPIC, lander, offsets
from tests.support.tables.rewinding import PowerCutError, StandInKafka, World, cut_short_at, make_world, now_ms, world_fixture  # noqa: F401

from lakebound.control.desired import change_desired, read_desired
from lakebound.control.incidents import read_incidents
from lakebound.errors import CatalogUnavailableError, CommitRefusedError, LeaseLostError, TableRestoredError
from lakebound.ledger.entry import Entry
from lakebound.operations.recovery.plan import PlanRefusedError
from lakebound.tables.delta.table import DeltaLakeTable
from lakebound.tables.iceberg.table import IcebergTable
from lakebound.tables.table import open_table


def test_tables_and_quarantine_go_back_and_everything_is_landed_again(world: World) -> None:
    world.land(0, 10, bad=[3])
    then = now_ms()
    world.land(10, 20, bad=[12, 15])
    world.land(20, 30)
    incident = world.apply(then)
    assert [world.rows(table) for table in world.all] == [[*range(3), *range(4, 10)]] * 2 + [[3]]
    assert [world.coverage_end(table) for table in world.all] == [10, 10, 10]
    assert world.prove(30).ok
    assert (incident.kind, incident.outcome, incident.approved_by) == ("rewind", "done", "a test")
    assert read_incidents(world.control) == [incident]
    world.relands(30, bad=(3, 12, 15))
    world.assert_landed_once(30, (3, 12, 15))


def test_the_plan_tells_what_goes_and_what_is_read_again(world: World) -> None:
    world.land(0, 10, bad=[3])
    then = now_ms()
    world.land(10, 25, bad=[12])
    plan = world.plan(then)
    assert plan.action == "rewind" and plan.replays_records == 15 and plan.loses == ()
    assert plan.removes_rows == {world.delta.id: 14, world.iceberg.id: 14, world.spec.quarantine_table.id: 1}
    assert [step.table for step in plan.steps] == [None, *(table.id for table in world.all), None]
    page = plan.markdown()
    assert f"{TOPIC} partition 0: [10, 25) is read again; Kafka has it" in page
    assert page.count("`--undo`") == 3 and "does not know who has read" in page
    assert world.rows(world.delta) == [offset for offset in range(25) if offset not in (3, 12)], "a plan writes nothing"


def test_the_hash_stays_while_the_stream_runs(world: World) -> None:
    world.land(0, 10)
    then = now_ms()
    world.land(10, 20)
    before = world.plan(then)
    world.land(20, 40, bad=[33])
    after = world.plan(then)
    assert after.hash == before.hash and after.replays_records == 30 > before.replays_records
    assert world.plan(now_ms()).hash != before.hash


def test_tables_a_batch_apart_go_back_each_to_its_own_version(world: World) -> None:
    world.land(0, 10)
    world.land(10, 20, bad=[11], tables=[world.delta])
    then = now_ms()
    world.land(10, 20, tables=[world.iceberg])
    world.apply(then)
    assert [world.coverage_end(table) for table in world.spec.tables] == [20, 10]
    world.relands(20, bad=(11,))
    world.assert_landed_once(20, (11,))


def test_one_table_alone_goes_back_and_the_quarantine_stays(world: World) -> None:
    world.land(0, 10)
    then = now_ms()
    world.land(10, 20, bad=[15])
    plan = world.plan(then, table="iceberg:shop.orders")
    assert [step.table for step in plan.steps if step.table] == [world.iceberg.id]
    assert any("quarantine does not change" in note for note in plan.notes)
    assert any(world.delta.id in note for note in plan.notes)
    world.apply(then, table="iceberg:shop.orders")
    assert [world.coverage_end(table) for table in world.all[:2]] == [20, 10]
    assert world.rows(world.spec.quarantine_table) == [15]
    world.relands(20, bad=(15,))
    world.assert_landed_once(20, (15,))


def test_the_only_table_takes_the_quarantine_with_it(tmp_path: Path) -> None:
    world = make_world(tmp_path, tables=[{"format": "delta", "name": "shop.orders"}])
    world.land(0, 10)
    then = now_ms()
    world.land(10, 20, bad=[15])
    world.apply(then, table="shop.orders")
    assert world.rows(world.spec.quarantine_table) == [] and world.rows(world.delta) == list(range(10))


def test_an_application_from_before_is_a_zombie_in_every_table(world: World) -> None:
    world.land(0, 10)
    then = now_ms()
    world.land(10, 20)
    zombies = [lander(table, world.at, epoch=world.epoch) for table in world.all]
    world.apply(then)
    for zombie in zombies:
        with pytest.raises(LeaseLostError):
            zombie.land(20, 30)
    assert [world.rows(table) for table in world.all] == [list(range(10)), list(range(10)), []]


@pytest.mark.parametrize("state", ["running", "stopped"])
def test_the_pipeline_is_held_meanwhile_and_wanted_as_before_afterwards(
    world: World, monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    world.land(0, 10)
    then = now_ms()
    world.land(10, 20)
    change_desired(world.control, state, freshness="2s", reason="of old", by="somebody")  # type: ignore[arg-type]
    states: list[str] = []
    restore = DeltaLakeTable.restore

    def look(self: DeltaLakeTable, version: str, entry: Entry) -> str:
        states.append(read_desired(world.control).state)
        return restore(self, version, entry)

    monkeypatch.setattr(DeltaLakeTable, "restore", look)
    world.apply(then)
    desired = read_desired(world.control)
    assert states == ["held", "held"]
    assert (desired.state, desired.freshness, desired.reason, desired.by) == (state, "2s", "of old", "somebody")


@pytest.mark.parametrize("starts_between", [False, True])
def test_cut_short_between_two_tables_it_is_finished_by_applying_again(
    world: World, monkeypatch: pytest.MonkeyPatch, starts_between: bool
) -> None:
    world.land(0, 10, bad=[3])
    then = now_ms()
    world.land(10, 20, bad=[12])
    approved = world.plan(then).hash
    with monkeypatch.context() as patched:
        cut_short_at(patched, IcebergTable)
        with pytest.raises(PowerCutError):
            world.apply(then, approved=approved)
    assert read_desired(world.control).state == "held"
    assert [world.rows(table)[-1] for table in world.all] == [9, 19, 12]
    assert "interrupted" in read_incidents(world.control)[0].outcome
    if starts_between:
        world.relands(30, bad=(3, 12))
        world.assert_landed_once(30, (3, 12))
    world.apply(then, approved=approved)
    assert [world.rows(table)[-1] for table in world.all] == [9, 9, 3]
    world.relands(30, bad=(3, 12))
    world.assert_landed_once(30, (3, 12))


@pytest.mark.parametrize(
    "error", [None, CatalogUnavailableError("a catalog", "status 503"), CommitRefusedError("a table", "status 409")]
)
def test_a_restore_whose_answer_is_lost_is_found_in_the_table(
    world: World, monkeypatch: pytest.MonkeyPatch, error: Exception | None
) -> None:
    """A catalog's refusal may be that of a request that a gateway has repeated."""
    world.land(0, 10)
    then = now_ms()
    world.land(10, 20)
    cut_short_at(monkeypatch, IcebergTable, after=True, error=error)
    incident = world.apply(then)
    monkeypatch.undo()
    newest = next(open_table(world.iceberg, world.at).history().versions()).version
    put_back = {done["table"]: done["as"] for done in incident.facts["tables"]}
    assert incident.outcome == "done" and put_back[world.iceberg.id] == newest
    assert [world.rows(table) for table in world.all] == [list(range(10)), list(range(10)), []]


def test_a_table_restored_by_hand_is_put_right_by_a_rewind_to_before(world: World) -> None:
    world.land(0, 10)
    world.land(10, 20)
    then = now_ms()
    DeltaTable(str(world.at.delta_path(world.delta))).restore(2)
    by_hand = now_ms()
    with pytest.raises(TableRestoredError):
        world.plan(by_hand)
    world.apply(then)
    world.relands(30)
    world.assert_landed_once(30)


def test_a_replay_that_filled_a_gap_since_is_told(world: World) -> None:
    world.land(0, 10)
    world.land(20, 30)
    then = now_ms()
    world.land(10, 20)
    world.land(30, 40)
    plan = world.plan(then)
    (note,) = {note.partition(" will ")[2] for note in plan.notes if "lakebound replay" in note}
    assert note.startswith(f"lack {TOPIC}/0 [10, 20), which a replay had landed")
    assert plan.replays_records == 10


def test_a_partition_that_came_later_is_read_again_from_where_its_landing_began(world: World) -> None:
    """Its first offset is in no entry of the version: Kafka's earliest, or latest, offset would be the wrong place."""
    world.land(0, 10)
    then = now_ms()
    world.cover(offsets(7, 12, partition=1))
    world.kafka = StandInKafka(partitions=2)
    plan = world.plan(then)
    assert plan.replays_records == 5 and f"{TOPIC} partition 1: [7, 12) is read again; Kafka has it" in plan.notes
    world.kafka = StandInKafka(partitions=2, earliest=9)
    with pytest.raises(PlanRefusedError, match=r"partition 1 \[7, 9\)"):
        world.plan(then)
    world.kafka = StandInKafka(partitions=2)
    world.apply(then)
    held = open_table(world.delta, world.at).read_ledger().coverage
    assert held[TOPIC].partitions == {0: ((0, 10),), 1: ((7, 7),)}
