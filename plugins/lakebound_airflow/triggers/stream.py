"""Triggers of the stream operator: watch an application, wait for the request to run, wait for an application's end.

What they need to know they read from the pipeline's folder again and again, so a triggerer may die, move or be
restarted at any time. Their arguments name the pipeline and its home; never a connection.
"""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

from lakebound.control.applications import ask_stop
from lakebound.control.crash_loop import read_crash_loop
from lakebound.control.desired import read_desired
from lakebound.control.folder import ControlFolder
from lakebound_airflow.hooks.task_state import state_of_task
from lakebound_airflow.stream_metrics import StreamMetrics
from lakebound_airflow.triggers.asking import ask_state
from lakebound_airflow.triggers.settled import SettledTrigger
from lakebound_airflow.triggers.stream_watch import OUTSIDE_LOOK_SECONDS, Event, StreamWatch, end_of_replaced

POLL_SECONDS = 2.0
DEFERRED = "deferred"


class StreamTrigger(SettledTrigger):
    """Watches one application until it ended or stalled, or turns out to be where nobody can watch it.

    Args:
        pipeline: Its name.
        home: ``LAKEBOUND_HOME``.
        app_id: The application.
        owned: Whether the task has it in its care; one that was started by hand is not stopped with the task.
    """

    def __init__(self, pipeline: str, home: str, app_id: str, owned: bool = True) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.pipeline = pipeline
        self.home = home
        self.app_id = app_id
        self.owned = owned

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return class path and arguments."""
        arguments = {"pipeline": self.pipeline, "home": self.home, "app_id": self.app_id, "owned": self.owned}
        return "lakebound_airflow.triggers.stream.StreamTrigger", arguments

    async def wait(self) -> Event:
        """Return ``ended``, ``stalled`` or ``elsewhere``."""
        control = ControlFolder(Path(self.home), self.pipeline)
        watch, metrics = StreamWatch(control, self.app_id), StreamMetrics(control, self.app_id)
        outside = asyncio.create_task(self._look_outside(watch))
        try:
            while True:
                event = await ask_state(control, watch.look, time.time())
                if event is not None:
                    return event
                await asyncio.to_thread(metrics.tell, time.time())
                await asyncio.sleep(watch.control.watched_every(POLL_SECONDS))
        finally:
            outside.cancel()

    async def _look_outside(self, watch: StreamWatch) -> None:
        await asyncio.to_thread(watch.look_outside)
        await asyncio.sleep(OUTSIDE_LOOK_SECONDS)
        # A triggerer builds its API at the first question, which takes it longer than on_kill() may take.
        await state_of_task(self.task_instance)
        while True:
            await asyncio.to_thread(watch.look_outside)
            await asyncio.sleep(OUTSIDE_LOOK_SECONDS)

    async def on_kill(self) -> None:
        """Ask the application to stop, when a person cleared or marked the task.

        Airflow also calls this when another triggerer took the trigger over, because this one missed its heartbeats.
        Then the task is still deferred, and the stream goes on. When the state cannot be learned it goes on, too: if
        a person acted, the next task finds the application and stops it (``lakebound.control.supervision``).
        """
        state = await state_of_task(self.task_instance)
        if not self.owned or state is None or state == DEFERRED:
            self.log.info("the trigger of %s ended; the task is %s, and the application continues", self.app_id, state)
            return
        self.log.info("the task is %s: asking %s to stop", state, self.app_id)
        control = ControlFolder(Path(self.home), self.pipeline)
        await asyncio.to_thread(ask_stop, control, self.app_id, reason=f"the task was set to {state}", by="airflow")


class WantedTrigger(SettledTrigger):
    """Waits until the pipeline is wanted running, and the pause after failed starts is over; until then nothing starts.

    Args:
        pipeline: Its name.
        home: ``LAKEBOUND_HOME``.
        pause_seconds: Pause after the first start that landed nothing; a person's request ends it.
    """

    def __init__(self, pipeline: str, home: str, pause_seconds: float = 0.0) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.pipeline = pipeline
        self.home = home
        self.pause_seconds = pause_seconds

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return class path and arguments."""
        arguments = {"pipeline": self.pipeline, "home": self.home, "pause_seconds": self.pause_seconds}
        return "lakebound_airflow.triggers.stream.WantedTrigger", arguments

    async def wait(self) -> Event:
        """Return ``wanted``."""
        control = ControlFolder(Path(self.home), self.pipeline)
        while True:
            desired = await ask_state(control, read_desired, control)
            loop = (await ask_state(control, read_crash_loop, control)).since(desired.since)
            if desired.wants_app and time.time() >= loop.not_before(self.pause_seconds):
                return {"event": "wanted", "reason": f"the desired state is running: {desired.reason or 'no reason given'}"}
            await asyncio.sleep(control.watched_every(POLL_SECONDS))


class ReplaceTrigger(SettledTrigger):
    """Waits until an application that was asked to stop has ended, and ends it by force when it does not obey.

    Args:
        pipeline: Its name.
        home: ``LAKEBOUND_HOME``.
        app_id: The application.
        stop_seconds: How long it may take to stop gracefully.
    """

    def __init__(self, pipeline: str, home: str, app_id: str, stop_seconds: float) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.pipeline = pipeline
        self.home = home
        self.app_id = app_id
        self.stop_seconds = stop_seconds

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return class path and arguments."""
        arguments = {"pipeline": self.pipeline, "home": self.home, "app_id": self.app_id, "stop_seconds": self.stop_seconds}
        return "lakebound_airflow.triggers.stream.ReplaceTrigger", arguments

    async def wait(self) -> Event:
        """Return ``replaced``, or ``stuck`` when the application cannot be ended from here."""
        control = ControlFolder(Path(self.home), self.pipeline)
        deadline = time.monotonic() + self.stop_seconds
        while True:
            event = await ask_state(control, end_of_replaced, control, self.app_id, deadline)
            if event is not None:
                return event
            await asyncio.sleep(control.watched_every(POLL_SECONDS / 2))
