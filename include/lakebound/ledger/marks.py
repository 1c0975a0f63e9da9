"""Sums over marks: how far behind, how much again, how much is lost. Pure.

A mark is the next offset to read of a partition. Where a mark is not known, each function says what it counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from lakebound.ledger.lost import LostRange
from lakebound.ledger.topics import TopicFacts

NextOffsets = Mapping[str, Mapping[int, int]]
"""Per topic and partition, the next offset: to be read, as marks and starts say, or to be written, as Kafka's ends say."""


def lag(marks: NextOffsets, ends: NextOffsets) -> int | None:
    """Return how many offsets lie between the marks and Kafka's ends: what waits for a stream.

    A partition whose mark or end is not known does not count: nobody has said where its reading begins. Without any mark
    nothing is known, and the answer is None. A mark beyond the end counts as none waiting.

    Args:
        marks: How far the stream got.
        ends: Kafka's.
    """
    if not any(marks.values()):
        return None
    return _between(marks, ends)


@dataclass(frozen=True)
class SeenEnds:
    """Kafka's ends as they once were, and the last time at which such ends had all landed later on.

    Attributes:
        ends: The ends that are waited for.
        asked_at: Epoch seconds just before Kafka was asked for them.
        landed_at: Everything that Kafka had at this moment has landed; None while that is not known of any.
    """

    ends: NextOffsets | None = None
    asked_at: float = 0.0
    landed_at: float | None = None


def seen_ends(before: SeenEnds, marks: NextOffsets, ends: NextOffsets, asked_at: float) -> SeenEnds:
    """Return what is known after another look at Kafka's ends.

    Args:
        before: After the look before.
        marks: How far the stream got.
        ends: Kafka's at this look.
        asked_at: Epoch seconds just before Kafka was asked.
    """
    if has_reached(marks, ends):
        return SeenEnds(None, 0.0, asked_at)
    if before.ends is None:
        return SeenEnds(ends, asked_at, before.landed_at)
    if has_reached(marks, before.ends):
        return SeenEnds(ends, asked_at, before.asked_at)
    return before


def has_reached(marks: NextOffsets, ends: NextOffsets) -> bool:
    """Return whether nothing before the ends waits; a partition without a mark has to be empty.

    Args:
        marks: How far a stream or a table got.
        ends: Ends of Kafka's partitions.
    """
    return all(
        marks.get(topic, {}).get(partition, 0) >= end for topic, known in ends.items() for partition, end in known.items()
    )


def unlanded(marks: NextOffsets, topics: Mapping[str, TopicFacts | None]) -> int:
    """Return how many offsets Kafka still has at and after the marks of a table.

    A partition without a mark counts from its beginning in Kafka: the table holds nothing of it. What Kafka has deleted does
    not count, nor does a topic that is not there: the one is lost, and of the other nothing is known.

    Args:
        marks: Of the table, or the lowest of several.
        topics: Kafka's facts of the topics that count.
    """
    return sum(
        max(0, end - max(known.earliest.get(partition, 0), marks.get(topic, {}).get(partition, 0)))
        for topic, known in topics.items()
        if known is not None
        for partition, end in known.latest.items()
    )


def debt(start: NextOffsets, reached: NextOffsets) -> int:
    """Return how many offsets, read once already, are read again.

    A partition that either side does not know does not count: it is not read again, or was never read.

    Args:
        start: Where reading continues.
        reached: How far somebody had got.
    """
    return _between(start, reached)


def loss(ranges: Iterable[LostRange]) -> int:
    """Return how many offsets are lost; markers and compacted records are among them."""
    return sum(lost.records for lost in ranges)


def passed_by_retention(marks: NextOffsets, topics: Mapping[str, TopicFacts | None]) -> tuple[LostRange, ...]:
    """Return what Kafka has deleted at and after the marks: no table with these marks will ever hold it.

    Where the mark or Kafka's earliest offset is not known, nothing counts as lost.

    Args:
        marks: The lowest of the tables.
        topics: Kafka's facts; None for a topic that is not there.
    """
    return tuple(
        LostRange(topic=topic, partition=partition, start=mark, end=known.earliest[partition])
        for topic, partitions in sorted(marks.items())
        if (known := topics.get(topic)) is not None
        for partition, mark in sorted(partitions.items())
        if mark < known.earliest.get(partition, mark)
    )


def highest(several: Iterable[NextOffsets]) -> dict[str, dict[int, int]]:
    """Return the highest mark of each partition that any of them knows."""
    found: dict[str, dict[int, int]] = {}
    for topic, partition, mark in _each(several):
        known = found.setdefault(topic, {})
        known[partition] = max(mark, known.get(partition, mark))
    return found


def lowest(several: Iterable[NextOffsets]) -> dict[str, dict[int, int]]:
    """Return the lowest mark of each partition that any of them knows; one that does not know it has no say."""
    found: dict[str, dict[int, int]] = {}
    for topic, partition, mark in _each(several):
        known = found.setdefault(topic, {})
        known[partition] = min(mark, known.get(partition, mark))
    return found


def lowest_of_all(several: Sequence[NextOffsets]) -> dict[str, dict[int, int]]:
    """Return the lowest mark of each partition that all of them know."""
    found = lowest(several)
    return {
        topic: {p: mark for p, mark in partitions.items() if all(p in marks.get(topic, {}) for marks in several)}
        for topic, partitions in found.items()
    }


def _each(several: Iterable[NextOffsets]) -> Iterable[tuple[str, int, int]]:
    for marks in several:
        for topic, partitions in marks.items():
            for partition, mark in partitions.items():
                yield topic, partition, mark


def _between(start: NextOffsets, end: NextOffsets) -> int:
    return sum(
        max(0, end[topic][partition] - mark)
        for topic, partitions in start.items()
        for partition, mark in partitions.items()
        if partition in end.get(topic, {})
    )
