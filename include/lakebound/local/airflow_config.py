"""The configuration of the embedded Airflow, as the text of its ``airflow.cfg``."""

from __future__ import annotations

import base64
import configparser
import io
import secrets
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lakebound.control.ports import LOOPBACK

ADMIN = "admin"

API_SERVER = "api-server"
"""Airflow's command for the component that answers requests."""


def busy_timeout_seconds(command_line: Sequence[str]) -> float:
    """Return how long a process of Airflow waits for the others' writes to the SQLite file.

    A minute, instead of the default of five seconds: on a busy machine a scheduler that has waited so long ends, and starts
    nothing any more. The API server waits a shorter time, because it can wait for itself: it writes its log of actions on the
    thread that has to go on before another request's transaction can end (``airflow/api_fastapi/logging/decorators.py``), and
    until the timeout it answers nobody. Whoever asked then gets a database error, and asks again.

    Args:
        command_line: Of the process.
    """
    return 1.0 if API_SERVER in command_line else 60.0


CONNECT_ARGS = {"timeout": busy_timeout_seconds(sys.argv)}
"""How this process opens Airflow's SQLite file."""

ASYNC_CONNECT_ARGS = dict(CONNECT_ARGS)


@dataclass(frozen=True)
class AirflowPorts:
    """The loopback ports of one Airflow: the API server and UI, and the two log servers that the UI reads from."""

    api: int
    worker_logs: int
    trigger_logs: int


@dataclass(frozen=True)
class AirflowSecrets:
    """The keys with which Airflow signs and encrypts; they must outlive a restart."""

    fernet_key: str = field(repr=False)
    jwt_secret: str = field(repr=False)
    api_secret: str = field(repr=False)


def new_secrets() -> AirflowSecrets:
    """Return random keys."""
    return AirflowSecrets(
        fernet_key=base64.urlsafe_b64encode(secrets.token_bytes(32)).decode(),
        jwt_secret=secrets.token_urlsafe(48),
        api_secret=secrets.token_urlsafe(48),
    )


def read_secrets(text: str) -> AirflowSecrets | None:
    """Return the keys that an earlier ``airflow.cfg`` holds, or None if one is not there."""
    parser = configparser.ConfigParser(interpolation=None)
    try:
        parser.read_string(text)
        return AirflowSecrets(
            fernet_key=parser["core"]["fernet_key"],
            jwt_secret=parser["api_auth"]["jwt_secret"],
            api_secret=parser["api"]["secret_key"],
        )
    except (configparser.Error, KeyError):
        return None


def airflow_cfg(home: Path, dags: Path, plugins: Path, ports: AirflowPorts, keys: AirflowSecrets) -> str:
    """Return ``airflow.cfg`` for one machine: everything on the loopback interface, one process of each kind.

    Args:
        home: AIRFLOW_HOME.
        dags: The folder that Airflow parses.
        plugins: The folder of plugin files.
        ports: Where its servers listen.
        keys: Written in clear, so keep the file from other users.
    """
    url = f"http://{LOOPBACK}:{ports.api}"
    sections: dict[str, dict[str, object]] = {
        "core": {
            "executor": "LocalExecutor",
            "dags_folder": dags,
            "plugins_folder": plugins,
            "load_examples": False,
            # Streams are deferred and hold no slot; a worker process takes 100 to 200 MB.
            "parallelism": 8,
            "fernet_key": keys.fernet_key,
            "simple_auth_manager_users": f"{ADMIN}:admin",
            "simple_auth_manager_passwords_file": passwords_file(home),
            "execution_api_server_url": f"{url}/execution/",
        },
        "database": {
            "sql_alchemy_conn": f"sqlite:///{home}/airflow.db",
            "sql_alchemy_connect_args": f"{__name__}.CONNECT_ARGS",
            "sql_alchemy_connect_args_async": f"{__name__}.ASYNC_CONNECT_ARGS",
        },
        "api": {
            "host": LOOPBACK,
            "port": ports.api,
            "base_url": url,
            "workers": 1,
            "secret_key": keys.api_secret,
        },
        "api_auth": {"jwt_secret": keys.jwt_secret},
        "logging": {
            "base_log_folder": home / "logs",
            "worker_log_server_port": ports.worker_logs,
            "trigger_log_server_port": ports.trigger_logs,
        },
        # A new or changed pipeline file shows as a DAG after this many seconds.
        "dag_processor": {"min_file_process_interval": 5, "refresh_interval": 10, "parsing_processes": 1},
        "scheduler": {
            "catchup_by_default": False,
            "scheduler_idle_sleep_time": 0.5,
            "orphaned_tasks_check_interval": 60,
        },
        # As often a task's supervisor looks whether the process is gone; with the default of 5 s many a task that has
        # ended takes that much longer.
        "workers": {"min_heartbeat_interval": 1},
        # Without it, a task that succeeded and is cleared succeeds again without running.
        "state_store": {"clear_on_success": True},
        "metrics": {"legacy_names_on": False},
    }
    parser = configparser.ConfigParser(interpolation=None)
    parser.read_dict({name: {key: str(value) for key, value in keys_.items()} for name, keys_ in sections.items()})
    # Airflow interpolates when it reads.
    for section in parser.sections():
        for key, value in parser.items(section):
            parser[section][key] = value.replace("%", "%%")
    text = io.StringIO()
    parser.write(text)
    return text.getvalue()


def passwords_file(home: Path) -> Path:
    """Return the file in which Airflow's simple auth manager finds the password of each user, as JSON."""
    return home / "passwords.json"
