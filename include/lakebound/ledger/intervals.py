"""Offsets as intervals: the arithmetic of coverage. Pure.

An interval is half open, [start, end). A partition's intervals are sorted, disjoint and not adjacent ("merged").
An empty interval [n, n) is a mark: landing begins at n, or has got to n, though nothing up to there is landed. It is kept
only where no offset lies before it, or none after it, so that a union begins and ends where its parts do.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise

Interval = tuple[int, int]
Intervals = tuple[Interval, ...]
PartitionIntervals = Mapping[int, Intervals]


def merge(intervals: Iterable[Interval]) -> Intervals:
    """Return the union, merged; it begins at the lowest start and ends at the highest end, at a mark if need be.

    Raises:
        ValueError: An interval ends before it starts, or starts below 0.
    """
    merged: list[Interval] = []
    for start, end in sorted(intervals):
        if end < start or start < 0:
            raise ValueError(f"[{start}, {end}) is not an interval of offsets")
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    last = len(merged) - 1
    return tuple(interval for at, interval in enumerate(merged) if interval[0] < interval[1] or at in (0, last))


def subtract(intervals: Iterable[Interval], removed: Iterable[Interval]) -> Intervals:
    """Return what of ``intervals`` is not in ``removed``; empty when nothing is left."""
    left = [interval for interval in merge(intervals) if interval[0] < interval[1]]
    for cut_start, cut_end in removed:
        if cut_start == cut_end:
            continue  # a mark takes nothing away, and must not cut an interval in two
        pieces: list[Interval] = []
        for start, end in left:
            if cut_end <= start or end <= cut_start:
                pieces.append((start, end))
                continue
            if start < cut_start:
                pieces.append((start, cut_start))
            if cut_end < end:
                pieces.append((cut_end, end))
        left = pieces
    return tuple(left)


def overlap(left: Iterable[Interval], right: Iterable[Interval]) -> Intervals:
    """Return what stands in both."""
    left = merge(left)
    return subtract(left, subtract(left, right))


def gaps(intervals: Intervals) -> Intervals:
    """Return the holes between the first and the last offset."""
    return tuple((before[1], after[0]) for before, after in pairwise(intervals))


def total(intervals: Iterable[Interval]) -> int:
    """Return how many offsets the intervals hold."""
    return sum(end - start for start, end in intervals)


def merge_partitions(left: PartitionIntervals, right: PartitionIntervals) -> dict[int, Intervals]:
    """Return the union per partition."""
    return {p: merge((*left.get(p, ()), *right.get(p, ()))) for p in sorted({*left, *right})}


def subtract_partitions(left: PartitionIntervals, removed: PartitionIntervals) -> dict[int, Intervals]:
    """Return what of ``left`` is not in ``removed``, per partition; partitions without a rest are left out."""
    rests = {p: subtract(intervals, removed.get(p, ())) for p, intervals in left.items()}
    return {p: rest for p, rest in sorted(rests.items()) if rest}


def overlap_partitions(left: PartitionIntervals, right: PartitionIntervals) -> dict[int, Intervals]:
    """Return what stands in both, per partition; partitions without any are left out."""
    both = {p: overlap(left[p], right[p]) for p in left if p in right}
    return {p: common for p, common in sorted(both.items()) if common}
