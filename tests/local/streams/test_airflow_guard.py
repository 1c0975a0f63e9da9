"""The guard of a crash loop, and what an alert does that cannot be sent."""

from __future__ import annotations

import errno

import pytest
from tests.support.airflow.task_instances import Alerts, FakeTi, States, context, control_fixture, sent_fixture, states_fixture  # noqa: F401
from tests.support.streams.stand_ins import settings_fixture  # noqa: F401

from lakebound.alerts.store import AlertStore
from lakebound.control.crash_loop import failed_runs_limit, read_crash_loop
from lakebound.control.desired import change_desired
from lakebound.control.folder import ControlFolder
from lakebound.control.progress import Outcome, write_outcome
from lakebound.control.submission import Owner, Submission, write_submission
from lakebound_airflow.notifications import alerts
from lakebound_airflow.operators.guard import CrashLoopGuard, NothingLandedError


class Runs:
    """Ends runs of the ingest DAG, and says which of them the guard failed, and when Airflow would pause the DAG."""

    def __init__(self, control: ControlFolder, states: States, limit: int) -> None:
        self.guard = CrashLoopGuard(task_id="guard", pipeline="orders", limit=limit, stream_task_id="stream")
        self.control, self.states, self.limit = control, states, limit
        self.failed: list[bool] = []

    def end(self, *, landed: bool = False, is_outage: bool = False, state: str = "failed", again: bool = False) -> str:
        """End one more run, or the last one again; return why it failed."""
        number = len(self.failed) + (0 if again else 1)
        ti, self.states[f"run-{number}"] = FakeTi(f"run-{number}", task_id="guard"), state
        ti.pushed["verdict"] = {"end": "failed", "landed": landed, "is_outage": is_outage}
        try:
            self.guard.execute(context(ti))
        except NothingLandedError as exc:
            said = str(exc)
        else:
            said = ""
        self.failed = [*self.failed[: number - 1], bool(said)]
        return said

    @property
    def pauses(self) -> bool:
        """Whether Airflow pauses the DAG after the last run."""
        count = failed_runs_limit(self.limit)
        return len(self.failed) >= count and all(self.failed[-count:])

    @property
    def is_crash_loop(self) -> bool:
        """Whether a person is asked."""
        return read_crash_loop(self.control).is_over_limit(self.limit)


@pytest.mark.parametrize("limit", [1, 2, 3, 5])
def test_airflow_pauses_the_dag_with_the_run_that_makes_the_crash_loop_also_after_a_request(
    control: ControlFolder, states: States, sent: Alerts, limit: int
) -> None:
    runs = Runs(control, states, limit)
    for request in range(2):
        for _ in range(limit):
            assert not runs.pauses or request
            said = runs.end()
        assert runs.pauses and runs.is_crash_loop
        assert f"the last {limit} starts ended" in said and said.endswith("lakebound start orders")
        assert [verdict for verdict, _ in sent] == ["crash_loop"] * (request + 1)
        assert read_crash_loop(control).was_unpaused(limit, is_paused=False)
        assert not read_crash_loop(control).was_unpaused(limit, is_paused=True)
        change_desired(control, "running", reason="mended", by="ada")
        assert limit == 1 or (not runs.end() and not runs.pauses), "a person's request gives all the starts again"
        change_desired(control, "running", reason="mended", by="ada")


def test_a_run_that_landed_or_that_is_judged_again_does_not_count(control: ControlFolder, states: States, sent: Alerts) -> None:
    runs = Runs(control, states, 3)
    assert not runs.end() and runs.end()
    assert "start 2 of at most 3 ended" in runs.end(again=True)
    assert not runs.end(landed=True)
    assert read_crash_loop(control).ends == ()
    assert not runs.end() and "start 2 of at most 3 ended" in runs.end()
    assert not runs.end(state="success")
    assert read_crash_loop(control).ends == ()
    assert sent == []


def test_outages_do_not_count_however_many(control: ControlFolder, states: States, sent: Alerts) -> None:
    runs = Runs(control, states, 3)
    assert not runs.end() and runs.end()
    for number in range(1, 101):
        assert not runs.end(is_outage=True)
        loop = read_crash_loop(control)
        assert (len(loop.ends), loop.outages.count) == (2, number)
        assert 0 < loop.not_before(15.0) - loop.outages.at <= 60
    assert not runs.pauses and sent == []
    assert "the last 3 starts ended" in runs.end(), "what failed before the outage and fails after it is a crash loop"
    assert not read_crash_loop(control).was_unpaused(3, is_paused=False), "Airflow counts anew after the outage"
    assert "the last 4 starts ended" in runs.end() and runs.pauses
    assert read_crash_loop(control).was_unpaused(3, is_paused=False)


def test_an_application_says_itself_that_an_outage_ended_it(control: ControlFolder, states: States, sent: Alerts) -> None:
    runs = Runs(control, states, 1)
    owner = Owner(dag_id="ingest__orders", run_id="run-1", task_id="stream")
    write_submission(control, Submission(app_id="app-1", owner=owner))
    ended = {"app_id": "app-1", "verdict": "failed", "reason": "away", "started_at": 0, "ended_at": 1}
    write_outcome(control, Outcome.model_validate({**ended, "error_class": "BrokerUnavailableError"}))
    assert not runs.end()
    assert read_crash_loop(control).outages.reason == "away"


def test_a_disk_that_is_full_is_no_crash_loop(
    control: ControlFolder, states: States, sent: Alerts, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("lakebound_airflow.operators.guard.write_crash_loop", full)
    assert not Runs(control, states, 1).end()


def test_an_alert_without_a_connection_or_with_a_broken_one_is_recorded_and_raises_nothing(
    control: ControlFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_LAKEBOUND_WEBHOOK", '{"conn_type": "http", "host": "127.0.0.1", "port": 1}')
    alerts.alert(context(FakeTi()), control, "stalled", "{{ no template }}", "app-1")
    waiting = AlertStore(control.home).read().outbox
    assert [(one.message.alerts[0].cause, one.tries) for one in waiting] == [("stalled", 1)], "it is tried again"
    monkeypatch.delenv("AIRFLOW_CONN_LAKEBOUND_WEBHOOK")
    alerts.alert(context(FakeTi()), control, "failed", "why", "app-1")
    lines = (control.folder / "incidents.jsonl").read_text().splitlines()
    assert ["no template" in lines[0], '"failed"' in lines[1], len(lines)] == [True, True, 2]
    monkeypatch.setattr(alerts, "add_event", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    alerts.alert(context(FakeTi()), control, "failed", "why", "app-1")
