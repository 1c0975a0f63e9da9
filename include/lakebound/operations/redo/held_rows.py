"""How many rows of a range a table has, and in which of its data files; reads ``_kafka`` of the files that may hold any."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakebound.inspection.proof.history import spans_of
from lakebound.ledger.entry import Offsets, intervals_of
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
        copied_bytes: What copies of them take at most: one for each piece of which a file may hold rows.
    """

    rows: int
    files: int
    size_bytes: int
    copied_bytes: int


def held_rows(table: ErasesRows, wanted: Offsets, pieces: Iterable[Offsets]) -> HeldRows:
    """Return what a table, as of its last ``read_ledger``, has of a range.

    Args:
        table: The table.
        wanted: The range.
        pieces: In which it is redone, one commit for each.

    Raises:
        RowsNotInFilesError: One of the files cannot be replaced.
    """
    hits, numbered = find_rows(table, spans_of(wanted)), by_partition(pieces)
    return HeldRows(
        sum(hit.going.num_rows for hit in hits),
        len(hits),
        sum(hit.file.size_bytes for hit in hits),
        sum(hit.file.size_bytes * copies_of(hit.going, numbered) for hit in hits),
    )


def copies_of(going: pa.Table, pieces: Mapping[tuple[str, int], Sequence[tuple[int, int, int]]]) -> int:
    """Return how many pieces there are between the first and the last rows of a file, by partition. Pure.

    Args:
        going: Where the rows of the range are from that the file holds.
        pieces: Start, end and number of each, sorted, by topic and partition.
    """
    found = set[int]()
    for (topic, partition), spans in pieces.items():
        own = going.filter(pc.and_(pc.equal(going["topic"], topic), pc.equal(going["partition"], partition)))["offset"]
        if not len(own):
            continue
        first, last = (bound.as_py() for bound in pc.min_max(own).values())
        begin = bisect_right(spans, first, key=lambda span: span[1])
        for start, _, number in islice(spans, begin, None):
            if start > last:
                break
            found.add(number)
    return len(found)


def by_partition(pieces: Iterable[Offsets]) -> dict[tuple[str, int], list[tuple[int, int, int]]]:
    """Return start, end and number of the pieces' intervals, sorted, by topic and partition. Pure."""
    found: dict[tuple[str, int], list[tuple[int, int, int]]] = {}
    for number, piece in enumerate(pieces):
        for topic, partition, intervals in intervals_of(piece):
            found.setdefault((topic, partition), []).extend((start, end, number) for start, end in intervals)
    return {place: sorted(spans) for place, spans in found.items()}


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
