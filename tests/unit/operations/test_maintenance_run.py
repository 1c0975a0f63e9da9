"""A run's steps one after another: what is lost, fails, is gone, held, locked or asked to end. The engine is a fake."""

from __future__ import annotations

import fcntl
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from lakebound.control.desired import change_desired
from lakebound.control.folder import ControlFolder, write_json
from lakebound.control.replay_result import ReplayResult, write_result
from lakebound.errors import LakeboundError
from lakebound.operations.maintenance.engines import StepLostError, TableGoneError
from lakebound.operations.maintenance.run import MaintenanceRunsError, only_run, run_steps
from lakebound.operations.maintenance.steps import CheckpointLog, MaintenancePlan, RunReport, StepEffect, Vacuum
from lakebound.operations.maintenance.table_engine import staged_before_ms
from lakebound.redaction import WHERE_THE_REST_IS
from lakebound.spec.table import TableSpec
from lakebound.tables.places import local_places

ORDERS = TableSpec(format="delta", name="shop.orders")
CLICKS = TableSpec(format="delta", name="shop.clicks")
TABLES = {table.id: table for table in (ORDERS, CLICKS)}
DONE = StepEffect(files_before=9, files_after=1, commits=1, conflicts=2, note="said")


def vacuum(table: TableSpec) -> Vacuum:
    return Vacuum(table=table.id, reason="a test", mode="lite", retention_seconds=1)


def checkpoint(table: TableSpec) -> CheckpointLog:
    return CheckpointLog(table=table.id, reason="a test")


class FakeEngine:
    """Answers each call with the next of the table's answers; the last one is repeated."""

    def __init__(self, **answers: list[StepEffect | Exception | Callable[[], StepEffect]]) -> None:
        self.answers = answers
        self.calls: list[str] = []

    def _answer(self, table: TableSpec, step: object) -> StepEffect:
        self.calls.append(table.short_name)
        answers = self.answers.get(table.short_name, [DONE])
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, StepEffect) else answer()

    vacuum = checkpoint_log = _answer


@pytest.fixture
def control(tmp_path: Path) -> ControlFolder:
    return ControlFolder(tmp_path, "orders")


def run(
    control: ControlFolder, engine: FakeEngine, *steps: Vacuum | CheckpointLog, is_stopping: Callable[[], bool] = lambda: False
) -> tuple[RunReport, list[float]]:
    waits: list[float] = []
    plan = MaintenancePlan(pipeline="orders", at_ms=0, steps=steps, warnings=("beware",))
    report = run_steps(plan, engine, TABLES, control, run_id="run-1", is_stopping=is_stopping, wait=waits.append)  # type: ignore[arg-type]
    return report, waits


def outcomes(report: RunReport) -> list[str]:
    return [step.outcome for step in report.steps]


def test_every_step_is_reported_with_what_it_did(control: ControlFolder) -> None:
    report, _ = run(control, FakeEngine(clicks=[StepEffect()]), vacuum(ORDERS), vacuum(CLICKS))
    assert outcomes(report) == ["done", "nothing"]
    first = report.steps[0]
    assert (first.files_before, first.files_after, first.commits, first.conflicts, first.note) == (9, 1, 1, 2, "said")
    assert (report.run_id, report.pipeline, report.warnings) == ("run-1", "orders", ("beware",))
    assert report.ended_at_ms >= report.started_at_ms > 0


def test_a_step_that_lost_is_tried_again_with_growing_bounds_and_then_left(control: ControlFolder) -> None:
    lost = StepLostError(ORDERS.id, "somebody was faster", conflicts=3)
    engine = FakeEngine(orders=[lost])
    report, waits = run(control, engine, vacuum(ORDERS), vacuum(CLICKS))
    assert outcomes(report) == ["lost", "done"]
    assert report.steps[0].conflicts == 12 and "nothing was lost, and the next run" in report.steps[0].problem
    assert len(waits) == 3 and all(seconds <= 2**number for number, seconds in enumerate(waits)) and sum(waits) > 0
    again, _ = run(control, FakeEngine(orders=[lost, lost, DONE]), vacuum(ORDERS))
    assert outcomes(again) == ["done"] and again.steps[0].conflicts == 8


def test_a_step_that_fails_stops_no_other(control: ControlFolder) -> None:
    engine = FakeEngine(orders=[LakeboundError("it is refused, do this"), RuntimeError("boom\nmore"), DONE])
    report, waits = run(control, engine, vacuum(ORDERS), checkpoint(ORDERS), vacuum(CLICKS), vacuum(ORDERS))
    assert outcomes(report) == ["failed", "failed", "done", "done"] and waits == []
    assert [step.problem for step in report.steps[:2]] == ["it is refused, do this", f"RuntimeError; {WHERE_THE_REST_IS}"]


def test_a_step_that_fails_after_a_part_of_its_work_is_a_failed_one_with_what_it_did(control: ControlFolder) -> None:
    part = StepEffect(files_before=9, files_after=1, commits=1, conflicts=2, problem="the rest is refused, do this")
    (step,) = run(control, FakeEngine(orders=[part]), vacuum(ORDERS))[0].steps
    assert (step.outcome, step.problem) == ("failed", "the rest is refused, do this")
    assert (step.files_before, step.files_after, step.commits, step.conflicts) == (9, 1, 1, 2)


def test_a_failure_is_logged_where_it_happened_without_the_values_of_variables(
    control: ControlFolder, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    def fail() -> StepEffect:
        address = "sqlite://user:" + "s3cret".upper()
        raise RuntimeError(f"cannot open, {len(address)} characters")

    run(control, FakeEngine(orders=[fail]), vacuum(ORDERS))
    logged = caplog.text + "".join(capsys.readouterr())
    assert "RuntimeError: cannot open" in logged and "in fail" in logged
    assert "S3CRET" not in logged


def test_a_table_that_was_dropped_fails_once_and_the_others_go_on(control: ControlFolder) -> None:
    engine = FakeEngine(orders=[TableGoneError(ORDERS.id)])
    report, _ = run(control, engine, vacuum(ORDERS), checkpoint(ORDERS), vacuum(CLICKS))
    assert outcomes(report) == ["failed", "skipped", "done"]
    assert "delta:shop.orders does not exist any more" in report.steps[0].problem and engine.calls == ["orders", "clicks"]


def test_a_run_that_is_asked_to_end_does_so_between_two_steps(control: ControlFolder) -> None:
    asked = threading.Event()

    def ask() -> StepEffect:
        asked.set()
        return DONE

    engine = FakeEngine(orders=[ask])
    report, _ = run(control, engine, vacuum(ORDERS), vacuum(CLICKS), is_stopping=asked.is_set)
    assert outcomes(report) == ["done", "skipped"] and report.steps[1].problem == "the run was asked to end"


def test_a_held_pipeline_is_left_as_it_is(control: ControlFolder) -> None:
    change_desired(control, "held", reason="rewind cut short")
    engine = FakeEngine()
    report, _ = run(control, engine, vacuum(ORDERS))
    assert outcomes(report) == ["skipped"] and "rewind cut short" in report.steps[0].problem and engine.calls == []


def test_no_step_runs_beside_a_repair_and_no_repair_beside_a_step(control: ControlFolder) -> None:
    path = control.folder / "repair.lock"
    path.parent.mkdir(parents=True)
    with open(path, "a") as repair:
        fcntl.flock(repair, fcntl.LOCK_EX)
        engine = FakeEngine()
        report, waits = run(control, engine, vacuum(ORDERS))
        assert outcomes(report) == ["lost"] and engine.calls == [] and len(waits) == 3
        assert report.steps[0].conflicts == 0 and "a repair or a rewind" in report.steps[0].problem

    def is_locked() -> StepEffect:
        with open(path, "a") as repair, pytest.raises(BlockingIOError):
            fcntl.flock(repair, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return DONE

    assert outcomes(run(control, FakeEngine(orders=[is_locked]), vacuum(ORDERS))[0]) == ["done"]


def test_one_run_per_pipeline_and_the_lock_of_a_killed_one_is_free(control: ControlFolder) -> None:
    other = ControlFolder(control.home, "clicks")
    with only_run(control):
        with only_run(other):
            pass
        with pytest.raises(MaintenanceRunsError, match="'orders' is being maintained by another run"), only_run(control):
            pytest.fail("two runs at once")
    hold = (
        "import sys, time; from pathlib import Path; from lakebound.control.folder import ControlFolder\n"
        "from lakebound.operations.maintenance.run import only_run\n"
        "with only_run(ControlFolder(Path(sys.argv[1]), 'orders')): print('mine', flush=True); time.sleep(600)"
    )
    process = subprocess.Popen([sys.executable, "-c", hold, str(control.home)], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None and process.stdout.readline() == "mine\n"
        with pytest.raises(MaintenanceRunsError), only_run(control):
            pytest.fail("two runs at once")
    finally:
        process.kill()
        process.wait()
    with only_run(control):
        pass


def test_what_a_replay_may_have_staged_is_known_by_its_start(control: ControlFolder, tmp_path: Path) -> None:
    at = local_places(tmp_path, tmp_path)
    assert staged_before_ms(ORDERS, at, control, 5_000) == 5_000
    write_result(control, ReplayResult(app_id="ended", started_at=1.0, ended_at=2.0))
    assert staged_before_ms(ORDERS, at, control, 5_000) == 5_000
    write_result(control, ReplayResult(app_id="running", started_at=3.0))
    assert staged_before_ms(ORDERS, at, control, 5_000) == 3_000


def test_what_the_stream_may_have_staged_is_known_by_its_lease(control: ControlFolder, tmp_path: Path) -> None:
    at = local_places(tmp_path, tmp_path)
    lease = {"epoch": 1, "app_id": "a", "host": "elsewhere", "pid": 1, "pid_started_at": 0.0, "acquired_at": 2.0}
    write_json(control.lease, {**lease, "heartbeat_at": 4.0, "ttl_seconds": 10.0})
    assert staged_before_ms(ORDERS, at, control, 5_000) == 2_000
    assert staged_before_ms(ORDERS, at, control, 50_000) == 50_000
