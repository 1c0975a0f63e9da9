"""Which lane a batch takes to its files: the fastest by what batches took so far, within what the driver can hold. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import numpy as np

from lakebound.landing.rollup_recorder import Lane
from lakebound.spec.limits import DriverLaneSpec

_EARLIER = 0.9
"""Factor by which a batch's weight shrinks with each later batch."""
_EXPECTED = 0.2
"""Weight of the expected cost, as a share of one batch."""
_SWITCH = 1.25
"""Factor by which another lane must be faster than the last one: measured times scatter by less."""
_WORTH_A_TRY = 3.0
"""Largest factor by which the expected time of a lane that was not taken lately is wrong."""
_FIRST_TRY = 32
"""Number of batches for which another lane might be faster before it is tried; then twice as many, and so on."""
_SLOWEST = 2.0
"""Largest factor by which a lane that was never taken is expected to be as much slower as the lanes that were."""
_WARM_UP_BATCHES = 10
"""Of an application whose batches all go through Spark. They take seconds, whichever lane is first: the JVM loads classes and
compiles. What that lane cost would be held against it for long."""

_COLD_SECONDS = 50.0
"""How much longer than the next ones a batch may take in which an executor of a cluster takes part for the first time: its JVM
loads classes and compiles (two streams in containers on two busy cores, 2,000 records/s). Nothing is committed meanwhile."""
_FIRST_SECONDS = 10.0
"""The same on one machine, of the first batch that Spark reads (6 and 11 in the demo, on two cores beside Airflow)."""
_COLD = 3.0
"""Factor by which a batch is slower than expected where an executor was cold."""


@dataclass
class Cost:
    """Seconds of a batch as a line over its rows, by least squares.

    A batch counts by its error as a share of what is expected of its size: else only large ones would count. What is expected
    stays in the sums as two batches, one small and one large, so that there is a line where all batches are of one size.
    """

    expected_seconds: float
    expected_seconds_per_row: float
    _expected: np.ndarray = field(init=False, repr=False)
    _seen: np.ndarray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        small, large = (self._terms(rows, self._expected_of(rows)) for rows in (1e3, 1e6))
        self._expected = _EXPECTED * (small + large)
        self._seen = np.zeros(5)

    def learn(self, rows: float, seconds: float) -> None:
        """Take a batch into account."""
        self._seen = _EARLIER * self._seen + self._terms(rows, seconds)

    def seconds(self, rows: float) -> float:
        """Return the time that a batch of this number of rows will take."""
        weight, x, xx, y, xy = map(float, self._expected + self._seen)
        slope = (weight * xy - x * y) / (weight * xx - x**2)
        at_zero = (y - slope * x) / weight
        if at_zero < 0:
            return rows * xy / xx
        return at_zero + rows * slope if slope > 0 else y / weight

    def slowness(self, rows: float) -> float:
        """Return how many times longer than expected a batch of this number of rows takes."""
        return self.seconds(rows) / self._expected_of(rows)

    def _expected_of(self, rows: float) -> float:
        return self.expected_seconds + rows * self.expected_seconds_per_row

    def _terms(self, rows: float, seconds: float) -> np.ndarray:
        """Return what a batch adds to the sums of a weighted least-squares line: weight, x, x², y, xy."""
        return np.array([1, rows, rows**2, seconds, rows * seconds]) / self._expected_of(rows) ** 2


def _expected(cores: int, *, has_transform: bool) -> dict[Lane, Cost]:
    """Return what was measured on two cores, records of 180 B (decisions 10 and 24); Spark's part shrinks with the cores."""
    if has_transform:
        return {"direct": Cost(0.1, 8e-6), "driver": Cost(0.3, 6e-6 + 8e-6 / cores), "cluster": Cost(0.7, 20e-6 / cores)}
    return {"direct": Cost(0.05, 5e-6), "driver": Cost(0.15, 6e-6 + 8e-6 / cores), "cluster": Cost(0.6, 20e-6 / cores)}


@dataclass
class LaneChooser:
    """Chooses by the size of what a batch becomes; a record's width and its rows are learned from the batches before it.

    A row counts as wide as its record, because an explode repeats the other columns. The first batch that Spark reads takes it
    seconds of planning and compiling, in which records wait. So a lane is tried only where the batch takes longer than that
    lane needs for no rows at all, and one that was never taken is no faster only because this machine is a slow one.

    Attributes:
        has_transform: What the driver reads goes through one task of Spark; where Spark reads, through one per core.
        on_cluster: Executors are JVMs of their own, which nothing has warmed up. A batch with a cold executor, also one that
            replaces another, says nothing of the next.

    Spark gets its first batch when the driver has lost as much time by reading itself as that batch may cost, or by a try.
    """

    limits: DriverLaneSpec
    cores: int = 2
    has_transform: bool = False
    on_cluster: bool = False
    bytes_per_record: float | None = None
    rows_per_record: float = 1.0
    _costs: dict[Lane, Cost] = field(init=False)
    _last: Lane | None = None
    _untried: int = 0
    _next_try: int = _FIRST_TRY
    _tries: Counter[Lane] = field(default_factory=Counter)
    _batches: int = 0
    _taken: set[Lane] = field(default_factory=set)
    _spark_is_warm: bool = False
    _was_cold: bool = False
    _lost_seconds: float = 0.0

    def __post_init__(self) -> None:
        self._costs = _expected(self.cores, has_transform=self.has_transform)

    def choose(self, offsets: int, *, may_be_direct: bool = False) -> Lane:
        """Return the lane of a batch of this size.

        Args:
            offsets: How many it has.
            may_be_direct: The driver can read it. It does so in slices, so that what it can hold is no bound.
        """
        rows = offsets * self.rows_per_record
        lanes = self._possible(rows, may_be_direct=may_be_direct)
        if lanes == ["cluster"]:
            return "cluster"
        seconds = {lane: self._seconds(lane, rows) for lane in lanes}
        chosen = min(self._warm(seconds), key=lambda lane: seconds[lane])
        if self._last in seconds and seconds[self._last] < _SWITCH * seconds[chosen]:
            chosen = self._last
        others = [lane for lane in lanes if lane != chosen and seconds[lane] < _WORTH_A_TRY * seconds[chosen]]
        others = [lane for lane in others if self._seconds(lane, 0) < seconds[chosen]]
        if others:
            self._untried += 1
            if self._untried >= self._next_try:
                self._untried, self._next_try = 0, 2 * self._next_try
                tried = min(others, key=lambda lane: self._tries[lane])
                self._tries[tried] += 1
                return tried
        self._last = chosen
        return chosen

    def _possible(self, rows: float, *, may_be_direct: bool) -> list[Lane]:
        if not (self.limits.max_rows and self.limits.max_bytes):
            return ["cluster"]
        lanes: list[Lane] = ["direct"] if may_be_direct else []
        if (self.has_transform or not may_be_direct) and self._fits(rows):
            lanes.append("driver")
        return [*lanes, "cluster"]

    def learn(self, lane: Lane, records: int, value_bytes: int, rows: int, seconds: float) -> None:
        """Take a batch into account: wider records and more rows count at once, less of either slowly.

        Args:
            lane: Which lane it took: who read it and who wrote its files.
            records: How many Kafka records it had.
            value_bytes: Size of their values together, in bytes.
            rows: How many rows they gave in one table.
            seconds: How long the batch took from reading to written files.
        """
        if records == 0:
            return
        width = value_bytes / records
        self.bytes_per_record = width if self.bytes_per_record is None else _no_less_soon(self.bytes_per_record, width)
        self.rows_per_record = _no_less_soon(self.rows_per_record, max(1.0, rows / records))
        self._batches += 1
        if lane != "direct":
            was_cold = self._had_cold_executors(lane, max(records, rows), seconds)
            if self.on_cluster and was_cold:
                return
        if not self.has_transform or self._batches > _WARM_UP_BATCHES:
            self._costs[lane].learn(max(records, rows), seconds)
            self._taken.add(lane)

    def _warm(self, seconds: Mapping[Lane, float]) -> Collection[Lane]:
        """Return the lanes without cold Spark, until the driver has lost the time that its first batch costs."""
        if self._spark_is_warm or "direct" not in seconds:
            return seconds
        self._lost_seconds += max(0.0, seconds["direct"] - min(seconds.values()))
        cost_seconds = _COLD_SECONDS if self.on_cluster else _FIRST_SECONDS
        return seconds if self._lost_seconds >= cost_seconds else ["direct"]

    def _had_cold_executors(self, lane: Lane, rows: float, seconds: float) -> bool:
        """Return whether a batch was slow as the first one of an executor is; a second one in a row is no accident."""
        before = self._was_cold
        self._was_cold = not self._spark_is_warm or seconds > _COLD * self._costs[lane].seconds(rows)
        self._spark_is_warm = True
        return self._was_cold and not before

    def _seconds(self, lane: Lane, rows: float) -> float:
        """Return the time that a batch will take, by what the lane took, or by what others took where it was never taken."""
        seconds = self._costs[lane].seconds(rows)
        if lane in self._taken or not self._taken:
            return seconds
        slowness = min(self._costs[taken].slowness(rows) for taken in self._taken)
        return seconds * min(max(slowness, 1.0), _SLOWEST)

    def _fits(self, rows: float) -> bool:
        """The first batch, of unknown width, does not."""
        if self.bytes_per_record is None:
            return False
        return rows <= self.limits.max_rows and rows * self.bytes_per_record <= self.limits.max_bytes


def _no_less_soon(known: float, seen: float) -> float:
    return max(seen, 0.8 * known + 0.2 * seen)
