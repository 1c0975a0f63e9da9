"""Sends from a process that asks no Airflow: connections come from the environment, files of secrets, or a secrets backend."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from airflow.sdk import Connection
from airflow.sdk.exceptions import AirflowNotFoundException

from lakebound.alerts.model import Message
from lakebound.alerts.outbox import NoConnectionError, NotFromHereError, Send
from lakebound.alerts.routes import ChannelSpec


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
