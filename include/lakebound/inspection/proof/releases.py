"""Records whose outcome a release or a recall changed: compares a table's entries with its rows. Pure.

Such an offset stands in the table and in the quarantine, and is right. Its first entry counts it as quarantined, so its rows
are not that entry's; they are those of the ``release`` entry, which names the offset.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lakebound.inspection.proof.facts import TableAsFound
from lakebound.inspection.proof.history import History, Spans, difference, ranges_of, spans_of, union
from lakebound.inspection.proof.offset_arrays import Arrays, beyond, found_offsets, size, spans_from, within
from lakebound.inspection.proof.redone import Share, named_by
from lakebound.inspection.proof.result import Found, found
from lakebound.ledger.entry import DECIDE_ANEW, EntryKind, Offsets, count

_BY_OTHERS: tuple[EntryKind, ...] = ("recall", "replay")


@dataclass(frozen=True)
class Releases:
    """What was released in one table.

    Attributes:
        shares: Entries of kind ``release`` that stand, oldest first, without the offsets that were redone later.
        named: The offsets whose rows they brought, and those of releases that were committed after the ledger was read.
        explained: Offsets that may be both landed and in quarantine: those ever released, and those redone.
        unnamed: How many more offsets were released, by entries that are no longer kept.
    """

    shares: tuple[Share, ...]
    named: Spans
    explained: Spans
    unnamed: int


def releases_of(shares: Sequence[Share], released: int, later: Sequence[Offsets] = ()) -> Releases:
    """Return what was released.

    Args:
        shares: Of the table's entries that stand.
        released: As the entry that counts says it.
        later: The offsets of releases since.
    """
    found = tuple(share for share in shares if share.entry.kind in DECIDE_ANEW)
    since = [spans_of(offsets) for offsets in later]
    named = union([*(share.spans for share in found), *since])
    again = [named_by(share.entry) for share in shares if share.entry.kind in (*DECIDE_ANEW, "redo")]
    told = sum(count(share.entry.releases) + share.entry.from_quarantine for share in shares)
    return Releases(found, named, union([*again, *since]), max(0, released - told))


def recalled_in(quarantine: History, facts: TableAsFound) -> Spans:
    """Return the offsets whose bad records a replay or redo has put into quarantine, or a recall, after they had been landed.

    A record of them that a table has landed is right: it was good then, and the table keeps it until a redo replaces it.

    Args:
        quarantine: History of the quarantine.
        facts: Of the quarantine.
    """
    entries = [committed.entry for committed in quarantine.standing]
    found = [entry.releases if entry.kind == "recall" else entry.range for entry in entries if entry.kind in _BY_OTHERS]
    return union(spans_of(offsets) for offsets in (*found, *facts.later_releases))


def doubted(shared: Arrays, releases: Releases) -> Found:
    """Return the offsets both landed and quarantined that no release and no redo explains.

    Args:
        shared: All offsets that are both, without those that were read again.
        releases: Of the table.
    """
    rest = beyond(shared, releases.explained)
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
    for share in releases.shares:
        entry, spans, version = share.entry, share.spans, share.committed.version
        if not spans:
            continue
        held = within(landed, spans)
        # A release quarantines nothing, a recall lands nothing.
        fewer = entry.landed + entry.quarantined - size(held) - share.redone
        if fewer > 0 and not entry.filtered and not share.redone:
            yield version, found(ranges_of(difference(spans, spans_from(held))))
            continue
        lacking = max(fewer, 0 if share.redone else entry.rows - size(within(rows, spans)))
        if lacking > 0:
            yield version, Found(count=lacking, within=ranges_of(spans))
