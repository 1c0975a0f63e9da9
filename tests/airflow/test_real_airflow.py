"""The ingest DAG under a real Airflow that is killed, split, cleared and kept waiting. The tests run in this order.

The first one freezes an application; the last but few looks whether that was seen in time, so nobody waits for it.
"""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from lakebound.control import processes
from lakebound.control.airflow_health import COMPONENTS
from lakebound.control.applications import app_is_alive, living_submission, wait_ended
from lakebound.control.crash_loop import read_crash_loop
from lakebound.control.desired import read_desired
from lakebound.control.folder import write_json
from lakebound.control.lease import read_lease
from lakebound.control.progress import read_outcome
from lakebound.control.submission import Submission
from lakebound.local.airflow_view import airflow_health
from tests.support.airflow.real_stack import Stack
from tests.support.airflow.run_views import set_state, wait_run, xcoms
from tests.support.airflow.stack_folder import PASSWORD, PIPELINES, WEBHOOK_SECRET
from tests.support.streams.long_form import LONG_FORM, only_in_long_form
from tests.support.waiting import HANGS_SECONDS, wait_until

pytestmark = [pytest.mark.airflow, pytest.mark.timeout(420)]

STALL_SECONDS = 90.0


@dataclass(frozen=True)
class Frozen:
    """The application of ``stalls``, and when its driver, Python and JVM, was stopped by SIGSTOP."""

    submission: Submission
    at: float


@pytest.fixture(scope="module")
def frozen(stack: Stack) -> Frozen:
    """Freeze it."""
    submission = stack.running("stalls")
    stack.deferred("stalls")
    for process in members(submission):
        process.suspend()
    return Frozen(submission, time.time())


def members(submission: Submission) -> list[psutil.Process]:
    """The application's processes."""
    pid, started = submission.pid, submission.pid_started_at
    assert pid is not None
    assert started is not None
    found = processes.members(processes.ProcessRecord(submission.app_id, pid, started, submission.log or Path()))
    assert len(found) >= 2, "a JVM and a Python"
    return found


def test_a_broken_yaml_is_an_import_error_and_the_others_load(stack: Stack, frozen: Frozen) -> None:
    (error,) = stack.client.import_errors()
    assert "broken.yaml:3" in error["stack_trace"]
    assert "ingest__orders" in stack.client.dags()


def test_the_link_to_the_spark_ui_is_there_while_the_task_is_deferred(stack: Stack) -> None:
    submission = stack.running("orders")
    instance = stack.deferred("orders")
    link = xcoms(stack.client, "ingest__orders", instance["dag_run_id"], "stream")["_link_SparkUiLink"]
    assert link == submission.spark_ui
    assert link.startswith("http://127.0.0.1:")
    said = "the watcher could not read Kafka"
    log = lambda: stack.client.log("ingest__orders", instance["dag_run_id"], "stream")  # noqa: E731
    wait_until(lambda: said in log(), 30, "what the watch says in the task's log", poll_seconds=1)


def test_the_airflow_is_seen_by_its_address_as_the_embedded_one_is(
    stack: Stack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedded = airflow_health(stack.settings)
    (tmp_path / "login").touch(mode=0o600)
    (tmp_path / "login").write_text(f"{stack.airflow.user}:{stack.airflow.password}\n")
    monkeypatch.setenv("LAKEBOUND_AIRFLOW_URL", stack.airflow.url)
    monkeypatch.setenv("LAKEBOUND_AIRFLOW_LOGIN_FILE", str(tmp_path / "login"))
    by_address = airflow_health(stack.settings)
    for found in (embedded, by_address):
        assert found is not None
        assert (found.address, found.problem, found.paused_problem) == (stack.airflow.url, None, None)
        assert set(found.components) == set(COMPONENTS)
        assert found.dead == ()
        assert (found.paused or {})["ingest__orders"] is False


def test_people_who_pause_dags_at_the_same_time_are_all_answered(stack: Stack) -> None:
    """With Airflow's usual waits for SQLite, its API server waits for itself and answers nobody for that time."""

    def pause_and_unpause(dag_id: str) -> None:
        with stack.airflow.client() as client:
            for _ in range(3):
                client.pause(dag_id)
                client.unpause(dag_id)

    dags = [f"control__{pipeline}" for pipeline in PIPELINES]
    with ThreadPoolExecutor(len(dags)) as pool:
        for done in [pool.submit(pause_and_unpause, dag_id) for dag_id in dags]:
            done.result(timeout=HANGS_SECONDS)
    assert not any(stack.client.is_paused(dag_id) for dag_id in dags)


def test_runs_that_land_nothing_pause_the_dag_and_call_the_webhook(stack: Stack) -> None:
    wait_until(lambda: stack.client.dags()["ingest__crashes"]["is_paused"], 120, "the pause")
    assert [run["state"] for run in stack.client.runs("ingest__crashes")[:2]] == ["failed", "success"]
    told = [(body["kind"], body["verdict"]) for _, body in stack.sink.of("crashes")]
    assert told == [("opened", "failed"), ("opened", "crash_loop")], "the second failure is the same alert"
    instance = stack.task("crashes")
    log = stack.client.log("ingest__crashes", instance["dag_run_id"], "stream")
    assert "told to fail" in log
    assert "the application's log: " in log, "where it is, not what is in it: that may quote records"


def test_the_control_dag_stops_starts_and_restarts(stack: Stack) -> None:
    def control(action: str, **conf: object) -> None:
        run_id = stack.client.trigger("control__orders", {"action": action, "reason": "test", **conf})
        state = wait_run(stack.client, "control__orders", run_id, HANGS_SECONDS)
        assert state == "success", stack.client.log("control__orders", run_id, "control")

    first = stack.running("orders")
    second = first
    if LONG_FORM:  # shortly, a stop and a start
        control("restart", freshness="1s")
        second = stack.running("orders", other_than=first.app_id)
        assert (second.generation, read_desired(stack.control("orders")).freshness) == (1, "1s")
    control("stop")
    assert not app_is_alive(stack.control("orders"))
    stack.deferred("orders")
    assert living_submission(stack.control("orders")) is None, "a deferred task that waits for the request"
    control("start")
    assert stack.running("orders", other_than=second.app_id).owner is not None


def test_no_task_was_failed_because_its_trigger_fired_soon_after_it_deferred(stack: Stack) -> None:
    # Until here tasks have deferred that had to wait for little: applications that failed at once, requests that were soon so.
    assert "finished with state success, but the task instance's state" not in stack.airflow.log.read_text(errors="replace")


def test_commits_become_asset_events(stack: Stack) -> None:
    def payloads() -> list[dict[str, object]]:
        runs = [run for run in stack.client.runs("on_commit") if run["state"] == "success"]
        found = [xcoms(stack.client, "on_commit", run["dag_run_id"], "show").get("return_value") for run in runs]
        return [extra.get("payload", extra) for extras in found for extra in extras or []]

    payload = wait_until(payloads, 90, "a run on an asset event")[0]
    stack.client.pause("on_commit")
    assert payload["table"] == "delta:lake.orders"
    assert int(str(payload["commits"])) >= 1
    assert int(str(payload["rows"])) >= 1


def test_a_frozen_driver_is_seen_and_reported_in_time_and_replaced(stack: Stack, frozen: Frozen) -> None:
    former = frozen.submission
    said = lambda: [(at, body) for at, body in stack.sink.of("stalls") if body["verdict"] == "stalled"]  # noqa: E731
    wait_until(said, STALL_SECONDS, "the webhook")
    at, body = said()[0]
    assert "has reported no progress" in body["reason"]
    assert at - frozen.at < STALL_SECONDS
    after = stack.running("stalls", other_than=former.app_id)
    lease = read_lease(stack.control("stalls"))
    assert lease is not None
    assert (lease.app_id, lease.epoch) == (after.app_id, 2)
    assert not psutil.pid_exists(former.pid or 0), "the frozen one was ended before the next was started"
    assert not stack.client.dags()["ingest__stalls"]["is_paused"]


def test_the_health_dag_fails_where_a_person_is_needed_and_says_so(stack: Stack) -> None:
    # After the test of the frozen driver, because a stall is not told while the broker is known to be away.
    # A further start may have been under way when the DAG was paused.
    wait_until(lambda: living_submission(stack.control("crashes")) is None, 60, "the end of the last start")
    stack.client.unpause("checkpoint_health")
    try:
        run_id = stack.client.trigger("checkpoint_health")
        assert wait_run(stack.client, "checkpoint_health", run_id, HANGS_SECONDS) == "failed"
        instances = stack.client.task_instances("checkpoint_health", run_id)
        indexes = {instance["rendered_map_index"]: instance["map_index"] for instance in instances}
        logs = {name: stack.client.log("checkpoint_health", run_id, "examine", map_index=indexes[name]) for name in indexes}
    finally:
        stack.client.pause("checkpoint_health")
    assert set(indexes) == set(PIPELINES)
    assert "runbook include/runbooks/crash-loop.md" in logs["crashes"], logs["crashes"]
    # The stand-ins of applications say that they land, and make no table.
    assert "runbook include/runbooks/table-dropped.md" in logs["orders"], logs["orders"]
    assert "crash-loop" not in logs["orders"]


@only_in_long_form  # shortly, another triggerer takes it after a kill: test_an_airflow_that_was_killed_finds_…
def test_a_stream_goes_on_while_its_trigger_moves_to_another_triggerer(stack: Stack) -> None:
    former, instance = stack.running("moves"), stack.deferred("moves")
    first_triggerer = stack.own_triggerer()
    assert first_triggerer
    stack.start_triggerer()
    wait_until(lambda: "Starting the triggerer" in triggerer_log(stack), 60, "the second triggerer")
    stopped_at = time.monotonic()
    for process in first_triggerer:
        process.suspend()
    try:
        first_job = instance["triggerer_job"]["id"]
        is_moved = lambda found: (found["triggerer_job"] or {}).get("id") not in (None, first_job)  # noqa: E731
        # A triggerer counts as lost after 30 seconds without a heartbeat; on a busy machine the other one comes to it late.
        stack.wait_task("moves", is_moved, "the move", deadline_seconds=150)
        # The rest of the minute: what is waited for is that nothing happens.
        while time.monotonic() - stopped_at < 60:
            assert app_is_alive(stack.control("moves"))
            time.sleep(1)
    finally:
        for process in reversed(first_triggerer):
            process.resume()

    def let_go() -> bool:
        log = stack.client.log("ingest__moves", instance["dag_run_id"], "stream")
        return f"the trigger of {former.app_id} ended; the task is deferred" in log

    wait_until(let_go, 60, "the first triggerer to let go")
    assert not stack.control("moves").stop_marker(former.app_id).exists()
    assert stack.running("moves").app_id == former.app_id
    assert stack.task("moves")["state"] == "deferred"


def test_a_marked_task_stops_its_application_and_the_next_run_starts_another(stack: Stack) -> None:
    former, instance = stack.running("moves"), stack.deferred("moves")
    set_state(stack.client, "ingest__moves", instance["dag_run_id"], "stream", "failed")
    assert wait_ended(stack.control("moves"), former.app_id, 60)
    outcome = read_outcome(stack.control("moves"), former.app_id)
    assert outcome is not None
    assert outcome.verdict == "stopped"
    stack.running("moves", other_than=former.app_id)


def test_what_the_doctor_found_is_told_once_it_has_stood_for_a_minute(stack: Stack) -> None:
    # The minute passed during the tests between. The crash loop was told already.
    unwell = lambda: [body for _, body in stack.sink.of("orders") if body["verdict"] == "unwell"]  # noqa: E731
    body = wait_until(unwell, 210, "the alert of the dropped table", poll_seconds=1)[0]
    assert (body["kind"], body["severity"]) == ("opened", "critical")
    # There is no broker here, either, for several pipelines: whoever has it, it is told beside this.
    assert body["alerts"][0]["runbook"] == "table-dropped"
    wait_until(lambda: any(one["runbook"] == "broker-unavailable" for one in stack.sink.alerts()), 210, "the broker's alert")
    assert body["page"].endswith("/lakebound/pipelines/orders")
    assert body["dag"].endswith("/dags/checkpoint_health")
    assert [one["verdict"] for _, one in stack.sink.of("crashes")].count("crash_loop") == 1


def test_unpausing_the_dag_of_a_crash_loop_by_hand_starts_it(stack: Stack) -> None:
    control = stack.control("crashes")
    assert read_crash_loop(control).is_over_limit(2)
    write_json(control.folder / "behaviour.json", {})
    stack.client.unpause("ingest__crashes")
    wait_until(lambda: living_submission(control) is not None, 60, "the start")
    desired = read_desired(control)
    assert desired.reason == "somebody unpaused the DAG ingest__crashes", desired
    assert read_crash_loop(control).since(desired.since).ends == ()
    assert not stack.client.dags()["ingest__crashes"]["is_paused"]


def test_an_airflow_that_was_killed_finds_its_application_again(stack: Stack) -> None:
    former, instance = stack.running("survives"), stack.deferred("survives")
    stack.airflow.kill()
    for record in stack.triggerers:
        processes.kill(record)
    stack.triggerers.clear()
    rows = stack.progress("survives").records
    wait_until(lambda: stack.progress("survives").records > rows, 30, "records that land meanwhile")
    stack.airflow.start()
    again = stack.deferred("survives")
    assert (again["dag_run_id"], again["try_number"]) == (instance["dag_run_id"], instance["try_number"])
    wait_until(lambda: stack.deferred("survives")["triggerer_job"]["id"] != instance["triggerer_job"]["id"], 60, "a triggerer")
    assert stack.running("survives").app_id == former.app_id
    lease = read_lease(stack.control("survives"))
    assert lease is not None
    assert (lease.app_id, lease.epoch) == (former.app_id, 1)


@only_in_long_form  # shortly, one that is marked stops it, above
def test_a_task_that_is_cleared_while_no_triggerer_runs_stops_its_application(stack: Stack) -> None:
    former, instance = stack.running("survives"), stack.deferred("survives")
    for process in stack.own_triggerer():
        process.kill()
    stack.client.clear("ingest__survives", instance["dag_run_id"], ["stream"])
    assert wait_ended(stack.control("survives"), former.app_id, 60)
    outcome = read_outcome(stack.control("survives"), former.app_id)
    assert outcome is not None
    assert outcome.verdict == "stopped"
    assert not stack.own_triggerer(), "no triggerer ran meanwhile"
    stack.start_triggerer()
    after = stack.running("survives", other_than=former.app_id)
    # Mostly by try 2 of the same run. On a busy machine Airflow's scheduler may take the word of try 1's end, which comes late,
    # for that of try 2 and fail it ("TI was not in a state where it could be marked as running"); then by the next run.
    assert after.owner is not None
    assert former.owner is not None
    assert (after.owner.run_id, after.owner.try_number) != (former.owner.run_id, former.owner.try_number)


def test_no_secret_is_written_anywhere(stack: Stack) -> None:
    stack.running("orders")
    arguments = [" ".join(process.info["cmdline"] or ()) for process in psutil.process_iter(["cmdline"])]
    assert any("--run-spec" in line for line in arguments)
    assert not [line for line in arguments if PASSWORD in line or WEBHOOK_SECRET in line]
    assert set(stack.sink.paths) == {f"/{WEBHOOK_SECRET}"}, "alerts were sent to the secret address"
    found = []
    for folder, _, names in os.walk(stack.settings.home):
        files = [Path(folder, name) for name in names]
        found += [file for file in files if _holds(file, PASSWORD) or _holds(file, WEBHOOK_SECRET)]
    assert found == []


def triggerer_log(stack: Stack) -> str:
    """Return the output of the triggerer that was started last."""
    return stack.triggerers[-1].log.read_text(errors="replace")


def _holds(path: Path, secret: str) -> bool:
    try:
        return path.is_file() and secret.encode() in path.read_bytes()
    except OSError:
        return False
