"""Which channels ``lakebound watch`` cannot send by, because their connection is in Airflow's database only."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Collection

from lakebound.alerts.airflow_process import airflow_environment
from lakebound.alerts.connection_places import is_at_hand, is_plain_address, variable_of
from lakebound.alerts.routes import AlertsSpec
from lakebound.settings import Settings, load_yaml_access

_MODULE = "lakebound_airflow.notifications.connection_search"
_TIMEOUT_SECONDS = 120.0


def channels_that_need_airflow(alerts: AlertsSpec, settings: Settings) -> list[str]:
    """Return a sentence for each channel whose connection only Airflow's database has; its packages are asked if need be.

    Args:
        alerts: Channels and heartbeat.
        settings: This machine's.
    """
    access = load_yaml_access()
    asked = [(user, one) for user, one in _users(alerts) if not is_at_hand(one, os.environ, access)]
    in_database = _in_database({one for _, one in asked}, settings)
    return [
        f"alerts.yaml: {user}: the connection {one} is in Airflow's database only, so `lakebound watch` cannot use it; "
        f"put it into the variable {variable_of(one)}, a file of this name in {access.secrets_folder}/channels, "
        f"or a secrets backend"
        for user, one in asked
        if one in in_database
    ]


def channels_with_plain_addresses(alerts: AlertsSpec) -> list[str]:
    """Return a sentence for each channel whose variable holds an address in a form of which Airflow makes another one.

    Args:
        alerts: Channels and heartbeat.
    """
    return [
        f"alerts.yaml: {user}: Airflow cannot use the address in the variable {variable_of(one)}; "
        f"write it as JSON (docs/how-to/alerts.md#connections)"
        for user, one in _users(alerts)
        if is_plain_address(os.environ.get(variable_of(one), ""))
    ]


def _users(alerts: AlertsSpec) -> list[tuple[str, str]]:
    """Return what has a connection, and which one."""
    users = [(f"channel {name}", channel.connection) for name, channel in alerts.channels.items()]
    if alerts.heartbeat is not None:
        users.append(("heartbeat", alerts.heartbeat.connection))
    return [(user, one) for user, one in users if one is not None]


def _in_database(connections: Collection[str], settings: Settings) -> set[str]:
    """Return those that only Airflow's database has; none where no Airflow is set up, or it does not answer."""
    if not connections or not _is_set_up(settings):
        return set()
    environment = airflow_environment(settings)
    command = [sys.executable, "-m", _MODULE, *sorted(connections)]
    with contextlib.suppress(subprocess.SubprocessError, ValueError):
        answer = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=_TIMEOUT_SECONDS, check=True)
        # Airflow may log to the standard output, too.
        return set(json.loads(next(reversed(answer.stdout.splitlines()), "[]")))
    return set()


def _is_set_up(settings: Settings) -> bool:
    """Whether there is an Airflow to be asked: else its packages would make one."""
    named = {"AIRFLOW_HOME", "AIRFLOW_CONFIG", "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"} & os.environ.keys()
    return bool(named) or (settings.home / "airflow" / "airflow.cfg").is_file()
