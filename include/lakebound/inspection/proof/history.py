"""Which entries a table's coverage stands on, and how their ranges lie to each other. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from lakebound.inspection.proof.result import Found, Ranges, found
from lakebound.ledger.entry import DECIDE_ANEW, Entry, FormerCoverage, Offsets, count, missing
from lakebound.ledger.intervals import Interval, Intervals, merge
from lakebound.ledger.topics import TopicIdPartition
from lakebound.tables.table import CommittedEntry

Spans = dict[TopicIdPartition, Intervals]
"""Merged intervals that hold at least one offset each: marks are left out."""


@dataclass(frozen=True)
class History:
    """The entries that count.

    Attributes:
        recent: Oldest first: what was committed since the birth, the newest reset, or the oldest entry that is kept.
        earlier: Oldest first: entries before the newest reset which it has left standing.
        base: Coverage before ``recent``.
        is_complete: Whether nothing older than these was ever landed: they reach back to the table's birth.
    """

    recent: tuple[CommittedEntry, ...]
    earlier: tuple[CommittedEntry, ...]
    base: Offsets
    is_complete: bool

    @property
    def standing(self) -> tuple[CommittedEntry, ...]:
        """All entries whose rows must be there, oldest first."""
        return (*self.earlier, *self.recent)


def trace(entries: Sequence[CommittedEntry], coverage: Offsets) -> History:
    """Return the history behind a coverage.

    Args:
        entries: Of the table, newest first.
        coverage: Of the entry that counts.
    """
    # A carry repeats an entry that may have been old when it was committed: it adds nothing and is no place to start from.
    deciding = [committed for committed in entries if committed.entry.kind != "carry"]
    if not deciding:
        return History((), (), coverage, is_complete=False)
    reset = next((number for number, committed in enumerate(deciding) if committed.entry.kind == "reset"), None)
    if reset is not None:
        older = deciding[reset + 1 :]
        base = deciding[reset].entry.coverage
        earlier = _left_standing(older, deciding[reset].entry)
        complete = not count(base) or _is_born(older)
        return History(tuple(reversed(deciding[:reset])), tuple(reversed(earlier)), base, is_complete=complete)
    oldest = deciding[-1].entry
    base = oldest.coverage if oldest.kind == "genesis" else missing(oldest.coverage, oldest.range)
    return History(tuple(reversed(deciding)), (), base, is_complete=_is_born(deciding) and not count(base))


def spans_of(offsets: Offsets) -> Spans:
    """Return the intervals without marks."""
    spans: Spans = {}
    for topic, held in offsets.items():
        for partition, intervals in held.partitions.items():
            solid = tuple(interval for interval in intervals if interval[0] < interval[1])
            if solid:
                spans[topic, held.topic_id, partition] = solid
    return spans


def held_spans(coverage: Offsets, former: FormerCoverage) -> Spans:
    """Return the coverage together with that of earlier incarnations of its topics, whose rows are in the table, too."""
    earlier = ({topic: held} for topic, incarnations in former.items() for held in incarnations)
    return union([spans_of(coverage), *(spans_of(held) for held in earlier)])


def given_up(history: History) -> Spans:
    """Return the offsets that a person gave up as lost: the ranges of ``skip`` entries that stand."""
    return union(spans_of(committed.entry.range) for committed in history.standing if committed.entry.kind == "skip")


def union(many: Iterable[Spans]) -> Spans:
    """Return all offsets of all."""
    parts: dict[TopicIdPartition, list[Interval]] = {}
    for spans in many:
        for key, intervals in spans.items():
            parts.setdefault(key, []).extend(intervals)
    return {key: merge(intervals) for key, intervals in parts.items()}


def difference(left: Spans, right: Spans) -> Spans:
    """Return what of ``left`` is not in ``right``."""
    rests = {key: tuple(_minus(intervals, right.get(key, ()))) for key, intervals in left.items()}
    return {key: rest for key, rest in rests.items() if rest}


def below(spans: Spans, bound: Callable[[str, str, int], int]) -> Spans:
    """Return what lies below a bound per topic, topic id and partition."""
    cut = {
        key: tuple((start, min(end, bound(*key))) for start, end in found if start < bound(*key))
        for key, found in spans.items()
    }
    return {key: intervals for key, intervals in cut.items() if intervals}


def ranges_of(spans: Spans) -> Ranges:
    """Return the intervals by topic and partition."""
    ranges: Ranges = {}
    for (topic, _, partition), intervals in sorted(spans.items()):
        known = ranges.setdefault(topic, {}).get(partition, ())
        ranges[topic][partition] = merge((*known, *intervals))
    return ranges


@dataclass(frozen=True)
class Overlaps:
    """Offsets that several commits say they landed.

    Attributes:
        found: How often too often, and where.
        versions: The commits, as pairs of which the second repeats offsets of the first.
    """

    found: Found
    versions: tuple[tuple[str, str], ...]

    @property
    def involved(self) -> frozenset[str]:
        """All these commits."""
        return frozenset(version for pair in self.versions for version in pair)


def overlaps(history: History) -> Overlaps:
    """Return what more than one commit landed, the base counting as one."""
    landed = [("the coverage before them", spans_of(history.base))] if count(history.base) else []
    landed += [(committed.version, spans_of(committed.entry.range)) for committed in history.recent]
    by_key: dict[TopicIdPartition, list[tuple[int, int, str]]] = {}
    for version, spans in landed:
        for key, intervals in spans.items():
            by_key.setdefault(key, []).extend((start, end, version) for start, end in intervals)
    result, pairs = Found(), []
    for (topic, _, partition), pieces in sorted(by_key.items()):
        doubled = list(_doubled(sorted(pieces)))
        if doubled:
            surplus = sum(end - start for start, end, _ in doubled)
            where = found({topic: {partition: tuple((start, end) for start, end, _ in doubled)}})
            result = result.plus(where.model_copy(update={"count": surplus}))
            pairs += [pair for _, _, pair in doubled]
    return Overlaps(result, tuple(dict.fromkeys(pairs)))


def _minus(intervals: Intervals, removed: Intervals) -> Iterator[Interval]:
    """Yield what is left of merged intervals, in one walk over both: a compacted topic leaves very many."""
    position = 0
    for start, end in intervals:
        while position < len(removed) and removed[position][1] <= start:
            position += 1
        cut = position
        while cut < len(removed) and removed[cut][0] < end:
            if start < removed[cut][0]:
                yield start, removed[cut][0]
            start = max(start, removed[cut][1])
            cut += 1
        if start < end:
            yield start, end


def _doubled(pieces: Sequence[tuple[int, int, str]]) -> Iterator[tuple[int, int, tuple[str, str]]]:
    """Yield what each of the pieces, sorted by start, repeats of those before it."""
    reach, reached_by = -1, ""
    for start, end, version in pieces:
        if start < reach:
            yield start, min(end, reach), (reached_by, version)
        if end > reach:
            reach, reached_by = end, version


def _is_born(entries: Sequence[CommittedEntry]) -> bool:
    return bool(entries) and entries[-1].entry.kind == "genesis"


def _left_standing(older: Sequence[CommittedEntry], reset: Entry) -> list[CommittedEntry]:
    """Return those of the entries before a reset, newest first, that the reset has not undone.

    A release or a recall adds to no coverage; the number of offsets decided again by then tells whether it was undone. Of redos
    each names the one before it, and the reset names the newest one that it has left.
    """
    left, released, standing = held_spans(reset.coverage, reset.former), reset.released, list[CommittedEntry]()
    redo = reset.newest_redo
    for committed in older:
        entry = committed.entry
        if entry.kind == "reset":
            left = difference(left, difference(left, held_spans(entry.coverage, entry.former)))
            released = min(released, entry.released)
            continue
        if entry.kind == "redo":
            if entry.commit == redo:
                standing.append(committed)
                redo, released = entry.redo_before, min(released, entry.released - entry.from_quarantine)
            continue
        if entry.kind in DECIDE_ANEW:
            if entry.released <= released:
                standing.append(committed)
                released = entry.released - count(entry.releases)
            continue
        own = spans_of(entry.range)
        if own and not difference(own, left):
            standing.append(committed)
            left = difference(left, own)
    return standing
