"""How fast a stream lands when it has much to land, as its own entries tell; and how long catching up takes at that rate."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from lakebound.tables.table import CommittedEntry, Table

START_SECONDS = 20.0
"""From the reset to the first batch after it, measured on two busy cores: 19.6 s."""

_WINDOW_MS = 1000
_ENTRIES = 500


def catch_up_seconds(records: int, records_per_second: float | None) -> float | None:
    """Return how long a start and the reading of so many records take, None where no rate is known."""
    return None if records_per_second is None else START_SECONDS + records / records_per_second


def slowest_rate(tables: Sequence[Table]) -> float | None:
    """Return the landing rate of the slowest of the tables, from their last entries; None where no table tells.

    Raises:
        LakeboundError: The entries of a table cannot be read.
    """
    rates = [landing_rate(list(islice(table.entries(), _ENTRIES))) for table in tables]
    known = [rate for rate in rates if rate is not None]
    return min(known) if known else None


def landing_rate(entries: Sequence[CommittedEntry]) -> float | None:
    """Return the most records per second that any second or longer stretch between two commits has read.

    A stream that keeps up reads what is produced, not what it could: the best stretch is nearest to what it can.

    Args:
        entries: Of a table, newest first.

    Returns:
        Records per second, or None where the entries span no second with a record.
    """
    commits = [(committed.committed_at_ms, committed.entry.read) for committed in reversed(entries)]
    best, start, read = 0.0, 0, 0
    for at_ms, records in commits[1:]:
        read += records
        # The shortest stretch that ends here and is long enough: the first commit of it only tells when it begins.
        while start + 1 < len(commits) and at_ms - commits[start + 1][0] >= _WINDOW_MS:
            start += 1
            read -= commits[start][1]
        span_ms = at_ms - commits[start][0]
        if span_ms >= _WINDOW_MS:
            best = max(best, read * 1000 / span_ms)
    return best or None
