"""Rewinds that are not made: the facts, the approval or the history forbid it. Real tables of both formats, no JVM."""

from __future__ import annotations

from typing import Any

import pytest
from deltalake import DeltaTable
from pyiceberg.table.update import RemoveSnapshotsUpdate
from tests.support.tables.local_tables import TOPIC
from tests.support.tables.rewinding import StandInKafka, World, now_ms, world_fixture  # noqa: F401

from lakebound.control.desired import read_desired
from lakebound.control.incidents import read_incidents
from lakebound.errors import UnknownTableError
from lakebound.operations.recovery.plan import PlanChangedError, PlanRefusedError
from lakebound.operations.recovery.rewind import apply as rewind_apply
from lakebound.operations.recovery.rewind.facts import Rewinding
from lakebound.spec.table import TableSpec
from lakebound.tables.iceberg.open import open_catalog
from lakebound.tables.table import VersionGoneError, open_table


def test_another_plan_than_the_approved_one_is_not_applied(world: World) -> None:
    world.land(0, 10)
    then = now_ms()
    world.land(10, 20)
    with pytest.raises(PlanChangedError, match="0123456789ab was approved"):
        world.apply(then, approved="0123456789ab")
    assert world.rows(world.delta) == list(range(20)) and read_incidents(world.control) == []
    assert read_desired(world.control).state == "running"


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
        kinds.append(read_desired(world.control).state)
        if len(kinds) == 2:
            world.kafka = StandInKafka(earliest=15)
        return make_plan(*arguments, **{**options, "kafka": world.kafka})

    monkeypatch.setattr(rewind_apply, "make_plan", make_plan_in_a_hurry)
    with pytest.raises(PlanRefusedError, match="Kafka no longer has 5"):
        world.apply(then, approved=approved)
    assert kinds == ["running", "held"] and read_desired(world.control).state == "running"
    assert world.rows(world.iceberg) == list(range(20)) and read_incidents(world.control) == []


def test_the_quarantine_alone_and_an_unknown_table_are_refused(world: World) -> None:
    world.land(0, 10)
    with pytest.raises(PlanRefusedError, match="only together with the tables"):
        world.plan(now_ms(), table=world.spec.quarantine_table.id)
    with pytest.raises(UnknownTableError, match="'elsewhere'"):
        world.plan(now_ms(), table="elsewhere")


def test_a_time_before_the_oldest_version_is_refused_with_its_time(world: World) -> None:
    world.land(0, 10)
    with pytest.raises(
        PlanRefusedError, match=r"no version at or before 2001-09-09 01:46:40 UTC: the oldest kept version is of 2"
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
    old = [version.version for version in open_table(world.iceberg, world.at).history().versions()][1:]
    catalog = open_catalog(world.at)
    table = catalog.load_table(world.iceberg.name)
    catalog.commit_table(table, (), (RemoveSnapshotsUpdate(snapshot_ids=[int(version) for version in old]),))
    with pytest.raises(PlanRefusedError, match=r"iceberg:shop.orders has no version at or before .* each of them alone"):
        world.plan(then)
    assert world.plan(then, table=world.delta.id).removes_rows == {world.delta.id: 10}


def test_a_pipeline_without_tables_is_refused(world: World) -> None:
    spec = TableSpec(format="delta", name="shop.nothing")
    world.spec = world.spec.model_copy(update={"tables": (spec,)})
    with pytest.raises(PlanRefusedError, match="none of its tables exists yet"):
        world.plan(now_ms())


def test_a_version_that_the_log_no_longer_leads_to_is_refused(world: World) -> None:
    world.land(0, 10)
    then = now_ms()
    world.land(10, 20)
    folder = world.at.delta_path(world.delta)
    DeltaTable(str(folder)).create_checkpoint()
    for version in range(2):
        (folder / "_delta_log" / f"{version:020d}.json").unlink()
    with pytest.raises(VersionGoneError, match="version 2 cannot be restored"):
        world.plan(then)
