"""Which quarantined offsets a table's entries say were released. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from lakebound.inspection.proof.history import Spans, spans_of, union
from lakebound.ledger.entry import DECIDE_ANEW, count
from lakebound.tables.table import CommittedEntry


def released_offsets(entries: Iterable[CommittedEntry], released: int) -> tuple[Spans, int]:
    """Return the offsets that release entries name, and how many more were released by entries that are no longer kept.

    Args:
        entries: Of a table, newest first; none older than needed is asked for.
        released: How many were ever released, as the entry that counts says it.
    """
    left, told, named = released, 0, []
    for committed in entries if released else ():
        entry = committed.entry
        # A release that a restore by hand has undone stands in the log still, and counts beyond what is left.
        if entry.kind in DECIDE_ANEW and entry.released <= left:
            own = count(entry.releases)
            named.append(spans_of(entry.releases))
            told, left = told + own, entry.released - own
        if left <= 0:
            break
    return union(named), max(0, released - told)
