"""Offsets of rows as sorted arrays per partition: what makes a million of them cheap to judge. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakebound.inspection.proof.facts import OffsetArray
from lakebound.inspection.proof.history import Spans, ranges_of
from lakebound.inspection.proof.result import Found, found
from lakebound.ledger.intervals import Intervals
from lakebound.ledger.topics import TopicIdPartition

Arrays = dict[TopicIdPartition, OffsetArray]
NONE: OffsetArray = np.zeros(0, dtype=np.int64)
_ORIGIN = ("topic", "topic_id", "partition", "offset", "ordinal")


@dataclass(frozen=True)
class RowOffsets:
    """Where a table's rows come from.

    Attributes:
        rows: Offset of each row, doubled rows once; sorted, an exploded record several times.
        records: Distinct offsets, sorted.
        doubled: Offset of each surplus copy of a row, sorted.
        without_origin: Rows whose ``_kafka`` has a null.
    """

    rows: Arrays
    records: Arrays
    doubled: Arrays
    without_origin: int


def index_rows(*tables: pa.Table) -> RowOffsets:
    """Return rows by partition.

    Args:
        *tables: Each as ``Table.scan_kafka`` gives it.
    """
    kafka = pa.concat_tables([table.select(_ORIGIN) for table in tables], promote_options="permissive")
    known = kafka.select(_ORIGIN).drop_null()
    rows: Arrays = {}
    records: Arrays = {}
    doubled: Arrays = {}
    for key, offsets, ordinals in _by_partition(known):
        order = np.lexsort((ordinals, offsets))
        offsets, ordinals = offsets[order], ordinals[order]
        again = np.zeros(len(offsets), dtype=np.bool_)
        again[1:] = (offsets[1:] == offsets[:-1]) & (ordinals[1:] == ordinals[:-1])
        rows[key], doubled[key] = offsets[~again], offsets[again]
        records[key] = distinct(offsets)
    return RowOffsets(rows, records, {key: array for key, array in doubled.items() if len(array)}, len(kafka) - len(known))


def inside(array: OffsetArray, intervals: Intervals) -> npt.NDArray[np.bool_]:
    """Return which of the offsets lie in the merged intervals."""
    if not intervals:
        return np.zeros(len(array), dtype=np.bool_)
    starts, ends = np.array(intervals, dtype=np.int64).T
    position = np.searchsorted(starts, array, side="right") - 1
    result: npt.NDArray[np.bool_] = (position >= 0) & (array < ends[np.maximum(position, 0)])
    return result


def distinct(array: OffsetArray) -> OffsetArray:
    """Return the offsets of a sorted array once each; NumPy's own ``unique`` would hash them, at twenty times the cost."""
    kept = np.ones(len(array), dtype=np.bool_)
    kept[1:] = array[1:] != array[:-1]
    return array[kept]


def among(array: OffsetArray, others: OffsetArray) -> npt.NDArray[np.bool_]:
    """Return which of the offsets are in another sorted array."""
    if not len(others):
        return np.zeros(len(array), dtype=np.bool_)
    result: npt.NDArray[np.bool_] = others[np.minimum(np.searchsorted(others, array), len(others) - 1)] == array
    return result


def within(arrays: Mapping[TopicIdPartition, OffsetArray], spans: Spans) -> Arrays:
    """Return the offsets that lie in the spans, for every partition of the spans."""
    return {key: arrays.get(key, NONE)[inside(arrays.get(key, NONE), intervals)] for key, intervals in spans.items()}


def beyond(arrays: Mapping[TopicIdPartition, OffsetArray], spans: Spans) -> Arrays:
    """Return the offsets that do not lie in the spans."""
    rests = {key: array[~inside(array, spans.get(key, ()))] for key, array in arrays.items()}
    return {key: rest for key, rest in rests.items() if len(rest)}


def without(arrays: Mapping[TopicIdPartition, OffsetArray], removed: Mapping[TopicIdPartition, OffsetArray]) -> Arrays:
    """Return the offsets that are not among the removed ones."""
    return {key: array[~among(array, removed.get(key, NONE))] for key, array in arrays.items()}


def both(left: Mapping[TopicIdPartition, OffsetArray], right: Mapping[TopicIdPartition, OffsetArray]) -> Arrays:
    """Return the offsets that are in both."""
    shared = {key: array[among(array, right[key])] for key, array in left.items() if key in right}
    return {key: array for key, array in shared.items() if len(array)}


def either(left: Mapping[TopicIdPartition, OffsetArray], right: Mapping[TopicIdPartition, OffsetArray]) -> Arrays:
    """Return the distinct offsets that are in at least one of them."""
    return {key: _union(left.get(key, NONE), right.get(key, NONE)) for key in {**left, **right}}


def size(arrays: Mapping[TopicIdPartition, OffsetArray]) -> int:
    """Return how many offsets there are."""
    return sum(len(array) for array in arrays.values())


def spans_from(arrays: Mapping[TopicIdPartition, OffsetArray]) -> Spans:
    """Return sorted offsets as intervals."""
    spans: Spans = {}
    for key, array in arrays.items():
        if len(array):
            kept = distinct(array)
            last = np.flatnonzero(np.diff(kept) != 1)
            starts, ends = kept[np.append(0, last + 1)], kept[np.append(last, len(kept) - 1)] + 1
            spans[key] = tuple(zip(starts.tolist(), ends.tolist(), strict=True))
    return spans


def found_offsets(arrays: Mapping[TopicIdPartition, OffsetArray]) -> Found:
    """Return the offsets as a finding; one that stands there several times is counted as often."""
    return found(ranges_of(spans_from(arrays))).model_copy(update={"count": size(arrays)})


def _union(left: OffsetArray, right: OffsetArray) -> OffsetArray:
    if not len(left) or not len(right):
        return left if len(left) else right
    return distinct(np.sort(np.concatenate([left, right]), kind="stable"))


def _by_partition(known: pa.Table) -> list[tuple[TopicIdPartition, OffsetArray, OffsetArray]]:
    if not known.num_rows:
        return []
    codes = np.zeros(known.num_rows, dtype=np.int64)
    for name in _ORIGIN[:3]:
        encoded = pc.dictionary_encode(known[name].combine_chunks())
        codes = codes * len(encoded.dictionary) + encoded.indices.to_numpy()
    order = np.argsort(codes, kind="stable")
    bounds = np.flatnonzero(np.diff(codes[order])) + 1
    offsets, ordinals = known["offset"].to_numpy(), known["ordinal"].to_numpy()
    result = []
    for group in np.split(order, bounds):
        topic, topic_id, partition = (known[name][int(group[0])].as_py() for name in _ORIGIN[:3])
        result.append(((topic, topic_id, partition), offsets[group], ordinals[group]))
    return result
