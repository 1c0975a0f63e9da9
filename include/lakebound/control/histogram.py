"""Durations counted in buckets of fixed bounds: small, mergeable over any stretch of time, good for quantiles. Pure."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from itertools import accumulate
from operator import add

from lakebound.control.bounds import MOST_COUNT, counted

BOUNDS_SECONDS = (
    *(0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.5, 0.7),
    *(1.0, 1.5, 2.0, 3.0, 5.0, 7.0, 10.0, 20.0, 30.0),
    *(60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0, 14400.0, 86400.0),
)
"""Upper bounds, inclusive; what is longer is in one more bucket. Files hold the counts by place: new bounds need new files."""

MOST_SECONDS = 1e18
"""Of a sum: of more records than 64 bits count, none would be older than a second."""

_NOTHING = (0,) * (len(BOUNDS_SECONDS) + 1)


@dataclass(frozen=True, slots=True)
class Histogram:
    """How many durations were how long.

    Attributes:
        counts: Of each bucket, not cumulated; the last one has no upper bound.
        total_seconds: Sum of all durations.
    """

    counts: tuple[int, ...] = _NOTHING
    total_seconds: float = 0.0

    def __post_init__(self) -> None:
        """Refuse what was counted with other bounds, and what is no sum.

        Raises:
            ValueError: The number of buckets is another one, or a number is below zero or none.
        """
        if len(self.counts) != len(_NOTHING) or not 0.0 <= self.total_seconds <= MOST_SECONDS:
            raise ValueError(f"a histogram has {len(_NOTHING)} counts and a sum, none below zero or beyond 64 bits")
        if min(self.counts) < 0 or max(self.counts) > MOST_COUNT:
            raise ValueError("a histogram has a count that is below zero or beyond 64 bits")

    @property
    def count(self) -> int:
        """How many durations there are."""
        return sum(self.counts)

    @property
    def cumulated(self) -> tuple[int, ...]:
        """How many are at most as long as each bound; the last one is the number of all."""
        return tuple(accumulate(self.counts))

    def plus(self, other: Histogram) -> Histogram:
        """Return the histogram of both."""
        if other.counts is _NOTHING:
            return self
        counts = tuple(map(counted, map(add, self.counts, other.counts)))
        return Histogram(counts, min(MOST_SECONDS, self.total_seconds + other.total_seconds))

    def quantile(self, share: float) -> float | None:
        """Return the seconds that this share of the durations does not exceed; None without any.

        Within a bucket the durations count as evenly spread, as Prometheus does it. For what is above the highest bound, that
        bound is returned.

        Args:
            share: From 0 to 1, such as 0.99.
        """
        wanted = share * self.count
        if not self.count:
            return None
        below = 0
        for place, (bound, times) in enumerate(zip(BOUNDS_SECONDS, self.counts, strict=False)):
            if times and below + times >= wanted:
                lower = BOUNDS_SECONDS[place - 1] if place else 0.0
                return lower + (bound - lower) * max(0.0, wanted - below) / times
            below += times
        return BOUNDS_SECONDS[-1]


NO_DURATIONS = Histogram()


def histogram_of(seconds: float, times: int = 1) -> Histogram:
    """Return the histogram of one duration.

    Args:
        seconds: How long it was; below zero, which clocks that differ may give, counts as zero.
        times: How often it was that long.
    """
    seconds = max(0.0, seconds)
    place = bisect_left(BOUNDS_SECONDS, seconds)
    return Histogram((*_NOTHING[:place], times, *_NOTHING[place + 1 :]), min(MOST_SECONDS, seconds * times))
