"""Offsets of rows as sorted arrays per partition: what makes a million of them cheap to judge. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakebound.offsets import Intervals
from lakebound.proof.facts import OffsetArray
from lakebound.proof.history import Key, Spans
from lakebound.proof.result import Found, Ranges, found
from lakebound.tables.reconstruction import intervals_of_offsets

Arrays = dict[Key, OffsetArray]
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


def index_rows(kafka: pa.Table) -> RowOffsets:
    """Return the rows of a table by partition.

    Args:
        kafka: As ``Table.scan_kafka`` gives it.
    """
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
        records[key] = np.unique(offsets)
    return RowOffsets(rows, records, {key: array for key, array in doubled.items() if len(array)}, len(kafka) - len(known))


def inside(array: OffsetArray, intervals: Intervals) -> npt.NDArray[np.bool_]:
    """Return which of the offsets lie in the merged intervals."""
    if not intervals:
        return np.zeros(len(array), dtype=np.bool_)
    starts, ends = np.array(intervals, dtype=np.int64).T
    position = np.searchsorted(starts, array, side="right") - 1
    result: npt.NDArray[np.bool_] = (position >= 0) & (array < ends[np.maximum(position, 0)])
    return result


def within(arrays: Mapping[Key, OffsetArray], spans: Spans) -> Arrays:
    """Return the offsets that lie in the spans, for every partition of the spans."""
    return {key: arrays.get(key, NONE)[inside(arrays.get(key, NONE), intervals)] for key, intervals in spans.items()}


def beyond(arrays: Mapping[Key, OffsetArray], spans: Spans) -> Arrays:
    """Return the offsets that do not lie in the spans."""
    rests = {key: array[~inside(array, spans.get(key, ()))] for key, array in arrays.items()}
    return {key: rest for key, rest in rests.items() if len(rest)}


def without(arrays: Mapping[Key, OffsetArray], removed: Mapping[Key, OffsetArray]) -> Arrays:
    """Return the distinct offsets that are not among the removed ones."""
    return {key: np.setdiff1d(array, removed.get(key, NONE)) for key, array in arrays.items()}


def both(left: Mapping[Key, OffsetArray], right: Mapping[Key, OffsetArray]) -> Arrays:
    """Return the distinct offsets that are in both."""
    shared = {key: np.intersect1d(array, right[key]) for key, array in left.items() if key in right}
    return {key: array for key, array in shared.items() if len(array)}


def either(left: Mapping[Key, OffsetArray], right: Mapping[Key, OffsetArray]) -> Arrays:
    """Return the distinct offsets that are in at least one of them."""
    return {key: np.union1d(left.get(key, NONE), right.get(key, NONE)) for key in {**left, **right}}


def size(arrays: Mapping[Key, OffsetArray]) -> int:
    """Return how many offsets there are."""
    return sum(len(array) for array in arrays.values())


def found_offsets(arrays: Mapping[Key, OffsetArray]) -> Found:
    """Return the offsets as a finding; one that stands there several times is counted as often."""
    ranges: Ranges = {}
    for (topic, _, partition), array in sorted(arrays.items()):
        if len(array):
            known = ranges.setdefault(topic, {}).get(partition, ())
            ranges[topic][partition] = (*known, *intervals_of_offsets(array))
    return found(ranges).model_copy(update={"count": size(arrays)})


def _by_partition(known: pa.Table) -> list[tuple[Key, OffsetArray, OffsetArray]]:
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
