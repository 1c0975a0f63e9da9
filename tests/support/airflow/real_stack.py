"""A running Airflow, and what tests ask of it: users, applications, tasks, triggerers."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
import psutil
import pytest
from tenacity import Retrying, retry_if_exception_type, retry_if_result, stop_after_delay, wait_fixed

from lakebound.control import processes
from lakebound.control.applications import living_submission
from lakebound.control.folder import ControlFolder
from lakebound.control.ports import free_port
from lakebound.control.progress import Progress, read_progress
from lakebound.control.submission import Submission
from lakebound.local.airflow import Airflow
from lakebound.local.airflow_client import AirflowAnswerError, AirflowClient
from lakebound.settings import Settings
from tests.support.airflow.receivers import WebhookEndpoint
from tests.support.live_processes import asked_of_each, family_of
from tests.support.waiting import HANGS_SECONDS, wait_until

START_SECONDS = 120.0
USERS = {"admin": "admin", "ada": "op", "bob": "op", "guest": "viewer"}
"""Who may log in, and in which of the simple auth manager's roles."""


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
        with httpx.Client(base_url=self.airflow.url, timeout=HANGS_SECONDS, trust_env=False) as requests:
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
        commands = asked_of_each(processes.members(record), psutil.Process.cmdline)
        return [member for leader, command in commands.items() if "triggerer" in command for member in family_of(leader.pid)]


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
