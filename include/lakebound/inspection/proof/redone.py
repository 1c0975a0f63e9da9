"""Whose an offset is when it was landed, released and redone: the newest entry that decided about it counts its rows. Pure.

An older entry keeps its counts. Of what a redo has left of it they are an upper bound, and how many of its offsets were redone
says how far below it the truth may lie.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lakebound.inspection.proof.history import History, Spans, difference, spans_of, union
from lakebound.ledger.entry import DECIDE_ANEW, Entry
from lakebound.ledger.intervals import total
from lakebound.tables.table import CommittedEntry


@dataclass(frozen=True)
class Share:
    """An entry that stands, with the offsets that are its own.

    Attributes:
        committed: The entry.
        spans: The offsets that it landed, released or redid, without those that a later redo took over.
        redone: How many of its offsets a later redo took over.
    """

    committed: CommittedEntry
    spans: Spans
    redone: int = 0

    @property
    def entry(self) -> Entry:
        """The entry."""
        return self.committed.entry


def shares_of(history: History) -> list[Share]:
    """Return the entries that stand, oldest first, each with what is its own."""
    if all(committed.entry.kind != "redo" for committed in history.standing):
        return [Share(committed, named_by(committed.entry)) for committed in history.standing]
    redone: Spans = {}
    landed: Spans = {}
    newer: list[Spans] = []
    shares = []
    for committed in reversed(history.standing):
        named, is_redo = named_by(committed.entry), committed.entry.kind == "redo"
        if is_redo:
            # What was taken back after a redo and landed again is the later entry's.
            landed, newer = union([landed, *newer]), []
        spans = difference(named, union([redone, landed]) if is_redo else redone)
        shares.append(Share(committed, spans, size_of(named) - size_of(spans)))
        if is_redo:
            redone = union([redone, named])
        else:
            newer.append(spans_of(committed.entry.range))
    return shares[::-1]


def redone_by(shares: Sequence[Share]) -> Spans:
    """Return all offsets that were redone and are still their redo's."""
    return union(share.spans for share in shares if share.entry.kind == "redo")


def named_by(entry: Entry) -> Spans:
    """Return the offsets that an entry decides about."""
    if entry.kind == "redo":
        return spans_of(entry.redoes)
    return spans_of(entry.releases if entry.kind in DECIDE_ANEW else entry.range)


def size_of(spans: Spans) -> int:
    """Return how many offsets there are."""
    return sum(total(intervals) for intervals in spans.values())
