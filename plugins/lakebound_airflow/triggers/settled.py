"""The base of the triggers that tasks defer to: their event waits until Airflow has taken in that the task deferred.

The worker process that defers ends with "success". A scheduler that hears of it only when the trigger has fired takes it
for the end of the task that goes on, and fails that one: without a log, and without its callbacks
(https://github.com/apache/airflow/issues/67287, https://github.com/apache/airflow/issues/72716).
"""

from __future__ import annotations

import asyncio
import time
from abc import abstractmethod
from collections.abc import AsyncIterator

from airflow.sdk.configuration import conf
from airflow.triggers.base import BaseTrigger, TriggerEvent

from lakebound_airflow.triggers.stream_watch import Event

# The end of the process, the way of the word to the scheduler, and the scheduler's next loop, on a busy machine.
SCHEDULER_SECONDS = 5.0


class SettledTrigger(BaseTrigger):
    """Yields the one event of `wait`, but not before the deferral is settled."""

    @abstractmethod
    async def wait(self) -> Event:
        """Return the event that ends the wait."""

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Yield the event."""
        started = time.monotonic()
        event = await self.wait()
        await asyncio.sleep(settle_seconds() - (time.monotonic() - started))
        yield TriggerEvent(event)  # type: ignore[no-untyped-call]


def settle_seconds() -> float:
    """Return how long after a deferral the scheduler may still hear that the process which deferred has ended.

    A task's supervisor that has read all that its process had to say looks only every ``[workers]
    min_heartbeat_interval`` seconds whether the process is gone.
    """
    return float(conf.getint("workers", "min_heartbeat_interval")) + SCHEDULER_SECONDS
