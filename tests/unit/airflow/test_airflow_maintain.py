"""The operators of maintenance: what they submit, and what becomes of each way in which the application may end."""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk import Asset
from airflow.sdk.exceptions import AirflowException, AirflowSkipException
from tests.support.streams.stand_ins import orders, settings_fixture  # noqa: F401
from tests.support.waiting import HANGS_SECONDS, wait_until

import lakebound.operations.maintenance.next_run
from lakebound.landing import background
from lakebound.operations.maintenance.past_reading import read_runs, record_run
from lakebound.operations.maintenance.steps import CheckpointLog, Compact, MaintenancePlan, RunReport, StepReport
from lakebound.settings import Settings, load_settings
from lakebound_airflow.hooks.spark_submit import NiceSparkSubmitHook
from lakebound_airflow.operators.maintain import (
    MaintainOperator,
    PlanMaintenanceOperator,
    StepsFailedError,
    _without_values,
)
from lakebound_airflow.pipelines import control_of

STEP = CheckpointLog(table="delta:lake.orders", reason="300 commits since the last one")
MAINTAINED = Asset(name="maintained", uri="lakebound://orders/maintained")


@pytest.fixture
def ends(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, settings: Settings) -> Callable[..., list[str]]:
    """Have applications end with an exit code, after they recorded a step's outcome; returns what was submitted."""
    submitted: list[str] = []
    resolved = NiceSparkSubmitHook._build_spark_submit_command

    def with_code(code: int, outcome: str | None = None) -> list[str]:
        script = tmp_path / "spark-submit"
        script.write_text(f'#!/bin/sh\nenv > "{tmp_path}/environment"\nexit {code}\n')
        script.chmod(0o755)

        def build(hook: NiceSparkSubmitHook, application: str) -> list[str]:
            submitted[:] = resolved(hook, application)
            run_id = json.loads(submitted[-1])["app_id"]
            if outcome is not None:
                step = StepReport.model_validate(
                    {"step": STEP, "outcome": outcome, "problem": "the disk is full", "conflicts": 2}
                )
                report = RunReport(pipeline="orders", run_id=run_id, started_at_ms=1, ended_at_ms=2, steps=(step,))
                record_run(orders(settings).control, report)
            return [str(script)]

        monkeypatch.setattr(NiceSparkSubmitHook, "_build_spark_submit_command", build)
        return submitted

    return with_code


def context() -> dict[str, Any]:
    return {"ti": SimpleNamespace(try_number=1), "outlet_events": defaultdict(SimpleNamespace)}


def operator() -> MaintainOperator:
    return MaintainOperator(task_id="run", pipeline="orders", outlets=[MAINTAINED])


def test_it_is_submitted_behind_everything_else_with_nothing_of_airflows_environment(
    ends: Callable[..., list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW__DATABASE__SQL_ALCHEMY_CONN", "postgresql://canary")
    submitted = ends(0, "done")
    operator().execute(context())
    assert submitted[:4] == [sys.executable, "-I", "-S", background.__file__]
    assert submitted[4].endswith("spark-submit")
    assert submitted[submitted.index("--master") + 1] == "local[1]"
    assert submitted[-3].endswith("maintain.py")
    assert "canary" not in (tmp_path / "environment").read_text()


def test_what_a_person_triggers_gets_an_ordinary_share_of_the_cores(ends: Callable[..., list[str]]) -> None:
    submitted = ends(0, "done")
    operator().execute({**context(), "dag_run": SimpleNamespace(run_type="manual")})
    assert submitted[0].endswith("spark-submit")
    assert '"is_waited_for":true' in " ".join(submitted)
    submitted = ends(0, "done")
    operator().execute({**context(), "dag_run": SimpleNamespace(run_type="scheduled")})
    assert background.__file__ in submitted


def test_a_connection_says_where_it_runs(ends: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_LAKEBOUND_MAINTENANCE", '{"conn_type": "spark", "host": "yarn"}')
    submitted = ends(0, "done")
    operator().execute(context())
    assert submitted[submitted.index("--master") + 1] == "yarn"


def test_what_was_done_is_its_xcom_and_its_event(ends: Callable[..., list[str]]) -> None:
    ends(0, "done")
    given = context()
    report = operator().execute(given)
    assert [step["outcome"] for step in report["steps"]] == ["done"]
    extra = given["outlet_events"][MAINTAINED].extra
    assert (extra["run_id"], extra["conflicts"]) == (report["run_id"], 2)
    assert extra["steps"] == ["delta:lake.orders: checkpoint_log: 0 -> 0"]


def test_what_a_partition_is_called_stays_here() -> None:
    step = Compact(
        table="delta:lake.orders", reason="9 small files", partition={"card": "4111"}, below_bytes=1, target_file_bytes=2
    )
    plan = MaintenancePlan(pipeline="orders", at_ms=1, steps=(step,), left=("card=4111: hot",))
    report = StepReport(step=step, outcome="done", removed=("card=4111/part-1.parquet",))
    run = RunReport(pipeline="orders", run_id="r", started_at_ms=1, ended_at_ms=2, steps=(report,))
    for told in (_without_values(plan.model_dump(exclude={"left"})), _without_values(run.model_dump())):
        assert "4111" not in json.dumps(told) and "9 small files" in json.dumps(told)


def test_failed_steps_are_named_and_lost_ones_are_none(ends: Callable[..., list[str]]) -> None:
    ends(1, "failed")
    with pytest.raises(StepsFailedError, match=r"delta:lake\.orders: checkpoint_log: the disk is full"):
        operator().execute(context())
    ends(0, "lost")
    assert operator().execute(context())["steps"][0]["outcome"] == "lost"


def test_another_run_is_no_failure(ends: Callable[..., list[str]]) -> None:
    ends(3)
    with pytest.raises(AirflowSkipException, match="another maintenance run of orders"):
        operator().execute(context())


def test_the_application_ends_with_the_task(ends: Callable[..., list[str]], tmp_path: Path) -> None:
    ends(0)
    (tmp_path / "spark-submit").write_text("#!/bin/sh\necho started\nexec sleep 60\n")
    task = operator()
    task.on_kill()  # before it has started anything
    with ThreadPoolExecutor() as thread:
        ending = thread.submit(task.execute, context())
        wait_until(lambda: task.hook is not None and task.hook._submit_sp, 20, "the application")
        task.on_kill()
        with pytest.raises(AirflowException, match="ended with exit code -9; its log: "):
            ending.result(timeout=HANGS_SECONDS)


@pytest.mark.parametrize("code", [0, 137])
def test_an_end_without_a_report_is_a_failure_and_kept(ends: Callable[..., list[str]], code: int) -> None:
    ends(code)
    with pytest.raises(AirflowException) as failure:
        operator().execute(context())
    assert not isinstance(failure.value, AirflowSkipException)
    (kept,) = read_runs(control_of("orders", load_settings()))
    assert "without a report" in kept.problem and kept.steps == ()


def test_a_plan_without_steps_skips_the_rest(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    planned = MaintenancePlan(pipeline="orders", at_ms=1, left=("delta:lake.orders: 3 small files",))
    monkeypatch.setattr(lakebound.operations.maintenance.next_run, "plan_and_note", lambda spec, places: planned)
    task = PlanMaintenanceOperator(task_id="plan", pipeline="orders")
    with pytest.raises(AirflowSkipException):
        task.execute({})
    planned = planned.model_copy(update={"steps": (STEP,)})
    assert task.execute({})["steps"][0]["reason"] == STEP.reason
