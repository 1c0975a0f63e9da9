"""The watcher of a table's commits: gives asset events while the task that lands never ends, and so emits none itself."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from airflow.triggers.base import BaseEventTrigger, TriggerEvent

from lakebound.control.commit_events import Announced, announce
from lakebound.control.folder import ControlFolder
from lakebound.control.progress import read_progress
from lakebound.settings import load_settings
from lakebound_airflow.triggers.asking import ask_state

POLL_SECONDS = 1.0


class TableCommitsTrigger(BaseEventTrigger):
    """Fires for a table every ``every_commits`` commits, or ``every_seconds`` after the first that was not announced.

    What was committed before the watcher started is not announced, unless it is asked for; an asset that nobody schedules on is
    not watched.

    Args:
        pipeline: Its name.
        table: Its id, ``delta:name`` or ``iceberg:name``.
        every_commits: Number of commits after which there is an event.
        every_seconds: Fewer wait no longer than so.
        from_before: Whether the first event also says what was committed before the watcher started. A watcher that ends, as on
            a machine that is too busy for the triggerer, otherwise leaves out what landed meanwhile until more lands.
    """

    def __init__(
        self, pipeline: str, table: str, every_commits: int = 100, every_seconds: float = 60.0, from_before: bool = False
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.pipeline = pipeline
        self.table = table
        self.every_commits = every_commits
        self.every_seconds = every_seconds
        self.from_before = from_before

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return class path and arguments; the home is the triggerer's own, so that the DAG is the same everywhere."""
        arguments = {
            "pipeline": self.pipeline,
            "table": self.table,
            "every_commits": self.every_commits,
            "every_seconds": self.every_seconds,
            **({"from_before": True} if self.from_before else {}),
        }
        return "lakebound_airflow.triggers.commits.TableCommitsTrigger", arguments

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Yield events for ever: ``pipeline``, ``table``, and the fields of ``CommitEvent``."""
        control = ControlFolder(Path(load_settings().home), self.pipeline)
        announced = Announced() if self.from_before else None
        while True:
            progress = await ask_state(control, read_progress, control, patience_seconds=None)
            table = None if progress is None else progress.tables.get(self.table)
            if progress is not None and table is not None:
                if announced is None:
                    announced = Announced(progress.app_id, table.version, table.commits, table.rows)
                announced, event = announce(
                    announced,
                    progress,
                    table,
                    time.time(),
                    every_commits=self.every_commits,
                    every_seconds=self.every_seconds,
                )
                if event is not None:
                    body = {"pipeline": self.pipeline, "table": self.table, **asdict(event)}
                    yield TriggerEvent(body)  # type: ignore[no-untyped-call]
            elif announced is None:
                announced = Announced()
            await asyncio.sleep(control.watched_every(POLL_SECONDS))
