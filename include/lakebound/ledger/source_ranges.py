"""The offsets that each version of the code landed. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from lakebound.ledger.entry import Offsets, TopicOffsets
from lakebound.ledger.intervals import overlap
from lakebound.ledger.sources import SourceVersion

_END = 2**63


def landed_by(
    versions: Sequence[SourceVersion], coverage: Mapping[str, TopicOffsets]
) -> Iterator[tuple[SourceVersion | None, Offsets]]:
    """Yield each version with the offsets of the coverage that it landed, oldest first.

    What a replay or a release landed later, below the first offsets of a version, counts as landed by the version before it.

    Args:
        versions: As the newest entry remembers them, oldest first.
        coverage: Of the same entry.

    Yields:
        The version and its offsets; None as the version of those of which it is not known. These come only if there are any.
    """
    every: list[SourceVersion | None] = [None, *versions, None]
    for version, following in pairwise(every):
        found: Offsets = {}
        for topic, offsets in coverage.items():
            partitions = {}
            for partition, intervals in offsets.partitions.items():
                first = version.first_offset(topic, partition) if version else 0
                end = following.first_offset(topic, partition) if following else _END
                if within := overlap(intervals, ((first, end),)) if first < end else ():
                    partitions[partition] = within
            if partitions:
                found[topic] = TopicOffsets(topic_id=offsets.topic_id, partitions=partitions)
        if version or found:
            yield version, found
