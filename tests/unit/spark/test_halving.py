"""Halving finds each bad item, and no other, in few trials."""

from __future__ import annotations

from math import ceil, log2

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakebound_spark.batch.halving import TooManyFoundError, halved

pytestmark = pytest.mark.unit


@given(st.integers(1, 3000).flatmap(lambda count: st.tuples(st.just(count), st.sets(st.integers(0, count - 1), max_size=12))))
def test_any_bad_items_are_found_exactly_and_in_few_trials(case: tuple[int, set[int]]) -> None:
    count, bad = case
    trials = 0

    def trial(first: int, end: int) -> int | None:
        nonlocal trials
        trials += 1
        return min((item for item in bad if first <= item < end), default=None)

    assert halved(count, trial, most=12) == {item: item for item in bad}
    assert trials <= min(1 + 2 * len(bad) * (1 + ceil(log2(count))), 2 * count)


def test_what_follows_from_a_good_first_half_is_not_tried() -> None:
    tried: list[tuple[int, int]] = []

    def trial(first: int, end: int) -> str | None:
        tried.append((first, end))
        return "bad" if first <= 7 < end else None

    assert halved(8, trial, most=1) == {7: "bad"}
    assert tried == [(0, 8), (0, 4), (4, 6), (6, 7), (7, 8)]


def test_more_than_are_looked_for_end_the_search() -> None:
    with pytest.raises(TooManyFoundError):
        halved(1000, lambda first, end: "bad", most=5)
    assert len(halved(5, lambda first, end: "bad", most=5)) == 5


def test_items_that_are_bad_only_together_are_not_found() -> None:
    assert halved(8, lambda first, end: "bad" if end - first > 2 else None, most=5) == {}
    assert halved(0, lambda first, end: "bad", most=5) == {}
