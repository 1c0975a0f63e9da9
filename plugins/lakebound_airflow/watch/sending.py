"""Sends from a process that asks no Airflow: connections come from the environment, files of secrets, or a secrets backend."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable

from airflow.sdk import Connection
from airflow.sdk.exceptions import AirflowNotFoundException

from lakebound.alerts.connection_places import as_airflow_reads_it, file_of, variable_of
from lakebound.alerts.model import Message
from lakebound.alerts.outbox import NoConnectionError, NotFromHereError, Send
from lakebound.alerts.routes import ChannelSpec
from lakebound.settings import load_yaml_access


class ConnectionFiles:
    """Gives Airflow's hooks the connections that are in files: they look for them in the environment of this process."""

    def __init__(self) -> None:
        self._given: set[str] = set()

    def read(self, connections: Iterable[str]) -> list[str]:
        """Read the files again, as a secret may have changed; return what cannot be read.

        Args:
            connections: Ids. A variable that the process was started with is not replaced by a file.
        """
        access, problems = load_yaml_access(), []
        for connection in connections:
            name = variable_of(connection)
            if name in os.environ and name not in self._given:
                os.environ[name] = as_airflow_reads_it(os.environ[name])
                continue
            os.environ.pop(name, None)
            file = file_of(connection, access)
            try:
                if file is not None:
                    os.environ[name] = as_airflow_reads_it(file.read_text(encoding="utf-8").strip())
                    self._given.add(name)
            except (OSError, ValueError) as exc:
                # The class alone: the text of a decoding error holds the secret.
                problems.append(f"{file} cannot be read: {type(exc).__name__}")
        return problems


def missing_connections(connections: Iterable[str]) -> list[str]:
    """Return those that this process does not see.

    Args:
        connections: Ids.
    """
    missing: list[str] = []
    for connection in connections:
        try:
            Connection.get(connection)
        except AirflowNotFoundException:
            missing.append(connection)
    return missing


def sending_from_here(send: Send, is_stopping: Callable[[], bool]) -> Send:
    """Return what sends, and leaves what this process cannot send to another one.

    Args:
        send: Sends by Airflow's notifiers.
        is_stopping: Whether this process was asked to end: then it sends nothing more.
    """

    def send_or_leave(channel: ChannelSpec, message: Message) -> None:
        if is_stopping():
            raise NotFromHereError("the watch was stopped before it sent this message")
        try:
            send(channel, message)
        except NoConnectionError as exc:
            raise NotFromHereError(f"{exc} (lakebound watch does not ask Airflow's database)") from None

    return send_or_leave
