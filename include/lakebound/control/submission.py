"""The record of the application that was submitted last: what it is, where it runs, who watches it, whether it lives."""

from __future__ import annotations

import hashlib
import re
import socket
import time
from enum import StrEnum
from pathlib import Path
from typing import Any

from pydantic import Field

from lakebound.control.folder import ControlFolder, read_json, write_json
from lakebound.control.process_identity import PidSpace, ProcessIdentity, lives
from lakebound.frozen import FrozenRecord


class BackendName(StrEnum):
    """What can run an application."""

    LOCAL = "local"
    STANDALONE = "standalone"
    KUBERNETES = "kubernetes"


class Custody(StrEnum):
    """Whose the application is at this moment; by it, the next task knows why it finds one alive.

    - ``TAKEN``: a worker has it in hand, between submission and deferral. Found later: the worker died.
    - ``WATCHED``: the task is deferred. Found later, when that task is over: a person cleared or marked the task.
    - ``HANDED_OVER``: the task ended by itself and left the application running.
    - ``CONDEMNED``: the task ended because the application stalled; it must be replaced.
    """

    TAKEN = "taken"
    WATCHED = "watched"
    HANDED_OVER = "handed_over"
    CONDEMNED = "condemned"


class Owner(FrozenRecord):
    """The try of an Airflow task that has an application in its care."""

    dag_id: str
    run_id: str
    task_id: str
    try_number: int = 1

    @property
    def key(self) -> str:
        """The try as one text, for application ids."""
        return f"{self.dag_id}/{self.run_id}/{self.task_id}/{self.try_number}"

    def is_same_run(self, other: Owner) -> bool:
        """Whether both are tries of the same task of the same run."""
        return (self.dag_id, self.run_id, self.task_id) == (other.dag_id, other.run_id, other.task_id)


class Submission(FrozenRecord):
    """One submitted application. Holds no secret. Times are epoch seconds.

    Attributes:
        pid: Local backend: the leader of the application's session; None while it is being started.
        remote_id: Standalone backend: the driver's id at the master. Kubernetes: namespace and name of its pod.
        address: Standalone backend: the master's REST address.
        key_connection: Standalone backend: the Airflow connection whose password signs requests to it; None: a file does.
        boot_id: Of the machine on which ``pid`` counts; None in a record of an older release.
        pid_namespace: In which ``pid`` counts; None in a record of an older release.
        owner: None for an application that nobody in Airflow started.
    """

    app_id: str
    backend: BackendName = BackendName.LOCAL
    host: str = Field(default_factory=socket.gethostname)
    pid: int | None = None
    pid_started_at: float | None = None
    remote_id: str | None = None
    address: str | None = None
    key_connection: str | None = None
    submitted_at: float = Field(default_factory=time.time)
    log: Path | None = None
    generation: int = 0
    source_hash: str = ""
    spark_ui: str | None = None
    owner: Owner | None = None
    custody: Custody = Custody.TAKEN
    boot_id: str | None = None
    pid_namespace: str | None = None

    @property
    def process(self) -> ProcessIdentity | None:
        """The leader of the application's session, or None where the record names none."""
        if self.pid is None or self.pid_started_at is None:
            return None
        return ProcessIdentity(self.pid, self.pid_started_at, PidSpace(self.host, self.boot_id, self.pid_namespace))

    def led_by(self, leader: ProcessIdentity) -> Submission:
        """Return the record with the leader of the application's session."""
        changes = {
            "host": leader.space.host or self.host,
            "pid": leader.pid,
            "pid_started_at": leader.started_at,
            "boot_id": leader.space.boot_id,
            "pid_namespace": leader.space.namespace,
        }
        return self.model_copy(update=changes)


def app_id_for(pipeline: str, generation: int, run_key: str) -> str:
    """Return the application's id: the same for the same generation and try, so a repeated submission is recognised.

    Args:
        pipeline: Name of the pipeline; the id begins with it.
        generation: Generation of the desired state that is obeyed; 0 for an application that follows none.
        run_key: Text that names the try, such as ``Owner.key``; another try gets another id.
    """
    digest = hashlib.sha256(f"{pipeline}\n{generation}\n{run_key}".encode()).hexdigest()[:10]
    return f"{re.sub(r'[^a-z0-9-]', '-', pipeline.lower())}-g{generation}-{digest}"


def read_submission(control: ControlFolder) -> Submission | None:
    """Return the latest submission, or None where there never was one."""
    body: Any = read_json(control.submission)
    return None if body is None else Submission.model_validate(body)


def write_submission(control: ControlFolder, submission: Submission) -> None:
    """Replace the record."""
    write_json(control.submission, submission.model_dump(mode="json"), durable=True)


def process_is_alive(submission: Submission) -> bool | None:
    """Return whether the submitted process lives, or None where that cannot be known from this machine."""
    return None if submission.process is None else lives(submission.process)
