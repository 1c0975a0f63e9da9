"""The watcher of complete hours: tells that some are to be announced. An event of a watcher has no partition key."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from airflow.triggers.base import BaseEventTrigger, TriggerEvent

from lakebound.control.complete_hours import after, last_number
from lakebound.control.complete_hours_file import read_complete_hours
from lakebound.control.folder import ControlFolder
from lakebound.settings import load_settings
from lakebound_airflow.triggers.asking import ask_state

POLL_SECONDS = 2.0
AGAIN_SECONDS = 600.0
"""What was told and is not announced by then, because a task failed or the DAG was paused, is told again."""
RECORDED = "recorded/"
"""Start of the keys, in the store of the asset of due hours, under which stands what was announced of a table."""


class HoursDueTrigger(BaseEventTrigger):
    """Fires when the application has found hours complete that Airflow has not announced.

    Args:
        pipeline: Its name.
    """

    def __init__(self, pipeline: str) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.pipeline = pipeline

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return class path and arguments; the home is the triggerer's own, so that the DAG is the same everywhere."""
        return "lakebound_airflow.triggers.hours.HoursDueTrigger", {"pipeline": self.pipeline}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Yield events for ever: ``pipeline``, ``number`` of the newest announcement."""
        control = ControlFolder(Path(load_settings().home), self.pipeline)
        told: tuple[int, dict[str, int]] | None = None
        told_at, looked_at_number, looked_at = 0.0, 0, 0.0
        while True:
            hours = await ask_state(control, read_complete_hours, control, patience_seconds=None)
            number, now = 0 if hours is None else last_number(hours), time.monotonic()
            if hours is not None and (number > looked_at_number or now - looked_at > POLL_SECONDS * 15):
                looked_at_number, looked_at = number, now
                recorded = {table: await self._recorded(table) for table in hours.tables}
                is_due = any(after(hours, table, at) for table, at in recorded.items())
                if is_due and ((number, recorded) != told or now - told_at > AGAIN_SECONDS):
                    told, told_at = (number, recorded), now
                    yield TriggerEvent({"pipeline": self.pipeline, "number": number})  # type: ignore[no-untyped-call]
            await asyncio.sleep(control.watched_every(POLL_SECONDS))

    async def _recorded(self, table: str) -> int:
        """Return the number up to which a table's hours were announced, as far as Airflow tells."""
        if self.asset_state_store is None:
            return 0
        recorded: Any = await self.asset_state_store.aget(f"{RECORDED}{table}", 0)
        return int(recorded or 0)
