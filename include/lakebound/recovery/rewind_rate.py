"""How fast a stream lands when it has much to land, as its own entries tell. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from lakebound.tables import CommittedEntry

_WINDOW_MS = 1000


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
