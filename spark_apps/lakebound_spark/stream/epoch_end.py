"""The end of a query in real time: after an epoch, and before the next one reads a record.

Spark has no call for it: ``stop`` ends the query at once, and the pause between two epochs is some tenths of a second, or less.
So the thread that stops the query waits for the epoch's end on Spark's own condition, and keeps the lock that Spark needs to
plan the next epoch (``executeOneBatch`` and ``constructNextBatch`` of ``MicroBatchExecution``) until the query knows that it
is to end.
"""

from __future__ import annotations

import time
from contextlib import suppress
from threading import Thread
from typing import Any

from pyspark.sql.streaming.query import StreamingQuery

from lakebound.control.processes import wait_until
from lakebound.errors import DeadlineExceededError

_LOOK_SECONDS = 1.0
_POLL_SECONDS = 0.01
_INTERRUPT_SECONDS = 5.0
"""Between Spark's state and its interrupt lie the cancelling of jobs that are not there: milliseconds."""


def ended_epochs(query: StreamingQuery) -> int:
    """Return how many epochs of the query have ended, by Spark's number of the last one."""
    progress = query._jsq.lastProgress()
    return 0 if progress is None else int(progress.batchId()) + 1


def stop_after_epoch(query: StreamingQuery, limit_seconds: float) -> bool:
    """Wait for the end of the epoch, and stop the query before the next one reads. Return whether an epoch ended in time.

    Args:
        query: In real time.
        limit_seconds: How long to wait; then the query is stopped within its epoch.
    """
    execution: Any = query._jsq.streamingQuery()
    lock, ended = execution.awaitProgressLock(), ended_epochs(query)
    stopping = Thread(target=query.stop, name="stop-query")
    lock.lock()
    try:
        has_ended = _wait_epoch(query, execution, ended, time.monotonic() + limit_seconds)
        stopping.start()
        if has_ended:
            _wait_told(execution)
    finally:
        lock.unlock()
    stopping.join()
    return has_ended


def _wait_epoch(query: StreamingQuery, execution: Any, ended: int, deadline: float) -> bool:
    """Wait with the lock: each wait of Java's gives it away, and has it again when it returns."""
    condition = execution.awaitProgressLockCondition()
    while ended_epochs(query) == ended:
        left_seconds = min(deadline - time.monotonic(), _LOOK_SECONDS)
        if left_seconds <= 0 or not query.isActive:
            return False
        condition.awaitNanos(int(left_seconds * 1_000_000_000))
    return True


def _wait_told(execution: Any) -> None:
    """Wait until the query's thread, which the lock keeps from the next epoch, is interrupted; Spark sets its state before."""
    thread = execution.queryExecutionThread()
    with suppress(DeadlineExceededError):
        wait_until(
            lambda: thread.isInterrupted() or not thread.isAlive(), _INTERRUPT_SECONDS, "the query's interrupt", _POLL_SECONDS
        )
