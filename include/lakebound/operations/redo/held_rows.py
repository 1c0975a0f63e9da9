"""How many rows of a range a table has, and in which of its data files; reads ``_kafka`` of the files that may hold any."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakebound.ledger.entry import Offsets
from lakebound.ledger.intervals import Intervals
from lakebound.ledger.topics import TopicIdPartition
from lakebound.operations.erase.copying import check_replaceable, overlaps, read_origins
from lakebound.tables.erasing import ErasesRows, LiveDataFile
from lakebound.tables.reconstruction import FileRange


@dataclass(frozen=True)
class HeldRows:
    """What a table has of a range.

    Attributes:
        rows: Rows of the range.
        files: Data files with at least one of them.
        size_bytes: Size of these files.
    """

    rows: int
    files: int
    size_bytes: int


def held_rows(table: ErasesRows, wanted: Offsets) -> HeldRows:
    """Return what a table, as of its last ``read_ledger``, has of a range.

    Args:
        table: The table.
        wanted: The range.

    Raises:
        RowsNotInFilesError: One of the files cannot be replaced.
    """
    spans = {
        (topic, held.topic_id, partition): intervals
        for topic, held in wanted.items()
        for partition, intervals in held.partitions.items()
        if intervals
    }
    rows, holding = 0, list[LiveDataFile]()
    for file in table.live_data_files():
        if not any(_may_hold(file.range, partition, intervals) for (_, _, partition), intervals in spans.items()):
            continue
        if own := count_rows(read_origins(file), spans):
            rows += own
            holding.append(file)
    check_replaceable(table.spec.id, holding)
    return HeldRows(rows, len(holding), sum(file.size_bytes for file in holding))


def count_rows(kafka: pa.Table, spans: Mapping[TopicIdPartition, Intervals]) -> int:
    """Return how many rows are of the offsets. Pure.

    Args:
        kafka: Where rows are from, as ``Table.scan_kafka`` gives it.
        spans: Merged intervals, each with at least one offset.
    """
    found = 0
    for (topic, topic_id, partition), intervals in spans.items():
        of_topic = pc.and_(pc.equal(kafka["topic"], topic), pc.equal(kafka["topic_id"], topic_id))
        own = kafka.filter(pc.and_(of_topic, pc.equal(kafka["partition"], partition)))["offset"]
        edges = np.array(intervals, dtype=np.int64).ravel()
        # Between a start and its end there is an odd number of edges to the left.
        found += int(np.count_nonzero(np.searchsorted(edges, own.drop_null().to_numpy(), side="right") % 2))
    return found


def _may_hold(held: FileRange, partition: int, intervals: Intervals) -> bool:
    return overlaps(held.partition, partition, partition) and overlaps(held.offset, intervals[0][0], intervals[-1][1] - 1)
