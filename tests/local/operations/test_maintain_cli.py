"""``lakebound maintain --plan`` on real tables: what it says, what it leaves alone, and that the plan does what it says."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.streams.command_line import ORDERS, answer, lakebound, settings
from tests.support.tables.maintained import content, live_files_of, small_commits

from lakebound.control.folder import ControlFolder
from lakebound.control.table_history import read_table_history
from lakebound.operations.maintenance.next_run import plan_and_note, plan_now
from lakebound.operations.maintenance.past_reading import read_runs, record_run
from lakebound.operations.maintenance.run import run_steps
from lakebound.operations.maintenance.steps import MaintenancePlan, StepEffect
from lakebound.operations.maintenance.table_engine import TableEngine
from lakebound.operations.recovery.rewind.choice import split_at
from lakebound.settings import Settings
from lakebound.spec.load import load_pipeline
from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.table import TableSpec
from lakebound.tables.places import Places, places_of
from lakebound.tables.table import open_table

__all__ = ["settings"]

DELTA = TableSpec(format="delta", name="lake.orders")
ICEBERG = TableSpec(format="iceberg", name="lake.orders")
EAGER = {
    "every_commits": 1,
    "cooldown_seconds": 0,
    "compaction": {"hot_seconds": 0, "min_small_files": 5, "target_file_bytes": 1048576},
    "max_log_tail_commits": 10,
}
LATER_MS = 10 * 86_400_000


def write(settings: Settings, **changes: Any) -> tuple[PipelineSpec, Places]:
    (settings.pipelines / "orders.yaml").write_text(yaml.safe_dump({**ORDERS, **changes}))
    return load_pipeline("orders", settings), places_of(settings, "default")


def steps(plan: MaintenancePlan, table: TableSpec) -> list[str]:
    return [step.kind for step in plan.steps if step.table == table.id]


def test_without_tables_there_is_nothing_to_do_and_nothing_is_made(settings: Settings) -> None:
    out = lakebound("maintain", "orders", "--plan").stdout
    assert out.splitlines()[0] == "orders: nothing is due"
    assert "not done: delta:lake.orders: there is no such table yet" in out
    assert not settings.warehouse.exists() and not settings.home.exists()


def test_one_must_say_what_is_wanted(settings: Settings) -> None:
    assert "--plan" in lakebound("maintain", "orders", code=2).stderr
    assert (
        "has no table 'none', or more than one" in lakebound("maintain", "orders", "--plan", "--table", "none", code=1).stderr
    )
    assert "there is no pipeline 'nobody'" in lakebound("maintain", "nobody", "--plan", code=1).stderr


def test_the_plan_of_real_tables(settings: Settings) -> None:
    _, at = write(settings, maintenance=EAGER)
    for table in (DELTA, ICEBERG):
        small_commits(table, at, 12)
    out = lakebound("maintain", "orders", "--plan").stdout
    assert "12 small files; the limit is 5; 12 of" in out and "become 1" in out
    assert "vacuum (full)" in out and "remove orphans (dry run)" in out and "checkpoint log" in out
    assert "not done: delta:quarantine.orders: there is no such table yet" in out
    body = answer("maintain", "orders", "--plan")
    plan = MaintenancePlan.model_validate(body)
    assert steps(plan, DELTA) == ["compact", "checkpoint_log", "vacuum", "remove_orphans"]
    assert steps(plan, ICEBERG) == ["compact", "remove_orphans"]
    assert [step.files_removed for step in plan.steps if step.kind == "compact"] == [11, 11]
    one = answer("maintain", "orders", "--plan", "--table", "iceberg:lake.orders")
    assert {step["table"] for step in one["steps"]} == {ICEBERG.id} and one["left"] == []


def test_the_history_that_is_written_down_names_what_a_rewind_goes_back_to(settings: Settings) -> None:
    spec, at = write(settings, maintenance=EAGER)
    for table in (DELTA, ICEBERG):
        small_commits(table, at, 6)
    assert steps(plan_and_note(spec, at), DELTA) == steps(plan_now(spec, at), DELTA)
    found = read_table_history(ControlFolder(settings.home, "orders"))
    assert found.keys() == {DELTA.id, ICEBERG.id}
    for table in (DELTA, ICEBERG):
        versions = [*open_table(table, at).history().versions()]
        known = found[table.id]
        assert known.versions == len(versions) and known.targets[-1].version == versions[0].version
        for target in known.targets:
            _, reached = split_at(iter(versions), round(target.at * 1000))
            assert reached is not None and reached.version == target.version
    (settings.home / "pipelines" / "orders" / "table-history.json").write_text("{")
    plan_and_note(spec, at)
    assert read_table_history(ControlFolder(settings.home, "orders")).keys() == found.keys(), "a torn file is replaced"


def test_warnings_of_a_tables_properties_are_shown_by_plan_and_by_check(settings: Settings) -> None:
    dangerous = {"delta.logRetentionDuration": "interval 1 hour"}
    _, at = write(settings, tables=[{"format": "delta", "name": "lake.orders", "properties": dangerous}])
    small_commits(DELTA.model_copy(update={"properties": dangerous}), at, 2)
    warning = "warning: delta:lake.orders: delta.logRetentionDuration = 'interval 1 hour' is less than 24 hours"
    assert warning in lakebound("maintain", "orders", "--plan").stdout
    checked = lakebound("check", "--static").stdout
    assert checked.startswith("orders: valid\n") and warning in checked
    assert len(answer("check", "--static")["warnings"]) == 1


def test_a_reader_whose_checkpoint_is_lost_blocks_and_is_said(settings: Settings, tmp_path: Path) -> None:
    reader = {"name": "dashboard", "table": "delta:lake.orders", "checkpoint": str(tmp_path / "nowhere")}
    spec, at = write(settings, maintenance={**EAGER, "readers": [reader]})
    small_commits(DELTA, at, 12)
    plan = plan_now(spec, at)
    assert steps(plan, DELTA) == ["compact", "checkpoint_log"]
    assert "none of its old versions is removed: reader 'dashboard'" in plan.left[0]


@pytest.mark.parametrize(
    ("reader", "problem"),
    [
        ({"name": "r", "table": "lake.typo", "version": 1}, "maintenance.readers: 'lake.typo' is not one of the tables"),
        ({"name": "r", "table": "lake.orders", "version": 1}, "maintenance.readers: 'lake.orders' is not one of the tables"),
    ],
)
def test_a_reader_of_an_unknown_table_is_a_mistake(settings: Settings, reader: dict[str, Any], problem: str) -> None:
    (settings.pipelines / "orders.yaml").write_text(yaml.safe_dump({**ORDERS, "maintenance": {"readers": [reader]}}))
    assert problem in lakebound("check", "--static", code=1).stdout


def test_two_readers_of_one_name_are_a_mistake(settings: Settings) -> None:
    twins = [{"name": "r", "table": "delta:lake.orders", "version": number} for number in (1, 2)]
    (settings.pipelines / "orders.yaml").write_text(yaml.safe_dump({**ORDERS, "maintenance": {"readers": twins}}))
    assert "two readers have the same name: r, r" in lakebound("check", "--static", code=1).stdout


class NoSpark:
    """In place of what rewrites Iceberg's files."""

    def compact(self, *arguments: object) -> StepEffect:
        return StepEffect()


def test_a_plan_that_was_carried_out_is_not_made_again(settings: Settings) -> None:
    """Plan, run and record with Delta's real engine: the next plan has none of it, and the rows are what they were."""
    spec, at = write(settings, maintenance=EAGER, tables=[{"format": "delta", "name": "lake.orders"}])
    small_commits(DELTA, at, 30)
    before, control = content(DELTA, at), ControlFolder(at.home, "orders")
    for number in range(2):
        plan = plan_now(spec, at)
        assert (len(plan.steps) > 0) is (number == 0), plan
        engine = TableEngine(control, at, f"run-{number}", NoSpark)  # type: ignore[arg-type]
        report = run_steps(plan, engine, {DELTA.id: DELTA}, control, run_id=f"run-{number}")
        assert {step.outcome for step in report.steps} <= {"done", "nothing"}, report
        record_run(control, report)
    assert live_files_of(DELTA, at) == 1 and content(DELTA, at) == before
    assert [run.run_id for run in read_runs(control)] == ["run-0", "run-1"]
    json.dumps(plan_now(spec, at).model_dump(mode="json"))


def test_what_is_promised_goes_when_its_time_is_over(settings: Settings) -> None:
    """Ten days later the plan cuts log and snapshots off, and the ledger and the rows are what they were."""
    spec, at = write(settings, maintenance=EAGER)
    for table in (DELTA, ICEBERG):
        app = small_commits(table, at, 120)
        app.table.keep_cheap()
        app.land(120, 121)
    before = {table.id: content(table, at) for table in (DELTA, ICEBERG)}
    later_ms = round(time.time() * 1000) + LATER_MS
    assert "clean_log" not in steps(plan_now(spec, at), DELTA) and "expire_snapshots" not in steps(plan_now(spec, at), ICEBERG)
    plan = plan_now(spec, at, now_ms=later_ms)
    past_only = plan.model_copy(
        update={"steps": tuple(step for step in plan.steps if step.kind in ("clean_log", "expire_snapshots", "checkpoint_log"))}
    )
    assert {step.kind for step in past_only.steps} >= {"clean_log", "expire_snapshots"}
    control = ControlFolder(at.home, "orders")
    engine = TableEngine(control, at, "run", NoSpark)  # type: ignore[arg-type]
    report = run_steps(past_only, engine, {one.id: one for one in (DELTA, ICEBERG)}, control, run_id="run")
    assert {step.outcome for step in report.steps} == {"done"}, report
    assert {table.id: content(table, at) for table in (DELTA, ICEBERG)} == before
    for table in (DELTA, ICEBERG):
        app = small_commits(table, at, 1, start=121)
        assert app.view.entry is not None and app.view.entry.coverage["orders"].partitions[0] == ((0, 122),)
