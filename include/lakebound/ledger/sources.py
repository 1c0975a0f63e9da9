"""Which code made which rows: the versions that the entries of a table remember. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from lakebound.frozen import FrozenRecord
from lakebound.ledger.marks import NextOffsets

MOST_REMEMBERED = 16
"""Versions in an entry; each commit repeats them. Which code made older rows is not known then."""
MOST_OFFSETS = 512
"""First offsets in all versions of an entry, some 6 kB: a topic of 200 partitions has two versions."""


class Source(FrozenRecord):
    """What makes rows of records: fields of the YAML, modules of the transform, versions of packages.

    Attributes:
        hash: Of all of it; empty where it is not known.
        revision: The commit of the Git checkout in which the code lies, with a "+" where files differ from it; empty: none.
    """

    hash: str = ""
    revision: str = ""


UNKNOWN = Source()


class SourceVersion(Source):
    """Code that made rows from some offset on.

    Attributes:
        since_ms: When the first application with it opened the table, in epoch milliseconds.
        first_offsets: The table's next offsets at that time. A partition that is not named had none.
    """

    since_ms: int
    first_offsets: dict[str, dict[int, int]] = Field(default_factory=dict)

    def first_offset(self, topic: str, partition: int) -> int:
        """Return the offset from which on rows are made by this code, or by a later version."""
        return self.first_offsets.get(topic, {}).get(partition, 0)


def remembered(
    known: Sequence[SourceVersion], source: Source, next_offsets: NextOffsets, now_ms: int
) -> tuple[SourceVersion, ...]:
    """Return the versions that an entry names with which an application opens a table, oldest first.

    Args:
        known: Of the entry before it.
        source: What the application runs.
        next_offsets: The table's. After a rewind they may be lower than when a version began.
        now_ms: Epoch milliseconds.
    """
    kept = [_within(one, next_offsets) for one in known]
    while kept and kept[-1].hash != source.hash and _landed_nothing(kept[-1], next_offsets):
        kept.pop()
    if source.hash and not (kept and kept[-1].hash == source.hash):
        first = {topic: dict(partitions) for topic, partitions in next_offsets.items()}
        kept.append(SourceVersion(hash=source.hash, revision=source.revision, since_ms=now_ms, first_offsets=first))
    kept = kept[-MOST_REMEMBERED:]
    while len(kept) > 1 and sum(map(_size, kept)) > MOST_OFFSETS:
        del kept[0]
    return tuple(kept)


def _within(version: SourceVersion, next_offsets: NextOffsets) -> SourceVersion:
    """Return a version that begins nowhere beyond the table's next offsets: what is landed from there on is a later one's."""
    first = {
        topic: {partition: min(at, next_offsets.get(topic, {}).get(partition, 0)) for partition, at in partitions.items()}
        for topic, partitions in version.first_offsets.items()
    }
    return version if first == version.first_offsets else version.model_copy(update={"first_offsets": first})


def _landed_nothing(version: SourceVersion, next_offsets: NextOffsets) -> bool:
    return all(
        version.first_offset(topic, partition) >= at
        for topic, partitions in next_offsets.items()
        for partition, at in partitions.items()
    )


def _size(version: SourceVersion) -> int:
    return sum(map(len, version.first_offsets.values()))
