"""How many rows of a range a table has, and in which of its data files; reads ``_kafka`` of the files that may hold any."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakebound.inspection.proof.history import spans_of
from lakebound.ledger.entry import Offsets
from lakebound.ledger.intervals import Intervals
from lakebound.ledger.topics import TopicIdPartition
from lakebound.operations.erase.copying import Hit, files_with, overlaps
from lakebound.tables.erasing import ErasesRows
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
    hits = find_rows(table, spans_of(wanted))
    return HeldRows(sum(hit.going.num_rows for hit in hits), len(hits), sum(hit.file.size_bytes for hit in hits))


def find_rows(table: ErasesRows, spans: Mapping[TopicIdPartition, Intervals], version: str | None = None) -> list[Hit]:
    """Return the files of a table that hold rows of the offsets.

    Args:
        table: The table.
        spans: Merged intervals, each with at least one offset.
        version: Of which version; None: as of its last ``read_ledger``.

    Raises:
        RowsNotInFilesError: One of the files cannot be replaced.
    """
    return files_with(
        table,
        lambda held: any(_may_hold(held, partition, intervals) for (_, _, partition), intervals in spans.items()),
        lambda kafka: rows_among(kafka, spans),
        version,
    )


def rows_among(kafka: pa.Table, spans: Mapping[TopicIdPartition, Intervals]) -> npt.NDArray[np.bool_]:
    """Return which rows are of the offsets. Pure.

    Args:
        kafka: Where rows are from, as ``Table.scan_kafka`` gives it.
        spans: Merged intervals, each with at least one offset.
    """
    found = np.zeros(kafka.num_rows, dtype=bool)
    offsets = pc.fill_null(kafka["offset"], -1).to_numpy()
    for (topic, topic_id, partition), intervals in spans.items():
        of_topic = pc.and_(pc.equal(kafka["topic"], topic), pc.equal(kafka["topic_id"], topic_id))
        own = pc.fill_null(pc.and_(of_topic, pc.equal(kafka["partition"], partition)), False).to_numpy()
        edges = np.array(intervals, dtype=np.int64).ravel()
        # Between a start and its end there is an odd number of edges to the left.
        found |= own & (np.searchsorted(edges, offsets, side="right") % 2 == 1)
    return found


def _may_hold(held: FileRange, partition: int, intervals: Intervals) -> bool:
    return overlaps(held.partition, partition, partition) and overlaps(held.offset, intervals[0][0], intervals[-1][1] - 1)
