"""Records whose outcome a release or a recall changed: compares a table's entries with its rows. Pure.

Such an offset stands in the table and in the quarantine, and is right. Its first entry counts it as quarantined, so its rows
are not that entry's; they are those of the ``release`` entry, which names the offset.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lakebound.inspection.proof.history import History, Spans, difference, ranges_of, spans_of, union
from lakebound.inspection.proof.offset_arrays import Arrays, beyond, found_offsets, size, spans_from, within
from lakebound.inspection.proof.result import Found, found
from lakebound.ledger.entry import DECIDE_ANEW, Offsets, count
from lakebound.tables.table import CommittedEntry


@dataclass(frozen=True)
class Releases:
    """What was released in one table.

    Attributes:
        entries: Of kind ``release`` that stand, oldest first.
        named: The offsets that they name, and those of releases that were committed after the ledger was read.
        unnamed: How many more offsets were released, by entries that are no longer kept.
    """

    entries: tuple[CommittedEntry, ...]
    named: Spans
    unnamed: int


def releases_of(history: History, released: int, later: Sequence[Offsets] = ()) -> Releases:
    """Return what was released.

    Args:
        history: Of the table.
        released: As the entry that counts says it.
        later: The offsets of releases since.
    """
    entries = tuple(committed for committed in history.standing if committed.entry.kind in DECIDE_ANEW)
    named = union([*(spans_of(one.entry.releases) for one in entries), *(spans_of(offsets) for offsets in later)])
    told = sum(count(one.entry.releases) for one in entries)
    return Releases(entries, named, max(0, released - told))


def doubted(shared: Arrays, releases: Releases) -> Found:
    """Return the offsets both landed and quarantined that no release explains.

    Args:
        shared: All offsets that are both, without those that were read again.
        releases: Of the table.
    """
    rest = beyond(shared, releases.named)
    surplus = size(rest) - releases.unnamed
    if surplus <= 0:
        return Found()
    return found_offsets(rest) if not releases.unnamed else Found(count=surplus, within=ranges_of(spans_from(rest)))


def lost_rows(releases: Releases, landed: Arrays, rows: Arrays) -> Iterable[tuple[str, Found]]:
    """Yield the version of each release of which records or rows are missing, with what is missing.

    Args:
        releases: Of the table.
        landed: Distinct offsets with rows.
        rows: Offset of each row, doubled rows once.
    """
    for committed in releases.entries:
        entry, spans = committed.entry, spans_of(committed.entry.releases)
        held = within(landed, spans)
        fewer = entry.landed + entry.quarantined - size(held)  # a release quarantines nothing, a recall lands nothing
        if fewer > 0 and not entry.filtered:
            yield committed.version, found(ranges_of(difference(spans, spans_from(held))))
            continue
        lacking = max(fewer, entry.rows - size(within(rows, spans)))
        if lacking > 0:
            yield committed.version, Found(count=lacking, within=ranges_of(spans))
