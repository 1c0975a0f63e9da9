"""A real Airflow on this machine: its ``standalone`` with SQLite, detached."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import sys
import time
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

import psutil

from lakebound.control import processes
from lakebound.control.ports import LOOPBACK, free_port, is_free, is_open
from lakebound.control.private_files import make_private_folder
from lakebound.control.process_identity import is_running
from lakebound.errors import DeadlineExceededError, ServiceError
from lakebound.local.airflow_client import AirflowAnswerError, AirflowClient
from lakebound.local.airflow_config import (
    ADMIN,
    AirflowPorts,
    airflow_cfg,
    new_secrets,
    passwords_file,
    read_secrets,
)
from lakebound.local.ports_file import read_ports, write_ports
from lakebound.settings import Settings
from lakebound.spec.maintenance import MAINTENANCE_POOL

START_DEADLINE_SECONDS = 600.0
"""A process that ends is noticed at once: this only ends the wait for one that hangs. 180 s were not enough on a slow machine
whose two cores were busy."""
STOP_DEADLINE_SECONDS = 40.0
COMPONENTS = ("metadatabase", "scheduler", "triggerer", "dag_processor")


class Airflow:
    """One Airflow with its own home. A second object on the same home sees, and can stop, the same Airflow."""

    def __init__(
        self,
        settings: Settings,
        port: int | None = None,
        environment: Mapping[str, str] | None = None,
        dags: Path | None = None,
        plugins: Path | None = None,
    ) -> None:
        """Describe it; nothing is started yet.

        Args:
            settings: Its home is ``settings.home / "airflow"``; the tasks see the same settings.
            port: Of the API server (default: the same as last time, else a free one).
            environment: Further variables for all components, such as ``AIRFLOW_CONN_*``.
            dags: The folder to parse (default: ``dags/`` beside the Spark applications).
            plugins: The folder of plugins (default: ``plugins/`` beside the Spark applications).
        """
        repository = settings.apps.parent
        self.settings = settings
        self.home = settings.home / "airflow"
        self.dags = (dags or repository / "dags").absolute()
        self.plugins = (plugins or repository / "plugins").absolute()
        self._wanted_port = port
        self._further = dict(environment or {})

    @property
    def log(self) -> Path:
        """The output of all components together."""
        return self.home / "logs" / "standalone.log"

    @property
    def record(self) -> processes.ProcessRecord | None:
        """The process that was started last, or None."""
        return processes.ProcessRecord.load(self.home / "process.json")

    @property
    def is_led(self) -> bool:
        """Whether its main process lives. Without it the other components go on, but their output goes nowhere."""
        record = self.record
        return record is not None and processes.is_alive(record)

    @property
    def is_running(self) -> bool:
        """Whether anything of it lives."""
        record = self.record
        return record is not None and (processes.is_alive(record) or bool(processes.members(record)))

    @property
    def ports(self) -> AirflowPorts:
        """The ports of the last start.

        Raises:
            ServiceError: It was never started.
        """
        try:
            return AirflowPorts(**(read_ports(self._ports_file) or {}))
        except TypeError as error:
            raise ServiceError("Airflow", f"was never started in {self.home}; start it first") from error

    @property
    def url(self) -> str:
        """Address of the UI and of the REST API."""
        return f"http://{LOOPBACK}:{self.ports.api}"

    @property
    def user(self) -> str:
        """The name to log in with."""
        return ADMIN

    @property
    def password(self) -> str:
        """The password of `user`, generated at the first start."""
        return str(json.loads(self.password_file.read_text())[ADMIN])

    @property
    def password_file(self) -> Path:
        """The file (mode 0600) that holds the password, as JSON: user → password."""
        return passwords_file(self.home)

    def client(self) -> AirflowClient:
        """Return a REST client that is logged in as `user` when it is first used."""
        return AirflowClient(self.url, self.user, self.password)

    def environment(self) -> dict[str, str]:
        """Return the whole environment of the components; also right for an ``airflow`` command by hand.

        Airflow's own variables of the calling process are left out: the configuration file alone decides. It has one user, so
        who asks for a repair may approve it, unless the calling process says otherwise.
        """
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW__")}
        commands = Path(sys.executable).parent
        return {
            "LAKEBOUND_SELF_APPROVAL": "allow",
            **inherited,
            **self.settings.environment(),
            "AIRFLOW_HOME": str(self.home),
            "PATH": f"{commands}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
            "NO_COLOR": "1",
            "PYTHONUNBUFFERED": "1",
            **self._further,
        }

    def start(self, deadline_seconds: float = START_DEADLINE_SECONDS) -> None:
        """Start it if it does not run, and return when all components are healthy.

        Raises:
            ServiceError: A port is taken, or it ended while starting.
            DeadlineExceededError: Not healthy in time.
        """
        self.launch()
        self.wait_ready(deadline_seconds)

    def launch(self) -> None:
        """Start it if it does not run, without waiting.

        Raises:
            ServiceError: A port is taken, or the command is not there.
        """
        if self.is_led:
            return
        self.stop()  # what a killed Airflow may have left
        ports = self._choose_ports()
        self._write_configuration(ports)
        write_ports(self._ports_file, ports)
        # A module, not the script: its first line may be too long a path for the kernel. Imports of Lakebound go the other way.
        command = [sys.executable, "-m", "lakebound_airflow.standalone"]
        started = processes.start("Airflow", command, self.log, self.environment(), folder=self.home)
        started.save(self.home / "process.json")

    def wait_ready(self, deadline_seconds: float = START_DEADLINE_SECONDS) -> None:
        """Return when the API server answers, and scheduler, triggerer and DAG processor have given a sign of life.

        Raises:
            ServiceError: Its process has ended.
            DeadlineExceededError: Not healthy in time.
        """
        what = f"a healthy Airflow on {self.url} (its log is {self.log})"
        deadline = time.monotonic() + deadline_seconds
        processes.wait_until(self._accepts, deadline_seconds, what)
        with self.client() as client:
            # The first request to the API of the tasks takes the server many seconds, longer than a task waits. The scheduler
            # waits for it, too (lakebound_airflow.standalone): nothing is healthy before.
            with contextlib.suppress(AirflowAnswerError):
                client.warm_execution_api(timeout_seconds=(deadline - time.monotonic()) / 2)
            left = deadline - time.monotonic()
            processes.wait_until(lambda: self._is_healthy(client), left, what, poll_seconds=0.25)
            client.ensure_pool(MAINTENANCE_POOL, 1, "Maintenance of tables: one application at a time")

    def stop(self, deadline_seconds: float = STOP_DEADLINE_SECONDS) -> None:
        """Stop it gracefully, by force after the deadline, and leave no process; its database stays.

        Also when its main process is dead, and the components go on without it. Tasks that run are ended, with all that
        they started; a detached Spark application is nobody's child, and goes on.
        """
        record = self.record
        if record is None:
            return
        # Its main process knows no SIGTERM, and SIGINT may be ignored since before it started. So its
        # components are asked, each of which ends its own children, and it only when they are gone.
        components = _components(record)
        for component in components:
            with contextlib.suppress(psutil.NoSuchProcess):
                component.send_signal(signal.SIGTERM)
        with contextlib.suppress(DeadlineExceededError):
            processes.wait_until(
                lambda: not any(is_running(component) for component in components),
                deadline_seconds,
                "the end of Airflow's components",
            )
        processes.stop(record, deadline_seconds=5.0)

    def kill(self) -> None:
        """End all of it at once (SIGKILL), as a crash of the machine's Airflow would."""
        if record := self.record:
            processes.kill(record)

    @property
    def _ports_file(self) -> Path:
        return self.home / "ports.json"

    def _choose_ports(self) -> AirflowPorts:
        known = self.ports if read_ports(self._ports_file) else None
        api = self._wanted_port or (known.api if known else None) or free_port()
        if not is_free(api):
            raise ServiceError("Airflow", f"port {api} is used by another program; choose another port")
        return AirflowPorts(
            api=api,
            worker_logs=free_port(known.worker_logs if known else None),
            trigger_logs=free_port(known.trigger_logs if known else None),
        )

    def _write_configuration(self, ports: AirflowPorts) -> None:
        make_private_folder(self.home)
        cfg = self.home / "airflow.cfg"
        keys = (read_secrets(cfg.read_text()) if cfg.exists() else None) or new_secrets()
        _write_private(cfg, airflow_cfg(self.home, self.dags, self.plugins, ports, keys))
        if not self.password_file.exists():
            _write_private(self.password_file, json.dumps({ADMIN: secrets.token_urlsafe(12)}) + "\n")

    def _accepts(self) -> bool:
        record = self.record
        if record is None or not processes.is_alive(record):
            tail = processes.last_lines(self.log)
            raise ServiceError("Airflow", f"ended before it was ready. Its last lines:\n{tail}", self.log)
        return is_open(self.ports.api)

    def _is_healthy(self, client: AirflowClient) -> bool:
        record = self.record
        if record is None or not self._accepts():
            return False
        try:
            health = client.health()
        except AirflowAnswerError:
            return False
        return all(_is_alive_since(record.create_time, health.get(component)) for component in COMPONENTS)


def _is_alive_since(started: float, component: Mapping[str, str | None] | None) -> bool:
    """Return whether a component is healthy by a sign of life given after ``started``, not by one before a restart."""
    if component is None or component.get("status") != "healthy":
        return False
    beats = [value for key, value in component.items() if key.startswith("latest_") and value]
    return all(datetime.fromisoformat(beat).timestamp() > started for beat in beats)


def _components(record: processes.ProcessRecord) -> list[psutil.Process]:
    """Return those of its processes whose parent is its main process, or is none of them any more."""
    others = {member.pid: member for member in processes.members(record) if member.pid != record.pid}
    return [member for member in others.values() if _parent(member) not in others]


def _parent(process: psutil.Process) -> int | None:
    try:
        return process.ppid()
    except psutil.NoSuchProcess:
        return None


def _write_private(file: Path, text: str) -> None:
    partial = file.with_name(f".{file.name}.{os.getpid()}.{time.monotonic_ns()}")
    partial.touch(mode=0o600)
    partial.write_text(text)
    partial.replace(file)
