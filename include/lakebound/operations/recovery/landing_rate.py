"""How fast a stream lands a backlog, from its own entries; and how long it takes to catch up at that rate."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from lakebound.tables.table import CommittedEntry, Table

START_SECONDS = 20.0
"""From the reset to the first batch after it, measured on two busy cores: 19.6 s."""

_WINDOW_MS = 1000
_ENTRIES = 500


def catch_up_seconds(records: int, records_per_second: float | None) -> float | None:
    """Return how long a start and the landing of this number of records take; None if no rate is known."""
    return None if records_per_second is None else START_SECONDS + records / records_per_second


def slowest_rate(tables: Sequence[Table]) -> float | None:
    """Return the landing rate of the slowest table, from their last entries; None if no table shows one.

    Raises:
        LakeboundError: The entries of a table cannot be read.
    """
    rates = [landing_rate(list(islice(table.entries(), _ENTRIES))) for table in tables]
    known = [rate for rate in rates if rate is not None]
    return min(known) if known else None


def landing_rate(entries: Sequence[CommittedEntry]) -> float | None:
    """Return the highest number of records per second between two commits that are at least one second apart.

    A stream that keeps up reads only as fast as records are produced: its fastest period is the best estimate of its limit.

    Args:
        entries: Of a table, newest first.

    Returns:
        Records per second, or None if no such period has a record.
    """
    commits = [(committed.committed_at_ms, committed.entry.read) for committed in reversed(entries)]
    best, start, read = 0.0, 0, 0
    for at_ms, records in commits[1:]:
        read += records
        # The shortest period that ends here and is long enough; its first commit only says when it begins.
        while start + 1 < len(commits) and at_ms - commits[start + 1][0] >= _WINDOW_MS:
            start += 1
            read -= commits[start][1]
        span_ms = at_ms - commits[start][0]
        if span_ms >= _WINDOW_MS:
            best = max(best, read * 1000 / span_ms)
    return best or None
