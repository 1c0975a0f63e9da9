"""A real Airflow with the shipped DAGs, whose applications are stand-ins started by the real spark-submit."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
import yaml
from tenacity import Retrying, retry_if_exception_type, retry_if_result, stop_after_delay, wait_fixed

from lakebound.control import processes
from lakebound.control.applications import living_submission, stop_streams
from lakebound.control.folder import ControlFolder, write_json
from lakebound.control.ports import free_port
from lakebound.control.progress import Progress, read_progress
from lakebound.control.submission import Submission
from lakebound.local.airflow import Airflow
from lakebound.local.airflow_client import AirflowAnswerError, AirflowClient
from lakebound.settings import Settings, load_settings
from tests.support.airflow.page_server import CHROMIUM
from tests.support.airflow.receivers import WebhookEndpoint
from tests.support.streams.hours_writer import WANTED
from tests.support.streams.stand_ins import FAKE_APPS, ORDERS
from tests.support.waiting import wait_until

REPOSITORY = Path(__file__).parents[2]
PASSWORD = "canary-4b1d0c7e"
WEBHOOK_SECRET = "canary-99e2f6aa"
METRICS_TOKEN = "metrics-token"
"""Name of the file in LAKEBOUND_HOME; a test writes it."""
PIPELINES = ("orders", "stalls", "crashes", "moves", "survives")
START_SECONDS = 120.0
PARSE_SECONDS = 150.0
"""All DAG files are parsed by then: one whose DAGs the locked database did not take has its turn again later."""
HASTY = "recover_hasty"
USERS = {"admin": "admin", "ada": "op", "bob": "op", "guest": "viewer"}
"""Who may log in, and in which of the simple auth manager's roles."""
ON_COMMIT = """
from __future__ import annotations

from airflow.sdk import dag, task
from lakebound_airflow.assets import table_asset

@dag(schedule=[table_asset("orders", "delta:lake.orders", every_commits=100, every_seconds=15)], is_paused_upon_creation=False,
     max_active_runs=1)
def on_commit():
    @task
    def show(triggering_asset_events=None):
        return [event.extra for events in triggering_asset_events.values() for event in events]
    show()

on_commit()
"""
HOURS_TABLES = "hours-tables"
"""Folder in LAKEBOUND_HOME of the table on whose complete hours a DAG runs."""
HOURLY = """
from __future__ import annotations

from airflow.sdk import dag, task
from lakebound_airflow.complete_hours import complete_hours, take_hour

@dag(schedule=complete_hours("moves", "delta:lake.moves"), is_paused_upon_creation=False, max_active_runs=2)
def hourly():
    @task
    def report(hour, dag_run=None):
        import pyarrow.compute as pc
        from deltalake import DeltaTable
        from lakebound.spec.pipeline import TableSpec
        from lakebound.tables.places import local_places
        from pathlib import Path

        folder = Path("{tables}")
        table = local_places(folder, folder / "lake").delta_path(TableSpec(format="delta", name="lake.moves"))
        rows = {}
        for row in DeltaTable(str(table), version=int(hour["version"])).to_pyarrow_table(columns=["at", "_kafka"]).to_pylist():
            if hour["start"] <= row["at"].isoformat() < hour["end"]:
                rows.setdefault(str(row["_kafka"]["partition"]), []).append(row["_kafka"]["offset"])
        return {**hour, "rows": rows, "begins": dag_run.partition_date.isoformat()}
    report(take_hour("moves", "delta:lake.moves").output)

hourly()
"""
DEAF = """
from __future__ import annotations

from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import dag

@dag(schedule=None, is_paused_upon_creation=False)
def deaf():
    BashOperator(task_id="sleep", bash_command="trap '' TERM; sleep 600; true")

deaf()
"""


@dataclass
class Stack:
    """The running Airflow and what belongs to it."""

    airflow: Airflow
    settings: Settings
    sink: WebhookEndpoint
    client: AirflowClient
    triggerers: list[processes.ProcessRecord] = field(default_factory=list)

    def password(self, user: str) -> str:
        """The password of one of ``USERS``, as Airflow made it up."""
        return str(json.loads(self.airflow.password_file.read_text())[user])

    def client_of(self, user: str) -> AirflowClient:
        """A client that logs in as one of ``USERS``."""
        return AirflowClient(self.airflow.url, user, self.password(user))

    @contextmanager
    def requests_of(self, user: str) -> Iterator[httpx.Client]:
        """Plain requests by one of ``USERS``."""
        login = {"username": user, "password": self.password(user)}
        with httpx.Client(base_url=self.airflow.url, timeout=20.0, trust_env=False) as requests:
            token = requests.post("/auth/token", json=login).raise_for_status().json()["access_token"]
            requests.headers["Authorization"] = f"Bearer {token}"
            yield requests

    def control(self, pipeline: str) -> ControlFolder:
        """The pipeline's folder of state."""
        return ControlFolder(self.settings.home, pipeline)

    def running(self, pipeline: str, other_than: str = "", deadline_seconds: float = START_SECONDS) -> Submission:
        """Wait for an application that runs, and return it."""

        def found() -> Submission | None:
            submission, progress = living_submission(self.control(pipeline)), read_progress(self.control(pipeline))
            if submission is None or progress is None or submission.app_id == other_than:
                return None
            return submission if progress.app_id == submission.app_id else None

        return wait_until(found, deadline_seconds, f"an application of {pipeline}") or pytest.fail("unreachable")

    def progress(self, pipeline: str) -> Progress:
        """The latest progress."""
        return read_progress(self.control(pipeline)) or pytest.fail(f"no progress of {pipeline}")

    def task(self, pipeline: str, task_id: str = "stream") -> dict[str, Any]:
        """The task instance in the newest run of the pipeline's ingest DAG."""
        run_id = self.client.runs(f"ingest__{pipeline}")[0]["dag_run_id"]
        instances = self.client.task_instances(f"ingest__{pipeline}", run_id)
        return next(instance for instance in instances if instance["task_id"] == task_id)

    def wait_task(
        self, pipeline: str, condition: Callable[[dict[str, Any]], object], what: str, deadline_seconds: float = 60.0
    ) -> dict[str, Any]:
        """Wait until the stream's task instance fulfils the condition, and return it."""

        def found() -> dict[str, Any] | None:
            instance = self.task(pipeline)
            return instance if condition(instance) else None

        return wait_until(found, deadline_seconds, f"{what} of {pipeline}", poll_seconds=0.5) or pytest.fail("unreachable")

    def deferred(self, pipeline: str) -> dict[str, Any]:
        """Wait until the stream's task is deferred and a triggerer has it."""
        condition = lambda found: found["state"] == "deferred" and found["triggerer_job"]  # noqa: E731
        return self.wait_task(pipeline, condition, "a deferred task")

    def start_triggerer(self) -> processes.ProcessRecord:
        """Start one more triggerer, and return it."""
        environment = {**self.airflow.environment(), "AIRFLOW__LOGGING__TRIGGER_LOG_SERVER_PORT": str(free_port())}
        command = [sys.executable, "-m", "airflow", "triggerer", "--skip-serve-logs"]
        log = self.settings.home / f"triggerer-{len(self.triggerers)}.log"
        record = processes.start("triggerer", command, log, environment, folder=self.airflow.home)
        self.triggerers.append(record)
        return record

    def own_triggerer(self) -> list[psutil.Process]:
        """The processes of the triggerer that ``airflow standalone`` started."""
        record = self.airflow.record or pytest.fail("Airflow was never started")
        members = processes.members(record)
        leaders = [process for process in members if "triggerer" in _command_of(process)]
        return [process for leader in leaders for process in (leader, *leader.children(recursive=True))]


def _command_of(process: psutil.Process) -> list[str]:
    """Return its command line, empty for one that has just ended."""
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def write_pipelines(folder: Path) -> None:
    """Write the pipelines' YAML, and one that is broken."""
    folder.mkdir()
    for name in PIPELINES:
        spec = {
            **ORDERS,
            "pipeline": name,
            "tables": [{"format": "delta", "name": f"lake.{name}"}],
            "limits": {"max_failed_starts": 2, "failed_start_pause_seconds": 3},
        }
        connection: dict[str, Any] = {"bootstrap_servers": "127.0.0.1:1"}
        if name == "orders":
            connection["sasl"] = {"username": "app", "password": {"env": "LAKEBOUND_SECRET_ORDERS"}}
        if name == "moves":
            spec["complete_hours"] = WANTED
        (folder / f"{name}.yaml").write_text(yaml.safe_dump({**spec, "connection": connection}))
    (folder / "broken.yaml").write_text("pipeline: broken\ntopics: [a]\nfreshnes: 5s\n")


def write_dags(folder: Path) -> None:
    """Copy the shipped DAG files, and add some.

    One runs when data has landed, one when an hour is complete; the task of one hears no SIGTERM; one is ``recover``, but waits
    3 s for its approval. The health DAG begins paused: its five tasks would take the time of what the tests watch, and what it
    finds would explain away the alerts that they wait for. One test has it look.
    """
    shutil.copytree(REPOSITORY / "dags", folder, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "on_commit.py").write_text(ON_COMMIT)
    (folder / "deaf.py").write_text(DEAF)
    (folder / "hourly.py").write_text(HOURLY.replace("{tables}", str(folder.parent / HOURS_TABLES)))
    health = folder / "checkpoint_health.py"
    write_changed(health, health, {"is_paused_upon_creation=False": "is_paused_upon_creation=True"})
    hasty = {'dag_id="recover"': f'dag_id="{HASTY}"', "timedelta(hours=12)": "timedelta(seconds=3)"}
    write_changed(folder / "recover.py", folder / f"{HASTY}.py", hasty)


def write_changed(source: Path, target: Path, changes: Mapping[str, str]) -> None:
    """Write a DAG file with other words in it."""
    text = source.read_text()
    for before, after in changes.items():
        assert before in text
        text = text.replace(before, after)
    target.write_text(text)


def stack_environment(sink: WebhookEndpoint) -> Mapping[str, str]:
    """Return what Airflow's components see besides the settings."""
    webhook = {"conn_type": "http", "host": f"http://127.0.0.1:{sink.port}/{WEBHOOK_SECRET}"}
    environment = {
        "AIRFLOW_CONN_LAKEBOUND_WEBHOOK": json.dumps(webhook),
        "LAKEBOUND_SECRET_ORDERS": PASSWORD,
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": ",".join(f"{name}:{role}" for name, role in USERS.items()),
        "LAKEBOUND_SELF_APPROVAL": "refuse",
        # All files cost 5 to 8 CPU seconds. No test changes one, and again and again, as for a user who edits, they keep a core
        # busy. Never again would not do: a DAG's watchers begin when its file is read while it is not paused.
        "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "30",
    }
    if "PYTHONPATH" in os.environ:
        environment["PYTHONPATH"] = os.environ["PYTHONPATH"]
    return environment


def request_until_taken(requests: httpx.Client, method: str, path: str, body: object) -> httpx.Response:
    """Make a request until Airflow's database takes it, as ``AirflowClient`` does; return the answer."""
    again = Retrying(
        retry=retry_if_result(lambda answer: answer.status_code == httpx.codes.INTERNAL_SERVER_ERROR),
        stop=stop_after_delay(60),
        wait=wait_fixed(0.5),
    )
    return again(requests.request, method, path, json=body)


def insist(ask: Callable[[], None]) -> None:
    """Ask until Airflow does it: while it first reads the DAG files, its SQLite database is locked now and then."""
    for attempt in Retrying(
        retry=retry_if_exception_type(AirflowAnswerError), stop=stop_after_delay(60), wait=wait_fixed(1), reraise=True
    ):
        with attempt:
            ask()


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """Airflow with all pipelines running, one for all test modules; everything is ended with the session."""
    home = tmp_path_factory.mktemp("real-airflow")
    write_pipelines(home / "pipelines")
    write_dags(home / "dags")
    settings = load_settings(
        {
            "LAKEBOUND_HOME": str(home),
            "LAKEBOUND_APPS": str(FAKE_APPS),
            "LAKEBOUND_PIPELINES": str(home / "pipelines"),
            "LAKEBOUND_JARS": str(load_settings().jars),
        }
    )
    write_json(ControlFolder(home, "crashes").folder / "behaviour.json", {"fail_after_seconds": 0.5, "rows": 0})
    sink = WebhookEndpoint()
    environment = {**stack_environment(sink), "LAKEBOUND_METRICS_TOKEN_FILE": str(home / METRICS_TOKEN)}
    airflow = Airflow(settings, environment=environment, dags=home / "dags", plugins=REPOSITORY / "plugins")
    try:
        airflow.start()
        with airflow.client() as client:
            found = Stack(airflow, settings, sink, client)
            wait_until(lambda: len(client.dags()) >= 3 * len(PIPELINES) + 2, PARSE_SECONDS, "the DAGs")
            wait_until(lambda: "checkpoint_health" in client.dags(), PARSE_SECONDS, "the health DAG")
            for pipeline in PIPELINES:
                insist(lambda dag_id=f"ingest__{pipeline}": client.unpause(dag_id))
            yield found
            for record in found.triggerers:
                processes.kill(record)
    finally:
        airflow.kill()
        stop_streams(settings, deadline_seconds=5)
        sink.close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """The system's Chromium, without a window."""
    playwright = pytest.importorskip("playwright.sync_api", reason="the package playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("this machine has no Chromium: on Debian and Ubuntu install the package chromium")
    with playwright.sync_playwright() as running:
        found = running.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()
