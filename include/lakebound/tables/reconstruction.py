"""Coverage worked out from what a table holds, where there is no entry. Pure.

The result is a lower bound: offsets that were filtered or quarantined have left no rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakebound.ledger.entry import Offsets, TopicOffsets, add
from lakebound.ledger.intervals import Intervals
from lakebound.tables.table import ReconstructedCoverage

Bounds = tuple[Any, Any]


@dataclass(frozen=True)
class FileRange:
    """Rows of a file, and minimum and maximum of its ``_kafka`` columns; None where a statistic is missing."""

    rows: int | None
    topic: Bounds
    topic_id: Bounds
    partition: Bounds
    offset: Bounds
    ordinal: Bounds

    @property
    def is_exact(self) -> bool:
        """Whether the bounds say exactly which offsets the file holds: one partition, one row each, none left out."""
        first, last = self.offset
        if None in (self.rows, first, last) or self.ordinal != (0, 0):
            return False
        single = (self.topic, self.topic_id, self.partition)
        return all(low is not None and low == high for low, high in single) and last - first + 1 == self.rows


def from_ranges(files: Sequence[FileRange]) -> ReconstructedCoverage | None:
    """Return the coverage that statistics tell, or None where those of any file do not tell it exactly."""
    if not all(file.is_exact and len(file.topic[0]) < 32 and len(file.topic_id[0]) < 32 for file in files):
        return None
    coverage: Offsets = {}
    for file in files:
        interval = ((file.offset[0], file.offset[1] + 1),)
        landed = TopicOffsets(topic_id=file.topic_id[0], partitions={file.partition[0]: interval})
        coverage = add(coverage, {file.topic[0]: landed})
    return ReconstructedCoverage(coverage, "statistics")


def from_rows(kafka: pa.Table) -> ReconstructedCoverage:
    """Return the coverage of the rows themselves.

    Args:
        kafka: As ``Table.scan_kafka`` gives it.

    Raises:
        TopicRecreatedError: Rows of one topic name several topic ids.
    """
    coverage: Offsets = {}
    for topic, topic_id, partition, offsets in _by_partition(kafka):
        landed = TopicOffsets(topic_id=topic_id, partitions={partition: intervals_of_offsets(offsets)})
        coverage = add(coverage, {topic: landed})
    return ReconstructedCoverage(coverage, "scan")


def intervals_of_offsets(offsets: np.ndarray) -> Intervals:
    """Return the merged intervals of offsets in any order, with or without doubles."""
    distinct = np.unique(offsets)
    starts = np.flatnonzero(np.diff(distinct, prepend=-2) != 1) if len(distinct) else np.zeros(0, dtype=np.int64)
    ends = [*starts[1:], len(distinct)]
    return tuple((int(distinct[start]), int(distinct[end - 1]) + 1) for start, end in zip(starts, ends, strict=True))


def _by_partition(kafka: pa.Table) -> Iterator[tuple[str, str, int, np.ndarray]]:
    names = ("topic", "topic_id", "partition")
    for key in kafka.group_by(list(names)).aggregate([]).to_pylist():
        chosen = pc.and_(
            pc.and_(pc.equal(kafka["topic"], key["topic"]), pc.equal(kafka["topic_id"], key["topic_id"])),
            pc.equal(kafka["partition"], key["partition"]),
        )
        yield key["topic"], key["topic_id"], key["partition"], kafka["offset"].filter(chosen).to_numpy()
