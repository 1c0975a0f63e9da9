"""Sends an application's OpenLineage events, in a thread of its own. Nothing here can delay or fail a batch.

There is no queue that could fill: at most one event is under way, and the next is made when it is due. An event that does not
arrive is dropped, and the next one tells what it would have told; only the end of the run is then told late, or not at all.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from openlineage.client import OpenLineageClient
from openlineage.client.event_v2 import RunEvent
from openlineage.client.transport.http import HttpConfig, HttpTransport
from openlineage.client.transport.transport import Transport

from lakebound.errors import SettingError
from lakebound.landing.lineage_events import Landed, LineageRun, LineageTable, State, make_event
from lakebound.landing.lineage_settings import LineageSettings

log = logging.getLogger(__name__)

CONNECT_SECONDS = 5.0
"""A server that is silent for so long has not taken the event."""
END_SECONDS = 3.0
"""The end of an application waits so long at most for its last event."""
RETRY_SECONDS = 30.0
"""After an event that did not arrive."""

Emit = Callable[[RunEvent], object]
Look = Callable[[], Mapping[str, Landed]]


@dataclass(frozen=True)
class LineageEnd:
    """How an application ended, in OpenLineage's words."""

    state: State
    error: str | None = None


class LineageClient:
    """Tells START at once, RUNNING every few minutes, and how the run ended."""

    def __init__(
        self,
        run: LineageRun,
        tables: Sequence[LineageTable],
        look: Look,
        connect: Callable[[], Emit],
        interval_seconds: float,
    ) -> None:
        """Nothing is sent before ``start``.

        Args:
            run: What all events have in common.
            tables: What the application writes.
            look: Returns what it has committed so far, by the table's id; called in the thread.
            connect: Returns what sends an event; called in the thread.
            interval_seconds: Between two events.
        """
        self._run, self._tables, self._look, self._connect = run, tables, look, connect
        self._interval_seconds = interval_seconds
        self._told: Mapping[str, Landed] = {}
        self._has_started = False
        self._failures = 0
        self._end: LineageEnd | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._work, name="lineage", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def end(self, end: LineageEnd) -> None:
        """Say how the run ended; returns at once. Only the first word counts."""
        if not self._ended.is_set():
            self._end = end
            self._ended.set()

    def wait(self, seconds: float = END_SECONDS) -> bool:
        """Wait until the last event is sent; return whether it was, or could not be, within so many seconds."""
        self._thread.join(timeout=seconds)
        return not self._thread.is_alive()

    def _work(self) -> None:
        try:
            emit = self._connect()
        except Exception as exc:
            log.warning("lineage: nothing is sent: %s", exc if isinstance(exc, SettingError) else _kind(exc))
            return
        self._tell(emit, None)
        while not self._ended.wait(self._pause_seconds()):
            self._tell(emit, None)
        self._tell(emit, self._end)

    def _pause_seconds(self) -> float:
        return min(self._interval_seconds, RETRY_SECONDS) if self._failures else self._interval_seconds

    def _tell(self, emit: Emit, end: LineageEnd | None) -> None:
        """Send what is due. The first event that arrives is always START, however late."""
        if not self._has_started:
            self._has_started = self._sent(emit, "START", self._run.started_at)
            if not self._has_started or end is None:
                return
        if end is not None:
            self._sent(emit, end.state, time.time(), end.error)
        else:
            self._sent(emit, "RUNNING", time.time())

    def _sent(self, emit: Emit, state: State, at: float, error: str | None = None) -> bool:
        try:
            landed = self._look()
            emit(make_event(self._run, state, at, self._tables, landed, self._told, error=error))
        except Exception as exc:
            if not self._failures:
                log.warning("lineage: an event was not accepted; the next one contains its information: %s", _kind(exc))
            self._failures += 1
            return False
        if self._failures:
            log.info("lineage: events are accepted again; %d were not accepted", self._failures)
        self._failures, self._told = 0, landed
        return True


def open_client(settings: LineageSettings) -> Emit:
    """Return what sends an event to where the settings say; it raises when the event was not taken.

    OpenLineage's own client finds the file of OPENLINEAGE_CONFIG by itself. Nothing is sent twice: the next event tells more.

    Raises:
        SettingError: The file names no transport.
    """
    # Its messages quote settings, such as the whole value of a variable that is no JSON.
    logging.getLogger("openlineage").setLevel(logging.CRITICAL)
    if settings.config is None:
        client = OpenLineageClient(transport=_http(settings))
    else:
        client = OpenLineageClient()
        if not (client.config.transport or {}).get("type"):
            raise SettingError("OPENLINEAGE_CONFIG", f"the file {settings.config} names no transport with a type")
    _send_once(client.transport)
    return client.emit


def _http(settings: LineageSettings) -> HttpTransport:
    config: dict[str, object] = {"url": settings.url, "timeout": CONNECT_SECONDS}
    if settings.endpoint:
        config["endpoint"] = settings.endpoint
    if settings.api_key:
        config["auth"] = {"type": "api_key", "apiKey": settings.api_key}
    return HttpTransport(HttpConfig.from_dict(config))


def _send_once(transport: Transport) -> None:
    for one in (transport, *getattr(transport, "transports", ())):
        if isinstance(one, HttpTransport):
            one.config.retry = {"total": 0}


def _kind(error: Exception) -> str:
    """Return what may be said of an error: its text can quote an address with a login in it."""
    status = getattr(getattr(error, "response", None), "status_code", None)
    return f"{type(error).__name__} (HTTP {status})" if status else type(error).__name__
