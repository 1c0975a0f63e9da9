from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakebound.ledger.intervals import (
    Interval,
    Intervals,
    gaps,
    merge,
    merge_partitions,
    overlap,
    overlap_partitions,
    subtract,
    subtract_partitions,
    total,
)

intervals = st.lists(
    st.tuples(st.integers(0, 60), st.integers(0, 12)).map(lambda pair: (pair[0], pair[0] + pair[1])), max_size=8
)


def members(found: list[Interval] | Intervals) -> set[int]:
    """The same thing as a set of offsets: slow, and plainly right."""
    return {offset for start, end in found for offset in range(start, end)}


@given(intervals)
def test_merge_keeps_every_offset_and_is_sorted_disjoint_and_not_adjacent(found: list[Interval]) -> None:
    merged = merge(found)
    assert members(merged) == members(found)
    assert all(before[1] < after[0] for before, after in itertools.pairwise(merged))
    assert merge(merged) == merged


@given(intervals, intervals)
def test_merge_does_not_depend_on_the_order(left: list[Interval], right: list[Interval]) -> None:
    assert members(merge([*left, *right])) == members(merge([*merge(right), *merge(left)]))


@given(intervals, intervals)
def test_subtract_and_overlap_are_those_of_sets(left: list[Interval], right: list[Interval]) -> None:
    rest = subtract(left, right)
    assert members(rest) == members(left) - members(right) and merge(rest) == rest
    assert members(overlap(left, right)) == members(left) & members(right)
    assert overlap(left, right) == overlap(right, left)


@given(intervals, intervals)
def test_what_is_left_and_what_was_taken_make_the_whole(left: list[Interval], right: list[Interval]) -> None:
    rest, taken = subtract(left, right), overlap(left, right)
    assert total(rest) + total(taken) == total(merge(left))
    assert members(rest).isdisjoint(members(taken))


@given(intervals)
def test_gaps_fill_the_span_exactly(found: list[Interval]) -> None:
    merged = merge(found)
    holes = gaps(merged)
    if members(merged):
        assert members(merged) | members(holes) == set(range(merged[0][0], merged[-1][1]))
    assert members(holes).isdisjoint(members(merged))


@given(intervals)
def test_a_union_begins_and_ends_where_its_parts_do(found: list[Interval]) -> None:
    merged = merge(found)
    assert bool(merged) == bool(found)
    if found:
        assert merged[0][0] == min(start for start, _ in found) and merged[-1][1] == max(end for _, end in found)
    assert all(start < end for start, end in merged[1:-1])


def test_a_mark_stands_where_no_offset_lies_beyond_it() -> None:
    assert merge([(7, 7)]) == ((7, 7),)
    assert merge([(7, 7), (0, 3)]) == ((0, 3), (7, 7))
    assert merge([(7, 7), (9, 12)]) == ((7, 7), (9, 12))
    assert merge([(7, 7), (8, 8), (9, 9)]) == ((7, 7), (9, 9))
    assert merge([(7, 7), (0, 3), (9, 12)]) == ((0, 3), (9, 12))
    assert merge([(7, 7), (0, 7)]) == ((0, 7),)
    assert subtract([(7, 7)], []) == ()
    assert subtract([(0, 9)], [(7, 7)]) == ((0, 9),)


@pytest.mark.parametrize("wrong", [(3, 2), (-1, 4)])
def test_an_interval_that_is_none_is_refused(wrong: Interval) -> None:
    with pytest.raises(ValueError, match="not an interval"):
        merge([wrong])


@given(st.dictionaries(st.integers(0, 2), intervals), st.dictionaries(st.integers(0, 2), intervals))
def test_partitions_do_not_mix(left: dict[int, list[Interval]], right: dict[int, list[Interval]]) -> None:
    first = {p: merge(found) for p, found in left.items()}
    second = {p: merge(found) for p, found in right.items()}
    union = merge_partitions(first, second)
    rest = subtract_partitions(first, second)
    both = overlap_partitions(first, second)
    for partition in range(3):
        mine, other = members(first.get(partition, ())), members(second.get(partition, ()))
        assert members(union.get(partition, ())) == mine | other
        assert members(rest.get(partition, ())) == mine - other
        assert members(both.get(partition, ())) == mine & other
    assert all(rest.values()) and all(both.values())
