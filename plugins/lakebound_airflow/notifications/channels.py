"""Sends messages and heartbeats through Airflow's own notifiers. What goes wrong is told without addresses and secrets.

Addresses of webhooks often are the secret, and the hooks below log them when a connection fails. So their loggers are silent
while a message is sent, and of an error only its class, or the answer's status, is passed on.
"""

from __future__ import annotations

import contextlib
import logging
import pkgutil
import re
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from airflow.sdk.configuration import conf
from airflow.sdk.exceptions import AirflowNotFoundException

from lakebound.alerts.model import Message
from lakebound.alerts.outbox import NoConnectionError, NotDeliveredError, Send
from lakebound.alerts.routes import ChannelSpec, HeartbeatSpec
from lakebound.alerts.wording import Links
from lakebound.settings import load_airflow_access

if TYPE_CHECKING:
    from airflow.sdk.bases.notifier import BaseNotifier

PING_SECONDS = 10.0

_STATUS = re.compile(r"^(\d{3}):")
# What the hook for SMTP makes of a connection that is not there.
_NOT_FOUND = "SMTP connection is not found"
_DOCS = "docs/how-to/alerts.md#connections"
_TALKATIVE = ("urllib3", "requests")


class _Silent:
    """A logger that says nothing."""

    def __getattr__(self, _: str) -> Any:
        return lambda *_, **__: None


def sender(runbooks: str | None) -> Send:
    """Return what sends by any channel; ``runbooks`` is the address of the runbooks, if they have one."""
    return partial(send, links=Links(airflow=_airflow(), runbooks=runbooks))


def _airflow() -> str | None:
    """Return the address at which people open Airflow: its own setting, else the one at which the watch asks for its health."""
    return conf.get("api", "base_url", fallback=None) or load_airflow_access().url or None


def send(channel: ChannelSpec, message: Message, links: Links) -> None:
    """Send a message by a channel.

    Args:
        channel: The channel.
        message: The message.
        links: Addresses of pages that the message may name.

    Raises:
        NoConnectionError: The Airflow connection is not there.
        NotDeliveredError: The channel did not take it.
    """
    kind = channel.kind
    call = kind.call(message, links)
    # The notifier is imported when it is needed: a channel asks for no provider but its own.
    notifier = pkgutil.resolve_name(call.notifier)(**call.arguments)
    _notify(notifier, kind.place, has_address=call.has_address, loggers=call.loggers)


def ping(heartbeat: HeartbeatSpec) -> None:
    """Ask for the address of a heartbeat, which is the whole sign of life.

    Raises:
        NoConnectionError: The Airflow connection is not there.
        NotDeliveredError: The address did not answer, or with an error.
    """
    from airflow.providers.http.notifications.http import HttpNotifier

    notifier = HttpNotifier(http_conn_id=heartbeat.connection, method="GET", extra_options={"timeout": PING_SECONDS})
    _notify(notifier, f"connection {heartbeat.connection}", has_address=True)


def _notify(notifier: BaseNotifier, where: str, *, has_address: bool = False, loggers: Sequence[str] = ()) -> None:
    """Send, without writing to any log, and without the address in what is raised."""
    problem: NotDeliveredError
    try:
        with _silenced(notifier, (*_TALKATIVE, *loggers)):
            if has_address:
                _refuse_misread_address(notifier)
            # notify() and not the notifier itself, which would take a text with braces for a template.
            notifier.notify({})
        return
    except AirflowNotFoundException:
        problem = NoConnectionError(f"{where}: there is no such Airflow connection")
    except NoConnectionError as exc:
        problem = exc
    except NotDeliveredError as exc:
        problem = NotDeliveredError(f"{where}: {exc}")
    except Exception as exc:
        problem = _problem(where, exc)
    raise problem


def _refuse_misread_address(notifier: Any) -> None:
    """Refuse an address that Airflow would take apart: it would ask for another one, or without encryption.

    Raises:
        NotDeliveredError: It is one.
    """
    found = notifier.hook.get_connection(notifier.http_conn_id)
    is_whole = "://" in (found.host or "")
    if (found.schema or "") not in ("", "http", "https") or (found.conn_type == "https" and not found.schema and not is_whole):
        raise NotDeliveredError(f"its address cannot be used; write it as JSON ({_DOCS})")


def _problem(where: str, exc: Exception) -> NotDeliveredError:
    """Return what may be said of an error: its text may hold the address."""
    if _NOT_FOUND in str(exc):
        return NoConnectionError(f"{where}: there is no such Airflow connection")
    status = _STATUS.match(str(exc))
    return NotDeliveredError(f"{where}: the answer was {status[1]}" if status else f"{where}: {type(exc).__name__}")


@contextlib.contextmanager
def _silenced(notifier: BaseNotifier, loggers: Sequence[str]) -> Iterator[None]:
    silent: Any = _Silent()
    notifier._log = silent
    hook: Any = getattr(notifier, "hook", None)
    if hook is not None:
        hook._log = silent
    before = {name: logging.getLogger(name).level for name in loggers}
    for name in loggers:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for name, level in before.items():
            logging.getLogger(name).setLevel(level)
