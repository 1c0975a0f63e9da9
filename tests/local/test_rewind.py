"""Rewinds of whole pipelines: planned, applied, cut short, undone. Real tables of both formats, no JVM."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyiceberg.table.update import RemoveSnapshotsUpdate
from tests.local_tables import TOPIC, lander, offsets
from tests.rewinding import StandInKafka, World, make_world, now_ms, readable

from lakebound import prove as prove_module
from lakebound.control import ControlFolder
from lakebound.desired import change_desired, read_desired
from lakebound.errors import LeaseLostError, TableRestoredError, UnknownTableError, VersionGoneError
from lakebound.incidents import read_incidents
from lakebound.ledger import Entry
from lakebound.recovery import rewind_apply
from lakebound.recovery.plan import PlanChangedError, PlanRefusedError
from lakebound.recovery.rewind_facts import Rewinding
from lakebound.spec import TableSpec
from lakebound.tables import Table, open_table
from lakebound.tables.delta import DeltaLakeTable
from lakebound.tables.iceberg import IcebergTable
from lakebound.tables.iceberg_catalog import open_catalog


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr(prove_module, "read_offsets", readable)
    return make_world(tmp_path)


def control(world: World) -> ControlFolder:
    return ControlFolder(world.at.home, world.spec.pipeline)


def assert_landed_once(world: World, end: int, bad: tuple[int, ...] = ()) -> None:
    good = [offset for offset in range(end) if offset not in bad]
    assert [world.rows(table) for table in world.all] == [good, good, list(bad)]
    proof = world.prove(end)
    assert proof.ok, [problem for table in proof.tables for problem in table.problems]
    assert (proof.missing, proof.duplicated) == (0, 0)


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
    assert read_incidents(control(world)) == [incident]
    world.relands(30, bad=(3, 12, 15))
    assert_landed_once(world, 30, (3, 12, 15))


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
    assert page.count("`--undo`") == 3 and "cannot be known" in page
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


def test_another_plan_than_the_approved_one_is_not_applied(world: World) -> None:
    world.land(0, 10)
    then = now_ms()
    world.land(10, 20)
    with pytest.raises(PlanChangedError, match="0123456789ab was approved"):
        world.apply(then, approved="0123456789ab")
    assert world.rows(world.delta) == list(range(20)) and read_incidents(control(world)) == []
    assert read_desired(control(world)).state == "running"


def test_facts_that_changed_while_the_application_ended_leave_the_pipeline_as_it_was(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its last batch, or Kafka's retention, may have made another plan of it."""
    world.land(0, 10)
    then = now_ms()
    world.land(10, 20)
    approved = world.plan(then).hash
    kinds: list[str] = []
    make_plan = rewind_apply.make_plan

    def make_plan_in_a_hurry(*arguments: Any, **options: Any) -> Rewinding:
        kinds.append(read_desired(control(world)).state)
        if len(kinds) == 2:
            world.kafka = StandInKafka(earliest=15)
        return make_plan(*arguments, **{**options, "kafka": world.kafka})

    monkeypatch.setattr(rewind_apply, "make_plan", make_plan_in_a_hurry)
    with pytest.raises(PlanRefusedError, match="Kafka no longer has 5"):
        world.apply(then, approved=approved)
    assert kinds == ["running", "held"] and read_desired(control(world)).state == "running"
    assert world.rows(world.iceberg) == list(range(20)) and read_incidents(control(world)) == []


def test_tables_a_batch_apart_go_back_each_to_its_own_version(world: World) -> None:
    world.land(0, 10)
    world.land(10, 20, bad=[11], tables=[world.delta])
    then = now_ms()
    world.land(10, 20, tables=[world.iceberg])
    world.apply(then)
    assert [world.coverage_end(table) for table in world.spec.tables] == [20, 10]
    world.relands(20, bad=(11,))
    assert_landed_once(world, 20, (11,))


def test_one_table_alone_goes_back_and_the_quarantine_stays(world: World) -> None:
    world.land(0, 10)
    then = now_ms()
    world.land(10, 20, bad=[15])
    plan = world.plan(then, table="iceberg:shop.orders")
    assert [step.table for step in plan.steps if step.table] == [world.iceberg.id]
    assert any("quarantine stays" in note for note in plan.notes) and any(world.delta.id in note for note in plan.notes)
    world.apply(then, table="iceberg:shop.orders")
    assert [world.coverage_end(table) for table in world.all[:2]] == [20, 10]
    assert world.rows(world.spec.quarantine_table) == [15]
    world.relands(20, bad=(15,))
    assert_landed_once(world, 20, (15,))


def test_the_only_table_takes_the_quarantine_with_it(tmp_path: Path) -> None:
    world = make_world(tmp_path, tables=[{"format": "delta", "name": "shop.orders"}])
    world.land(0, 10)
    then = now_ms()
    world.land(10, 20, bad=[15])
    world.apply(then, table="shop.orders")
    assert world.rows(world.spec.quarantine_table) == [] and world.rows(world.delta) == list(range(10))


def test_the_quarantine_alone_and_an_unknown_table_are_refused(world: World) -> None:
    world.land(0, 10)
    with pytest.raises(PlanRefusedError, match="with the tables only"):
        world.plan(now_ms(), table=world.spec.quarantine_table.id)
    with pytest.raises(UnknownTableError, match="'elsewhere'"):
        world.plan(now_ms(), table="elsewhere")


def test_a_time_before_the_oldest_version_is_refused_with_its_time(world: World) -> None:
    world.land(0, 10)
    with pytest.raises(
        PlanRefusedError, match=r"no version at or before 2001-09-09 01:46:40 UTC: the oldest that is kept is of 2"
    ):
        world.plan(1_000_000_000_000)


def test_what_kafka_no_longer_has_is_named_and_refused(world: World) -> None:
    world.land(0, 10)
    then = now_ms()
    world.land(10, 30)
    world.kafka = StandInKafka(earliest=10)
    assert world.plan(then).replays_records == 20
    world.kafka = StandInKafka(earliest=14)
    with pytest.raises(PlanRefusedError, match=rf"4 of the offsets .*: {TOPIC} partition 0 \[10, 14\)"):
        world.plan(then)


def test_a_recreated_topic_is_refused(world: World) -> None:
    world.land(0, 10)
    then = now_ms()
    world.land(10, 20)
    world.kafka = StandInKafka(topic_id="another")
    with pytest.raises(PlanRefusedError, match="was recreated"):
        world.plan(then)


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
    change_desired(control(world), state, freshness="2s", reason="of old", by="somebody")  # type: ignore[arg-type]
    states: list[str] = []
    restore = DeltaLakeTable.restore

    def look(self: DeltaLakeTable, version: str, entry: Entry) -> str:
        states.append(read_desired(control(world)).state)
        return restore(self, version, entry)

    monkeypatch.setattr(DeltaLakeTable, "restore", look)
    world.apply(then)
    desired = read_desired(control(world))
    assert states == ["held", "held"]
    assert (desired.state, desired.freshness, desired.reason, desired.by) == (state, "2s", "of old", "somebody")


class PowerCutError(Exception):
    """The process is gone."""


def cut_short_at(monkeypatch: pytest.MonkeyPatch, kind: type[Table], *, after: bool = False) -> None:
    restore = kind.restore

    def cut(self: Table, version: str, entry: Entry) -> str:
        if after:
            restore(self, version, entry)
        raise PowerCutError

    monkeypatch.setattr(kind, "restore", cut)


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
    assert read_desired(control(world)).state == "held"
    assert [world.rows(table)[-1] for table in world.all] == [9, 19, 12]
    assert "cut short" in read_incidents(control(world))[0].outcome
    if starts_between:
        world.relands(30, bad=(3, 12))
        assert_landed_once(world, 30, (3, 12))
    world.apply(then, approved=approved)
    assert [world.rows(table)[-1] for table in world.all] == [9, 9, 3]
    world.relands(30, bad=(3, 12))
    assert_landed_once(world, 30, (3, 12))


def test_a_restore_whose_answer_is_lost_is_found_in_the_table(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.land(0, 10)
    then = now_ms()
    world.land(10, 20)
    cut_short_at(monkeypatch, IcebergTable, after=True)
    incident = world.apply(then)
    monkeypatch.undo()
    newest = next(open_table(world.iceberg, world.at).versions()).version
    put_back = {done["table"]: done["as"] for done in incident.facts["tables"]}
    assert incident.outcome == "done" and put_back[world.iceberg.id] == newest
    assert [world.rows(table) for table in world.all] == [list(range(10)), list(range(10)), []]


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
    assert_landed_once(world, 40, (3, 12, 33))
    with pytest.raises(PlanRefusedError, match="undone already"):
        world.plan(None)


def test_undone_after_another_verdict_on_the_same_records_the_first_one_holds_again(world: World) -> None:
    """A transform was changed between: the entries of what was undone say nothing of the rows that are back."""
    world.land(0, 10)
    then = now_ms()
    world.land(10, 20)
    world.apply(then)
    world.relands(20, bad=(11, 12))
    assert_landed_once(world, 20, (11, 12))
    world.apply(None)
    assert_landed_once(world, 20)
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
    assert_landed_once(world, 50, (45,))


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
    assert_landed_once(world, 20, (3, 12))
    with pytest.raises(PlanRefusedError, match="undone already"):
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
    assert_landed_once(world, 20)


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
    assert_landed_once(world, 20)


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
    assert_landed_once(world, 30, (25,))


def test_what_vacuum_took_is_refused(world: World) -> None:
    world.land(0, 10)
    world.land(10, 20)
    then = now_ms()
    world.land(20, 30)
    handle = DeltaTable(str(world.at.delta_path(world.delta)))
    handle.optimize.compact()
    handle.vacuum(0, dry_run=False, enforce_retention_duration=False)
    with pytest.raises(PlanRefusedError, match="2 of its data files are gone"):
        world.plan(then)


def test_a_snapshot_that_expired_leaves_the_one_before_it(world: World) -> None:
    """As far back as history is kept: a time whose version is gone is not answered with an older one that is not."""
    world.land(0, 10)
    world.land(10, 20)
    then = now_ms()
    world.land(20, 30)
    old = [version.version for version in open_table(world.iceberg, world.at).versions()][1:]
    catalog = open_catalog(world.at.iceberg_catalog_uri, world.at.iceberg_warehouse)
    table = catalog.load_table(world.iceberg.name)
    catalog.commit_table(table, (), (RemoveSnapshotsUpdate(snapshot_ids=[int(version) for version in old]),))
    with pytest.raises(PlanRefusedError, match=r"iceberg:shop.orders has no version at or before .* each alone"):
        world.plan(then)
    assert world.plan(then, table=world.delta.id).removes_rows == {world.delta.id: 10}


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
    assert_landed_once(world, 30)


def test_a_replay_that_filled_a_gap_since_is_told(world: World) -> None:
    world.land(0, 10)
    world.land(20, 30)
    then = now_ms()
    world.land(10, 20)
    world.land(30, 40)
    plan = world.plan(then)
    (note,) = {note.partition(" then ")[2] for note in plan.notes if "lakebound replay" in note}
    assert note.startswith(f"lacks {TOPIC}/0 [10, 20), below where the stream starts")
    assert plan.replays_records == 10


def test_a_pipeline_without_tables_is_refused(world: World) -> None:
    spec = TableSpec(format="delta", name="shop.nothing")
    world.spec = world.spec.model_copy(update={"tables": (spec,)})
    with pytest.raises(PlanRefusedError, match="not there yet"):
        world.plan(now_ms())


def test_a_version_that_the_log_no_longer_leads_to_is_refused(world: World) -> None:
    world.land(0, 10)
    then = now_ms()
    world.land(10, 20)
    folder = world.at.delta_path(world.delta)
    DeltaTable(str(folder)).create_checkpoint()
    for version in range(2):
        (folder / "_delta_log" / f"{version:020d}.json").unlink()
    with pytest.raises(VersionGoneError, match="version 2 cannot be brought back"):
        world.plan(then)


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
