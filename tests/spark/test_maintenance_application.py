"""The maintenance application as it is submitted: it plans, does it, reports; beside another one, and killed at any moment."""

from __future__ import annotations

import json
import signal
import subprocess
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from tests.support.streams.batch_applications import ended, kill_session, last_line, started, wait_while_alive
from tests.support.streams.long_form import only_in_long_form
from tests.support.tables.local_tables import landed_offsets, lander
from tests.support.tables.maintained import (
    content,
    live_files_of,
    maintained_pipeline,
    maintained_settings,
    small_commits,
)

from lakebound.control.folder import ControlFolder
from lakebound.operations.maintenance.health_history import read_health_history
from lakebound.operations.maintenance.next_run import plan_now
from lakebound.operations.maintenance.past_reading import read_runs
from lakebound.operations.maintenance.run import only_run
from lakebound.operations.maintenance.steps import RunReport
from lakebound.operations.maintenance.submission import maintenance_command, maintenance_orders
from lakebound.settings import Settings
from lakebound.spec.pipeline import PipelineSpec
from lakebound.tables.places import places_of
from lakebound.tables.table import open_table

pytestmark = pytest.mark.spark


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return maintained_settings(tmp_path)


@pytest.fixture
def spec() -> PipelineSpec:
    return maintained_pipeline({"compaction": {"hot_seconds": 0, "min_small_files": 5}, "cooldown_seconds": 0})


def running(
    spec: PipelineSpec, settings: Settings, run_id: str, *, plan_only: bool = False
) -> AbstractContextManager[subprocess.Popen[str]]:
    orders = maintenance_orders(spec, settings, run_id, plan_only=plan_only, is_waited_for=True)
    return started(maintenance_command(orders, settings), settings, settings.home / f"{run_id}.err")


@only_in_long_form
def test_a_run_plans_does_it_and_reports(spec: PipelineSpec, settings: Settings) -> None:
    """In the short form the run after the killed one below does, of one table."""
    at, control = places_of(settings, "default"), ControlFolder(settings.home, spec.pipeline)
    for table in spec.tables:
        small_commits(table, at, 30)
    before = {table.id: content(table, at) for table in spec.tables}
    with running(spec, settings, "run-1") as process:
        code, output = ended(process)
    assert code == 0, output
    report = RunReport.model_validate_json(last_line(output))
    compactions = {step.step.table: step for step in report.steps if step.step.kind == "compact"}
    assert {table: (step.outcome, step.files_before, step.files_after) for table, step in compactions.items()} == {
        table.id: ("done", 30, 1) for table in spec.tables
    }
    assert [run.run_id for run in read_runs(control)] == ["run-1"]
    for table in spec.tables:
        assert live_files_of(table, at) == 1 and content(table, at) == before[table.id]
    assert not any(step.kind == "compact" for step in plan_now(spec, at).steps)
    assert "maintain: iceberg:shop.orders: compact: done in" in output
    assert {reading.table: reading.files for reading in read_health_history(control)} == {table.id: 1 for table in spec.tables}


@only_in_long_form  # shortly: tests/unit/operations/test_maintenance_run.py, and plans in tests/local/operations
def test_a_second_run_ends_at_once_and_a_plan_changes_nothing(spec: PipelineSpec, settings: Settings) -> None:
    at, control = places_of(settings, "default"), ControlFolder(settings.home, spec.pipeline)
    small_commits(spec.tables[0], at, 10)
    with only_run(control), running(spec, settings, "run-2") as process:
        code, output = ended(process)
    assert code == 3 and "is being maintained by another run" in output and not read_runs(control)
    with running(spec, settings, "run-3", plan_only=True) as process:
        code, output = ended(process)
    steps = json.loads(last_line(output))["steps"]
    assert code == 0 and [step["kind"] for step in steps][:1] == ["compact"]
    assert live_files_of(spec.tables[0], at) == 10 and not read_runs(control)


def test_a_run_that_is_killed_costs_nothing_and_the_next_one_completes(spec: PipelineSpec, settings: Settings) -> None:
    """SIGKILL in the middle of the Iceberg table's rewriting, when Delta's is done; then SIGTERM; then to the end."""
    at, control = places_of(settings, "default"), ControlFolder(settings.home, spec.pipeline)
    delta, iceberg = spec.tables
    for table in spec.tables:
        small_commits(table, at, 30)
    before = {table.id: content(table, at) for table in spec.tables}
    log = Path(at.delta_path(delta)) / "_delta_log"
    landed = set(log.glob("*.json"))

    def is_compacted() -> bool:
        # To open the table costs as much as many looks into the folder, and the application starts for seconds.
        return landed < set(log.glob("*.json")) and live_files_of(delta, at) <= 1

    with running(spec, settings, "killed") as process:
        wait_while_alive(process, is_compacted, "Delta's compaction", settings.home / "killed.err")
        kill_session(process.pid)
        assert ended(process)[0] == -signal.SIGKILL
    assert {table.id: content(table, at) for table in spec.tables} == before and not read_runs(control)
    lander(iceberg, at).land(30, 31)
    with running(spec, settings, "next") as process:
        code, output = ended(process)
    assert code == 0, output
    assert live_files_of(iceberg, at) == 1
    assert landed_offsets(open_table(iceberg, at)) == list(range(31)) and content(delta, at) == before[delta.id]
    report = RunReport.model_validate_json(last_line(output))
    compactions = [step for step in report.steps if step.step.kind == "compact"]
    assert [(step.step.table, step.outcome, step.files_after) for step in compactions] == [(iceberg.id, "done", 1)]
    assert [run.run_id for run in read_runs(control)] == ["next"]
    assert not any(step.kind == "compact" for step in plan_now(spec, at).steps)
    assert "maintain: iceberg:shop.orders: compact: done in" in output
    assert {reading.table: reading.files for reading in read_health_history(control)} == {table.id: 1 for table in spec.tables}
