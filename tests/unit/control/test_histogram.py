"""Histograms lose no duration, merge in any order, and their quantiles are off by less than one bucket."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.streams.long_form import examples

from lakebound.control.histogram import BOUNDS_SECONDS, Histogram, histogram_of

SECONDS = st.lists(st.floats(0, 100_000), max_size=30)


def made_of(seconds: list[float]) -> Histogram:
    found = Histogram()
    for one in seconds:
        found = found.plus(histogram_of(one))
    return found


@settings(max_examples=examples(100))
@given(SECONDS, SECONDS)
def test_two_merged_are_that_of_all(some: list[float], others: list[float]) -> None:
    merged = made_of(some).plus(made_of(others))
    assert merged.counts == made_of(some + others).counts == made_of(others).plus(made_of(some)).counts
    assert merged.count == len(some) + len(others) == merged.cumulated[-1]
    assert merged.total_seconds == pytest.approx(sum(some) + sum(others))


@settings(max_examples=examples(100))
@given(st.lists(st.floats(0, BOUNDS_SECONDS[-1]), min_size=1, max_size=30), st.sampled_from([0.0, 0.5, 0.9, 0.99, 1.0]))
def test_a_quantile_is_in_the_bucket_of_the_true_one(seconds: list[float], share: float) -> None:
    true = sorted(seconds)[max(0, math.ceil(share * len(seconds)) - 1)]
    upper = next(bound for bound in BOUNDS_SECONDS if true <= bound)
    lower = max((bound for bound in BOUNDS_SECONDS if bound < upper), default=0.0)
    found = made_of(seconds).quantile(share)
    assert found is not None and lower <= found <= upper


def test_the_edges() -> None:
    assert Histogram().quantile(0.5) is None
    assert histogram_of(-3.0).counts[0] == 1 and histogram_of(-3.0).total_seconds == 0.0
    assert histogram_of(BOUNDS_SECONDS[3]).counts[3] == 1, "bounds are inclusive, as in Prometheus"
    assert histogram_of(1e9, 5).counts[-1] == 5
    assert histogram_of(1e9).quantile(0.99) == BOUNDS_SECONDS[-1]
    assert histogram_of(0.06, 100).quantile(0.5) == pytest.approx(0.06)
    for wrong in (((1,), 0.0), ((-1,) * (len(BOUNDS_SECONDS) + 1), 0.0), (Histogram().counts, math.nan)):
        with pytest.raises(ValueError, match="a histogram has"):
            Histogram(*wrong)
