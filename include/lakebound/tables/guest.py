"""Committing beside the running stream, as its guest: with its epoch, and again where it was faster.

A guest takes no lease and no epoch of its own: it commits with the newest epoch that the ledgers hold. Each table's
compare-and-swap keeps the two apart: one of two commits is refused, and who made it looks at the table again.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import TypeVar

import structlog

from lakebound.errors import CommitUnknownError, FilesOutdatedError, LeaseLostError
from lakebound.tables.commit import BatchOverlapError, LedgerWentBackError, ReleaseOvertakenError
from lakebound.tables.prepared import StalePreparedError

_MOVED_ON = (
    BatchOverlapError,
    CommitUnknownError,
    FilesOutdatedError,
    LeaseLostError,
    LedgerWentBackError,
    ReleaseOvertakenError,
    StalePreparedError,
)
"""A table is not what it was when the work was planned."""

_SHORTEST_WAIT_SECONDS = 0.1
_LONGEST_WAIT_SECONDS = 5.0
_log = structlog.get_logger(__name__)

T = TypeVar("T")


def retry_as_guest(work: Callable[[], T], *, what: str, attempts: int, look_again: Callable[[], None] = lambda: None) -> T:
    """Do work that ends in commits until no table has moved on under it; return what it returns.

    Args:
        work: Reads ledgers and commits. What an attempt committed stays, so the next one does the rest only.
        what: The work's name, for the log.
        attempts: How often to try.
        look_again: Called after the wait before each further attempt; what it raises ends the work.

    Raises:
        BatchOverlapError: A table moved on under the last attempt, as it did for the errors below.
        CommitUnknownError: The table or its catalog did not say whether it took the last commit.
        FilesOutdatedError: A table's columns were replaced.
        LeaseLostError: A later application opened a table.
        LedgerWentBackError: A table was rolled back.
        ReleaseOvertakenError: Another release was faster.
        StalePreparedError: Files that were rewritten are not the table's any more.
    """
    for attempt in range(1, attempts):
        try:
            return work()
        except _MOVED_ON as exc:
            _log.warning("table_moved_on", work=what, attempt=attempt, reason=str(exc))
        time.sleep(random.uniform(_SHORTEST_WAIT_SECONDS, min(0.2 * 2**attempt, _LONGEST_WAIT_SECONDS)))
        look_again()
    return work()
