"""A replay's range in pieces that fit into memory. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest

from lakebound.ledger.entry import Offsets, TopicOffsets, intervals_of
from lakebound.ledger.intervals import Interval, Intervals
from lakebound.ledger.topics import TopicIdPartition


def chunks(wanted: Offsets, max_offsets: int) -> Iterator[Offsets]:
    """Yield the offsets in pieces, the oldest of each partition first: they are the nearest to being deleted by Kafka.

    A piece's intervals in a partition are read as one range and filtered, so it is the whole width of that range that counts:
    over all partitions at most ``max_offsets``, but never less than one offset of a partition.

    Args:
        wanted: The offsets.
        max_offsets: The largest width of a piece.
    """
    places = [
        (topic, wanted[topic].topic_id, p) for topic, p, intervals in intervals_of(wanted) if any(s < e for s, e in intervals)
    ]
    share = max(1, max_offsets // max(1, len(places)))
    pieces = [_pieces(wanted[topic].partitions[p], share) for topic, _, p in places]
    at_once = max(1, max_offsets // share)
    for row in zip_longest(*pieces):
        found = [(place, piece) for place, piece in zip(places, row, strict=True) if piece]
        for first in range(0, len(found), at_once):
            yield _offsets(found[first : first + at_once])


def _pieces(intervals: Intervals, width: int) -> Iterator[Intervals]:
    """Yield the intervals cut so that none of the groups is wider than ``width`` from its first to its last offset."""
    group: list[Interval] = []
    for start, end in intervals:
        while start < end:
            if group and start >= group[0][0] + width:
                yield tuple(group)
                group = []
            limit = (group[0][0] if group else start) + width
            group.append((start, min(end, limit)))
            start = group[-1][1]
    if group:
        yield tuple(group)


def _offsets(found: list[tuple[TopicIdPartition, Intervals]]) -> Offsets:
    result: dict[str, TopicOffsets] = {}
    for (topic, topic_id, partition), intervals in found:
        known = result[topic].partitions if topic in result else {}
        result[topic] = TopicOffsets(topic_id=topic_id, partitions={**known, partition: intervals})
    return result
