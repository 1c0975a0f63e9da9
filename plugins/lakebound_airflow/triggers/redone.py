"""The watcher of redos: an event of a table's asset names the ranges whose rows were made again, or brought back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from airflow.triggers.base import BaseEventTrigger, TriggerEvent

from lakebound.control.commit_events import redone_event
from lakebound.control.folder import ControlFolder
from lakebound.control.progress import readable_progress
from lakebound.control.redone import read_redone
from lakebound.settings import load_settings
from lakebound_airflow.triggers.asking import ask_state

POLL_SECONDS = 2.0
TOLD = "redone"
"""Key, in the store of the table's asset, of the number of the last redo that was told."""


class TableRedoneTrigger(BaseEventTrigger):
    """Fires for a table after each redo and each undoing of one, whether a command or a DAG has applied it.

    What was redone before the asset was watched for the first time is not told; what is redone while Airflow is down, or while
    nobody schedules on the asset, is told later.

    Args:
        pipeline: Its name.
        table: Its id, ``delta:name`` or ``iceberg:name``.
    """

    def __init__(self, pipeline: str, table: str) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.pipeline = pipeline
        self.table = table

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return class path and arguments; the home is the triggerer's own, so that the DAG is the same everywhere."""
        return "lakebound_airflow.triggers.redone.TableRedoneTrigger", {"pipeline": self.pipeline, "table": self.table}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Yield events for ever: ``pipeline``, ``table``, the fields of ``CommitEvent``, and ``redone``."""
        control = ControlFolder(Path(load_settings().home), self.pipeline)
        told = await self._told()
        while True:
            newest = await ask_state(control, read_redone, control, patience_seconds=None)
            if told is None:
                told = newest[0].number if newest else 0
                await self._note(told)
            for one in (one for one in reversed(newest) if one.number > told):
                if self.table in one.tables:
                    progress = await ask_state(control, readable_progress, control, patience_seconds=None)
                    body = asdict(redone_event(one, self.table, progress))
                    yield TriggerEvent({"pipeline": self.pipeline, "table": self.table, **body})  # type: ignore[no-untyped-call]
                told = one.number
                await self._note(told)
            await asyncio.sleep(control.watched_every(POLL_SECONDS))

    async def _told(self) -> int | None:
        """Return up to which number was told, as far as Airflow knows; None: this asset was never watched."""
        if self.asset_state_store is None:
            return None
        told: Any = await self.asset_state_store.aget(TOLD, None)
        return None if told is None else int(told)

    async def _note(self, number: int) -> None:
        if self.asset_state_store is not None:
            await self.asset_state_store.aset(TOLD, number)
