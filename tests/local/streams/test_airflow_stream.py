"""The operator of a stream and its triggers; the applications are Python processes, the rest of Airflow is stood in for."""

from __future__ import annotations

import asyncio
import errno
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from airflow._shared.module_loading import import_string
from airflow.sdk.exceptions import AirflowFailException, TaskDeferred
from tests.support.airflow.task_instances import Alerts, FakeTi, States, context, control_fixture, sent_fixture, states_fixture  # noqa: F401
from tests.support.s3.running import S3Server
from tests.support.state.shared import tell_state
from tests.support.streams.stand_ins import OWNER, orders, settings_fixture  # noqa: F401
from tests.support.waiting import wait_until

from lakebound.control.applications import living_submission
from lakebound.control.crash_loop import CrashLoop, read_crash_loop, write_crash_loop
from lakebound.control.desired import change_desired, read_desired
from lakebound.control.folder import ControlFolder, read_json, write_json
from lakebound.control.progress import read_outcome, read_progress
from lakebound.control.submission import Custody, Owner, Submission, read_submission, write_submission
from lakebound.errors import SubmitFailedError
from lakebound.settings import Settings, load_settings
from lakebound_airflow.backends.local import LocalBackend
from lakebound_airflow.hooks import task_state
from lakebound_airflow.operators import stream as stream_module
from lakebound_airflow.operators.stream import StreamFailedError, StreamOperator, StreamStalledError, hand_over
from lakebound_airflow.triggers import stream_watch
from lakebound_airflow.triggers.stream import ReplaceTrigger, StreamTrigger, WantedTrigger
from lakebound_airflow.triggers.stream_watch import StreamWatch, end_of_replaced


@pytest.fixture
def shared_settings(settings: Settings, s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """The same places, and state in a bucket."""
    for name, value in tell_state(s3_server, s3_server.new_bucket(), settings.pipelines).items():
        monkeypatch.setenv(name, value)
    return settings


@pytest.fixture
def operator(settings: Settings, sent: Alerts, states: States) -> StreamOperator:
    return StreamOperator(task_id="stream", pipeline="orders")


def deferral(call: Callable[[], Any]) -> Any:
    """Return the trigger with which the task deferred, after the round trip through its arguments."""
    with pytest.raises(TaskDeferred) as caught:
        call()
    assert caught.value.method_name == "resume"
    classpath, arguments = caught.value.trigger.serialize()
    return import_string(classpath)(**arguments)


def running(operator: StreamOperator, control: ControlFolder, ti: FakeTi | None = None) -> Submission:
    """Start the application and wait until it says that it runs."""
    trigger = deferral(lambda: operator.execute(context(ti or FakeTi())))
    assert isinstance(trigger, StreamTrigger)
    wait_until(lambda: (p := read_progress(control)) and p.app_id == trigger.app_id, 20, "progress")
    found = read_submission(control)
    assert found is not None
    assert found.app_id == trigger.app_id
    return found


def event(trigger: Any, deadline_seconds: float = 20) -> dict[str, str]:
    async def first() -> Any:
        async with asyncio.timeout(deadline_seconds):
            return await trigger.wait()

    return asyncio.run(first())  # type: ignore[no-any-return]


@pytest.mark.parametrize("places", ["settings", "shared_settings"])
def test_the_task_submits_and_defers_and_ends_with_the_outcome(
    operator: StreamOperator, request: pytest.FixtureRequest, places: str
) -> None:
    control = orders(request.getfixturevalue(places)).control
    assert control.is_shared == (places == "shared_settings")
    submission = running(operator, control)
    assert (submission.owner, submission.custody) == (OWNER, Custody.WATCHED)
    change_desired(control, "stopped", reason="test")
    seen = event(StreamTrigger("orders", str(control.home), submission.app_id))
    assert seen["event"] == "ended"
    result = operator.resume(context(FakeTi()), seen)
    assert result["verdict"] == "stopped"
    assert control.lease.exists() and (control.folder / "lease.json").exists() != control.is_shared


def test_while_stopped_or_held_nothing_starts_and_start_starts(operator: StreamOperator, control: ControlFolder) -> None:
    change_desired(control, "held", reason="audit")
    trigger = deferral(lambda: operator.execute(context(FakeTi())))
    assert isinstance(trigger, WantedTrigger)
    assert living_submission(control) is None
    change_desired(control, "running", reason="done")
    assert event(trigger)["event"] == "wanted"
    assert isinstance(deferral(lambda: operator.resume(context(FakeTi()), event(trigger))), StreamTrigger)
    assert living_submission(control) is not None


def test_the_same_try_and_a_run_after_a_lost_airflow_find_the_application(
    operator: StreamOperator, control: ControlFolder, states: States
) -> None:
    submission = running(operator, control)
    assert deferral(lambda: operator.execute(context(FakeTi()))).app_id == submission.app_id
    # The worker of run 1 was killed before it deferred; its run then failed.
    write_submission(control, submission.model_copy(update={"custody": Custody.TAKEN}))
    states["run-1"] = "failed"
    trigger = deferral(lambda: operator.execute(context(FakeTi("run-2"))))
    assert (trigger.app_id, trigger.owned) == (submission.app_id, True)
    adopted = read_submission(control)
    assert adopted is not None
    assert adopted.owner is not None
    assert (adopted.owner.run_id, adopted.pid) == ("run-2", submission.pid)


@pytest.mark.parametrize(("run_id", "try_number"), [("run-1", 2), ("run-2", 1)])
def test_after_a_clear_or_a_mark_the_application_is_stopped_and_another_follows(
    operator: StreamOperator, control: ControlFolder, states: States, run_id: str, try_number: int
) -> None:
    submission = running(operator, control)
    states["run-1"] = "success"
    ti = FakeTi(run_id, try_number)
    trigger = deferral(lambda: operator.execute(context(ti)))
    assert isinstance(trigger, ReplaceTrigger)
    assert control.stop_marker(submission.app_id).exists(), "asked before any triggerer runs"
    seen = event(trigger)
    assert seen["event"] == "replaced"
    outcome = read_outcome(control, submission.app_id)
    assert outcome is not None
    assert outcome.verdict == "stopped"
    assert deferral(lambda: operator.resume(context(ti), seen)).app_id != submission.app_id


def test_a_restart_goes_on_in_the_same_task(operator: StreamOperator, control: ControlFolder) -> None:
    submission = running(operator, control)
    change_desired(control, "running", restart=True)
    seen = event(StreamTrigger("orders", str(control.home), submission.app_id))
    trigger = deferral(lambda: operator.resume(context(FakeTi()), seen))
    assert isinstance(trigger, StreamTrigger)
    assert trigger.app_id != submission.app_id


def test_a_failure_carries_reason_and_log(operator: StreamOperator, control: ControlFolder, sent: Alerts) -> None:
    write_json(control.folder / "behaviour.json", {"fail_after_seconds": 1, "rows": 0})
    submission, ti = running(operator, control), FakeTi()
    seen = event(StreamTrigger("orders", str(control.home), submission.app_id))
    with pytest.raises(StreamFailedError, match=rf"told to fail; the application's log: {submission.log}"):
        operator.resume(context(ti), seen)
    assert ti.pushed["verdict"] == {"end": "failed", "landed": False, "is_outage": False}
    assert sent == [("failed", "told to fail")]


@pytest.mark.parametrize(("is_paused", "is_request"), [(False, True), (True, False)])
def test_unpausing_the_dag_after_a_crash_loop_is_a_request(
    operator: StreamOperator, control: ControlFolder, monkeypatch: pytest.MonkeyPatch, is_paused: bool, is_request: bool
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(stream_module, "dag_is_paused", lambda dag_id: asked.append(dag_id) or is_paused)
    before = change_desired(control, "running", freshness="2s", by="ada")
    loop = CrashLoop(ends=("a", "b", "c"), at=time.time(), failed_runs=2)
    write_crash_loop(control, loop)
    running(operator, control)
    desired = read_desired(control)
    assert asked == ["ingest__orders"]
    assert (desired.by, desired.freshness, desired.generation) == ("airflow" if is_request else "ada", "2s", before.generation)
    assert (read_crash_loop(control).since(desired.since) == CrashLoop()) is is_request
    assert not is_request or "somebody unpaused the DAG ingest__orders" in desired.reason


def test_a_disk_that_is_full_is_noted_for_the_guard(operator: StreamOperator, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise SubmitFailedError("orders", "no room") from OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(operator, "_submit", full)
    ti = FakeTi()
    with pytest.raises(SubmitFailedError):
        operator.execute(context(ti))
    assert ti.pushed["verdict"] == {"end": "failed", "landed": False, "is_outage": True}


def test_a_death_without_a_word_after_long_landing_is_an_incident(
    operator: StreamOperator, control: ControlFolder, sent: Alerts
) -> None:
    write_json(control.folder / "behaviour.json", {"die_after_seconds": 1})
    submission, ti = running(operator, control), FakeTi()
    write_submission(control, submission.model_copy(update={"submitted_at": time.time() - 700}))
    seen = event(StreamTrigger("orders", str(control.home), submission.app_id))
    with pytest.raises(StreamFailedError, match="died without an outcome"):
        operator.resume(context(ti), seen)
    assert ti.pushed["verdict"]["landed"] is True
    assert sent[0][0] == "incident"


def test_a_refusal_fails_without_another_try(operator: StreamOperator, control: ControlFolder, sent: Alerts) -> None:
    write_json(control.folder / "behaviour.json", {"refuse": "topic was recreated"})
    trigger = deferral(lambda: operator.execute(context(FakeTi())))
    with pytest.raises(AirflowFailException, match="topic was recreated"):
        operator.resume(context(FakeTi()), event(trigger))
    assert sent == [("refused", "topic was recreated")]


def test_a_completed_run_of_a_continuous_pipeline_rests(operator: StreamOperator, control: ControlFolder) -> None:
    write_json(control.folder / "behaviour.json", {"complete_after_seconds": 1})
    trigger = deferral(lambda: operator.execute(context(FakeTi())))
    assert operator.resume(context(FakeTi()), event(trigger))["verdict"] == "completed"
    assert read_desired(control).state == "stopped"


def test_a_stalled_application_fails_the_task_and_is_ended_by_the_next(
    operator: StreamOperator, control: ControlFolder, settings: Settings, sent: Alerts, states: States
) -> None:
    submission = running(operator, control)
    watch = StreamWatch(control, submission.app_id)
    assert watch.look(time.time()) is None
    seen = watch.look(time.time() + 61)
    assert seen is not None
    assert (seen["event"], seen["kind"]) == ("stalled", "silent")
    with pytest.raises(StreamStalledError, match="has reported no progress"):
        operator.resume(context(FakeTi()), seen)
    assert sent[0][0] == "stalled"
    states["run-1"] = "failed"
    trigger = deferral(lambda: operator.execute(context(FakeTi("run-2"))))
    assert isinstance(trigger, ReplaceTrigger)
    assert trigger.stop_seconds < 10
    # It does not stop in time: it is ended by force.
    control.stop_marker(submission.app_id).unlink()
    wait_until(lambda: end_of_replaced(control, submission.app_id, time.monotonic()), 20, "its end")
    assert not LocalBackend(settings).is_alive(control, submission)


def test_a_trigger_asks_the_application_to_stop_only_when_a_person_acted(
    control: ControlFolder, states: States, monkeypatch: pytest.MonkeyPatch
) -> None:
    trigger = StreamTrigger("orders", str(control.home), "app-1")
    trigger.task_instance = SimpleNamespace(dag_id="d", run_id="run-1", task_id="stream")  # type: ignore[assignment]
    marker = control.stop_marker("app-1")
    states["run-1"] = "deferred"
    asyncio.run(trigger.on_kill())
    assert not marker.exists(), "the trigger moved to another triggerer"

    def no_answer(owner: Owner) -> str:
        raise OSError("no answer")

    with monkeypatch.context() as patch:
        patch.setattr(task_state, "state_of_owner", no_answer)
        asyncio.run(trigger.on_kill())
    assert not marker.exists(), "what is not known stops nothing"
    states["run-1"] = "success"
    by_hand = StreamTrigger("orders", str(control.home), "app-1", owned=False)
    by_hand.task_instance = trigger.task_instance
    asyncio.run(by_hand.on_kill())
    assert not marker.exists(), "another's application"
    asyncio.run(trigger.on_kill())
    assert marker.exists()


def test_a_task_that_failed_by_itself_hands_its_application_over(operator: StreamOperator, control: ControlFolder) -> None:
    running(operator, control)
    hand_over({"ti": FakeTi("run-9"), "task": operator})
    assert (found := read_submission(control)) is not None
    assert found.custody is Custody.WATCHED, "another task's"
    hand_over({"ti": FakeTi(), "task": operator})
    assert (found := read_submission(control)) is not None
    assert found.custody is Custody.HANDED_OVER


def test_an_application_that_hangs_after_its_last_word_is_ended(
    operator: StreamOperator, control: ControlFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    submission = running(operator, control)
    write_json(
        control.outcome(submission.app_id),
        {"app_id": submission.app_id, "verdict": "stopped", "reason": "r", "started_at": 0, "ended_at": time.time()},
    )
    watch = StreamWatch(control, submission.app_id)
    assert watch.look(time.time()) is None
    monkeypatch.setattr(stream_watch, "EXIT_SECONDS", -1.0)
    assert watch.look(time.time()) is None
    assert wait_until(lambda: watch.look(time.time()), 10, "the end")["event"] == "ended"


def moved_to_another_container(control: ControlFolder) -> Submission:
    """Make the application's record that of a process in another PID namespace; return it."""
    submission = read_submission(control)
    assert submission is not None
    place = {"pid_namespace": "pid:[1]", "host": "airflow-worker-0"}
    write_submission(control, submission.model_copy(update=place))
    return submission.model_copy(update=place)


def test_an_application_that_the_triggerer_cannot_see_is_stopped_with_the_way_out(
    operator: StreamOperator, control: ControlFolder, sent: Alerts, states: States
) -> None:
    started = running(operator, control)
    moved = moved_to_another_container(control)
    seen = event(StreamTrigger("orders", str(control.home), moved.app_id))
    assert seen["event"] == "elsewhere"
    ti = FakeTi()
    with pytest.raises(
        AirflowFailException, match=r"another container or on another machine \(airflow-worker-0\).*backend standalone"
    ) as caught:
        operator.resume(context(ti), seen)
    assert sent == [("refused", str(caught.value))]
    assert ti.pushed["verdict"] == {"end": "refused", "landed": False, "is_outage": False}, "the guard counts it"
    wait_until(lambda: read_outcome(control, started.app_id), 20, "its end")
    states["run-1"] = "failed"
    following = deferral(lambda: operator.execute(context(FakeTi("run-2"))))
    assert isinstance(following, StreamTrigger | ReplaceTrigger)
    assert following.app_id != started.app_id or event(following)["event"] == "replaced"


def test_an_application_that_ended_with_its_container_is_not_taken_for_one_elsewhere(
    operator: StreamOperator, control: ControlFolder
) -> None:
    started = running(operator, control)
    assert LocalBackend(load_settings()).kill(started)
    moved_to_another_container(control)
    write_json(control.lease, read_json(control.lease) | {"pid_namespace": "pid:[1]", "host": "airflow-worker-0"})
    watch, now = StreamWatch(control, started.app_id), time.time()
    assert [watch.look(now + second) for second in range(3)] == [None] * 3, "its lease has not ended yet"
    control.lease.unlink()
    control.submission.unlink()


def test_an_application_that_a_person_started_elsewhere_is_watched(operator: StreamOperator, control: ControlFolder) -> None:
    running(operator, control)
    moved = moved_to_another_container(control).model_copy(update={"owner": None})
    write_submission(control, moved)
    watch = StreamWatch(control, moved.app_id)

    def beats() -> bool:
        before = read_progress(control)
        assert watch.look(time.time()) is None
        wait_until(lambda: read_progress(control) != before, 20, "another sign of life")
        return True

    assert beats() and beats() and beats()
