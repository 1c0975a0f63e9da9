"""The trigger of the control operator: waits until a request is fulfilled."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any, cast

from lakebound.control.desired import DesiredState
from lakebound.control.folder import ControlFolder
from lakebound.control.request_file import look
from lakebound.control.requests import Awaited, request_state
from lakebound_airflow.triggers.asking import ask_state
from lakebound_airflow.triggers.settled import SettledTrigger
from lakebound_airflow.triggers.stream_watch import Event

POLL_SECONDS = 1.0


class RequestTrigger(SettledTrigger):
    """Waits until the request is fulfilled, cannot be, or the wait is over.

    Args:
        pipeline: Its name.
        home: ``LAKEBOUND_HOME``.
        awaited: What must become so.
        state: The desired state that was written.
        generation: Its generation.
        wait_seconds: How long to wait; a triggerer that takes over starts to count again.
    """

    def __init__(self, pipeline: str, home: str, awaited: str, state: str, generation: int, wait_seconds: float) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.pipeline = pipeline
        self.home = home
        self.awaited = awaited
        self.state = state
        self.generation = generation
        self.wait_seconds = wait_seconds

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return class path and arguments."""
        arguments = {
            "pipeline": self.pipeline,
            "home": self.home,
            "awaited": self.awaited,
            "state": self.state,
            "generation": self.generation,
            "wait_seconds": self.wait_seconds,
        }
        return "lakebound_airflow.triggers.control.RequestTrigger", arguments

    async def wait(self) -> Event:
        """Return ``met``, ``failed`` or ``late``."""
        control = ControlFolder(Path(self.home), self.pipeline)
        deadline = time.monotonic() + self.wait_seconds
        while True:
            standing = await ask_state(control, look, control)
            found = request_state(cast(Awaited, self.awaited), cast(DesiredState, self.state), self.generation, standing)
            if found.state != "waiting":
                return {"event": found.state, "reason": found.reason}
            if time.monotonic() >= deadline:
                return {
                    "event": "late",
                    "reason": f"the desired state was not reached within {self.wait_seconds:g} s: {found.reason}",
                }
            await asyncio.sleep(control.watched_every(POLL_SECONDS))


WishTrigger = RequestTrigger
"""Its name in tasks that an earlier version deferred: Airflow's database holds it."""
