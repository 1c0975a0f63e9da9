"""``lakebound control`` without Airflow, with a stand-in for the application; and what it says of the Airflow that it finds."""

from __future__ import annotations

import getpass
import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

import pytest
from tests.support.streams.command_line import answer, lakebound
from tests.support.streams.stand_ins import settings_fixture  # noqa: F401
from tests.support.waiting import wait_until

from lakebound.cli.control import Action
from lakebound.control import starters
from lakebound.control.applications import living_submission
from lakebound.control.crash_loop import CrashLoop, read_crash_loop, write_crash_loop
from lakebound.control.desired import RunBound, read_desired
from lakebound.control.folder import ControlFolder
from lakebound.control.person import operating_system_user
from lakebound.control.progress import read_outcome, read_progress
from lakebound.control.requests import RequestedAction
from lakebound.control.starters import AirflowView, who_starts
from lakebound.local import airflow_view
from lakebound.local.airflow_client import AirflowAnswerError
from lakebound.local.airflow_view import look_at_airflow
from lakebound.settings import Settings

BY_HAND = "to start it now, without Airflow: lakebound run orders --detach"


@pytest.fixture
def control(settings: Settings) -> ControlFolder:
    return ControlFolder(settings.home, "orders")


def running(control: ControlFolder) -> str:
    """Start the application by hand, and return its id when it runs."""
    said = lakebound("run", "orders", "--detach").stderr
    found = living_submission(control)
    assert found is not None and f"run: {found.app_id}; log: {found.log}" in said
    wait_until(lambda: (p := read_progress(control)) and p.app_id == found.app_id, 30, "progress")
    return found.app_id


def verdict(control: ControlFolder, app_id: str) -> str:
    outcome = read_outcome(control, app_id)
    return outcome.verdict if outcome is not None else "none"


def test_the_dag_offers_the_same_actions() -> None:
    assert {action.value.replace("-", "_") for action in Action} == set(get_args(RequestedAction))


def test_an_application_is_held_started_restarted_and_stopped_without_airflow(
    settings: Settings, control: ControlFolder
) -> None:
    first = running(control)
    body = answer("control", "orders", "hold", "--reason", "audit")
    assert (body["state"], body["application"], body["desired"]["state"]) == ("met", first, "held")
    assert (verdict(control, first), living_submission(control)) == ("stopped", None)
    assert read_desired(control).by == operating_system_user()
    assert "held by" in lakebound("status", "orders").stdout

    assert "is held (audit)" in lakebound("control", "orders", "restart", code=1).stderr
    assert "lakebound start orders" in lakebound("run", "orders", "--detach", code=1).stderr
    said = lakebound("start", "orders").stdout
    assert "orders: the desired state is running, which ends the hold (audit); no Airflow was started from" in said
    assert BY_HAND in said

    second = running(control)
    assert f"running; {second} runs. See: lakebound status orders" in lakebound("control", "orders", "start").stdout
    restarted = lakebound("control", "orders", "restart", "--freshness", "2s")
    assert f"orders: {second} ends after its current batch" in restarted.stderr and BY_HAND in restarted.stdout
    assert (verdict(control, second), read_desired(control).freshness) == ("stopped", "2s")

    third = running(control)
    started = lakebound("start", "orders")
    assert f"{third} ends" in started.stderr and BY_HAND in started.stdout, "another freshness takes another application"

    third = running(control)
    assert "orders: the desired state is stopped; nothing runs" in lakebound("stop", "orders").stdout
    assert (verdict(control, third), read_desired(control).reason) == ("stopped", "lakebound stop")


def test_a_start_unpauses_the_dag_also_while_an_application_runs(
    settings: Settings, control: ControlFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = FoundAirflow()
    monkeypatch.setattr(airflow_view, "airflow_of", lambda _: found)
    app_id = running(control)
    lakebound("stop", "orders", "--wait", "0")
    assert found.paused
    wait_until(lambda: living_submission(control) is None, 30, "its end")
    assert "scheduler starts the application; the DAG ingest__orders is unpaused" in lakebound("start", "orders").stdout
    found.paused = True
    assert running(control) != app_id
    assert lakebound("start", "orders").stdout.count(" runs. See") == 1
    assert not found.paused


def test_a_start_says_that_a_running_application_has_older_files(settings: Settings, control: ControlFolder) -> None:
    app_id = running(control)
    assert "outdated" not in lakebound("start", "orders").stdout
    file = settings.pipelines / "orders.yaml"
    file.write_text(file.read_text() + "limits: {max_failed_starts: 7}\n")
    said = lakebound("start", "orders").stdout
    assert f"{app_id} runs, outdated" in said and "lakebound control orders restart" in said
    assert f"application {app_id}" in lakebound("status", "orders").stdout, "its checkpoint's folder has this name"


def test_a_start_ends_a_crash_loop_and_says_so(settings: Settings, control: ControlFolder) -> None:
    write_crash_loop(control, CrashLoop(ends=("a", "b", "c"), at=1.0, reason="why"))
    assert "which ends the crash loop of 3 starts" in lakebound("start", "orders").stdout
    assert read_crash_loop(control).since(read_desired(control).since) == CrashLoop()


def test_a_bounded_run_is_written_and_one_that_contradicts_itself_is_not(settings: Settings, control: ControlFolder) -> None:
    lakebound("control", "orders", "bounded-run", "--offsets", '{"orders": {"0": 12}}')
    assert read_desired(control).until == RunBound(offsets={"orders": {0: 12}})
    written = read_desired(control)
    for arguments, code in ((["--offsets", "12,13"], 2), (["--until-time", "soon"], 2), ([], 1)):
        lakebound("control", "orders", "bounded-run", *arguments, code=code)
    lakebound("control", "orders", "rest", code=2)
    assert read_desired(control) == written


def test_an_application_that_hangs_is_told(settings: Settings, control: ControlFolder) -> None:
    app_id = running(control)
    living = living_submission(control)
    assert living is not None and living.pid is not None
    subprocess.run(["kill", "-STOP", str(living.pid)], check=True)
    try:
        said = lakebound("stop", "orders", "--wait", "0.5", code=1).stdout
        assert "an application still runs after 0.5 s; if it hangs, follow the runbook stall" in said
        said = lakebound("control", "orders", "restart", "--wait", "0.5", code=1).stdout
        assert f"{app_id} has not ended after 0.5 s" in said
        assert lakebound("stop", "orders", "--wait", "0").stdout.startswith(
            f"orders: the desired state is stopped; {app_id} ends"
        )
    finally:
        subprocess.run(["kill", "-CONT", str(living.pid)], check=True)


def test_a_pipeline_whose_yaml_is_wrong_can_be_stopped(settings: Settings, control: ControlFolder) -> None:
    app_id = running(control)
    (settings.pipelines / "orders.yaml").write_text("pipeline: orders\ntopics: oops\n")
    lakebound("start", "orders", code=1)
    lakebound("stop", "orders")
    assert verdict(control, app_id) == "stopped"
    assert "there is no pipeline 'nope'" in lakebound("stop", "nope", code=1).stderr


def test_a_damaged_file_is_named_and_its_page_helps(settings: Settings, control: ControlFolder) -> None:
    lakebound("stop", "orders")
    control.desired.write_text("{torn")
    for action in ("start", "stop"):
        said = lakebound(action, "orders", code=1).stderr
        assert "cannot be read" in said and "runbook control-files" in said, said
    assert str(control.desired) in lakebound("status", "orders").stdout
    control.desired.rename(control.folder / "desired.json.aside")
    lakebound("stop", "orders")
    assert read_desired(control).state == "stopped"


def test_who_asks_is_not_taken_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", "somebody-else")
    assert getpass.getuser() == "somebody-else"
    assert "somebody-else" not in operating_system_user()
    code = "import os; from lakebound.control.person import operating_system_user as user; os.setuid(54321); print(user())"
    if operating_system_user().startswith("root"):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == "uid 54321"


@pytest.mark.parametrize(
    ("view", "says"),
    [
        (
            AirflowView(scheduler_is_alive=True, is_paused=False),
            "Airflow's scheduler starts the application; the DAG ingest__orders is not paused",
        ),
        (
            AirflowView(scheduler_is_alive=True, is_paused=False, was_unpaused=True),
            "Airflow's scheduler starts the application; the DAG ingest__orders is unpaused",
        ),
        (
            AirflowView(scheduler_is_alive=True, scheduler_age_seconds=12.3, is_paused=False),
            "Airflow's scheduler (last sign of life 12 s ago) starts the application; the DAG ingest__orders is not paused",
        ),
        (
            AirflowView(scheduler_is_alive=False, is_paused=False),
            "Airflow's scheduler is down. When it is back, it starts the application (DAG ingest__orders: not paused); "
            f"{BY_HAND}",
        ),
        (
            AirflowView("no Airflow was started from /x"),
            "no Airflow was started from /x, so no DAG was unpaused. If another Airflow runs the DAG ingest__orders "
            f"unpaused, it starts the application; {BY_HAND}",
        ),
    ],
)
def test_who_starts_it_is_said(view: AirflowView, says: str) -> None:
    paused = who_starts("orders", None, AirflowView(scheduler_is_alive=True, is_paused=True))
    assert paused == "its DAG ingest__orders is paused, so Airflow starts nothing; start it: lakebound start orders"
    assert who_starts("orders", None, view) == says
    assert starters.run_command("orders") in who_starts("orders", "0 3 * * *", AirflowView("away"))
    scheduled = who_starts("orders", "0 3 * * *", AirflowView(scheduler_is_alive=True, is_paused=False))
    assert scheduled.startswith("Airflow's scheduler starts the application at its schedule (0 3 * * *)")


@dataclass
class FoundAirflow:
    """An embedded Airflow and its client, as far as they are looked at."""

    scheduler: str = "healthy"
    paused: bool = True
    problem: str = ""
    beat: str | None = None
    is_running: bool = True
    record: Any = Path("process.json")
    url: str = "http://127.0.0.1:1"

    def client(self) -> FoundAirflow:
        return self

    def __enter__(self) -> FoundAirflow:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def health(self) -> dict[str, dict[str, str | None]]:
        return {"scheduler": {"status": self.scheduler, "latest_scheduler_heartbeat": self.beat}}

    def find_paused(self, dag_id: str) -> bool | None:
        if self.problem:
            raise AirflowAnswerError("GET", f"/dags/{dag_id}", self.problem)
        return self.paused

    def unpause(self, dag_id: str) -> None:
        assert dag_id == "ingest__orders"
        self.paused = False


def test_the_dag_is_unpaused_where_airflow_answers(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    found = FoundAirflow(scheduler="unhealthy")
    monkeypatch.setattr(airflow_view, "airflow_of", lambda _: found)
    assert look_at_airflow(settings, "orders", unpause=False) == AirflowView(is_paused=True)
    assert look_at_airflow(settings, "orders", unpause=True) == AirflowView(is_paused=False, was_unpaused=True)
    assert not found.paused
    assert look_at_airflow(settings, "orders", unpause=True) == AirflowView(is_paused=False)
    found.beat = datetime.now(UTC).isoformat()
    assert 0 <= (look_at_airflow(settings, "orders", unpause=True).scheduler_age_seconds or -1) < 60
    found.problem = "404 not found"
    assert "Airflow cannot be reached (Airflow: GET" in (look_at_airflow(settings, "orders", unpause=True).problem or "")
    found.is_running = False
    assert "does not run" in (look_at_airflow(settings, "orders", unpause=True).problem or "")
