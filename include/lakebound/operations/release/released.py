"""Which quarantined offsets a table's entries say were released. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from lakebound.inspection.proof.history import Spans, difference, spans_of, union
from lakebound.ledger.entry import DECIDE_ANEW, count
from lakebound.ledger.intervals import Intervals
from lakebound.ledger.topics import TopicIdPartition
from lakebound.tables.table import CommittedEntry


def released_offsets(entries: Iterable[CommittedEntry], released: int) -> tuple[Spans, int]:
    """Return the offsets that release entries name, and how many more were released by entries that are no longer kept.

    Of an offset that was redone since, its rows tell what became of it: it is not among them.

    Args:
        entries: Of a table, newest first; none older than needed is asked for.
        released: How many were ever released, as the entry that counts says it.
    """
    left, told, named, redone = released, 0, list[Spans](), dict[TopicIdPartition, Intervals]()
    redo: str | None = None
    for committed in entries if released else ():
        entry = committed.entry
        redo = entry.newest_redo if redo is None else redo
        if entry.kind == "redo" and entry.commit == redo:
            # Its rows tell what became of its offsets, and no release before it does.
            redone, redo = union([redone, spans_of(entry.redoes)]), entry.redo_before or ""
            told, left = told + entry.from_quarantine, min(left, entry.released - entry.from_quarantine)
        # A release that a restore by hand has undone stands in the log still, and counts beyond what is left.
        elif entry.kind in DECIDE_ANEW and entry.released <= left:
            own = count(entry.releases)
            named.append(difference(spans_of(entry.releases), redone))
            told, left = told + own, entry.released - own
        if left <= 0:
            break
    return union(named), max(0, released - told)
