"""What a pipeline did, summed over stretches of time: batches into 10 seconds, these into minutes, these into hours. Pure.

Fifteen minutes to thirty days of a pipeline can be shown from these, without a look at its tables.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from lakebound.control.bounds import Count, Moment, counted, seconds_summed
from lakebound.control.histogram import NO_DURATIONS, Histogram

T = TypeVar("T")

MOST_REASONS = 12
"""Of one bucket."""
OTHER_REASONS = "other reasons"

_KIB = 1 << 10


@dataclass(frozen=True, slots=True)
class Resolution:
    """How long a bucket is, and how many are kept.

    Attributes:
        name: In file names and on the command line.
        seconds: Length of a bucket.
        kept_seconds: For how long a bucket is kept.
        max_bytes: What its file takes at most.
    """

    name: str
    seconds: int
    kept_seconds: int
    max_bytes: int

    def start_of(self, at: float) -> int:
        """Return when the bucket began in which a moment lies; both in epoch seconds."""
        return int(at // self.seconds) * self.seconds


TEN_SECONDS = Resolution("10s", 10, 3600, 1024 * _KIB)
MINUTE = Resolution("1m", 60, 2 * 86_400, 4096 * _KIB)
HOUR = Resolution("1h", 3600, 60 * 86_400, 3072 * _KIB)
RESOLUTIONS = (TEN_SECONDS, MINUTE, HOUR)
"""From fine to coarse: each is made of the one before."""


@dataclass(frozen=True, slots=True)
class TableFigures:
    """What was committed to a table: ``commits`` with rows, their ``rows``, and when the last one was (epoch seconds)."""

    commits: Count = 0
    rows: Count = 0
    last_commit_at: Moment = 0.0

    def plus(self, other: TableFigures) -> TableFigures:
        """Return the sums, and the later moment."""
        later = max(self.last_commit_at, other.last_commit_at)
        return TableFigures(counted(self.commits + other.commits), counted(self.rows + other.rows), later)

    def since(self, before: TableFigures) -> TableFigures:
        """Return what came after ``before``, of which this is the continuation."""
        return TableFigures(max(0, self.commits - before.commits), max(0, self.rows - before.rows), self.last_commit_at)


@dataclass(frozen=True, slots=True)
class Figures:
    """What happened in a stretch of time, however short or long.

    Attributes:
        tables: By table id (``format:name``).
        read: Records that were read, the next two among them.
        filtered: Records that gave no row.
        quarantined: Records that went to quarantine.
        lag_records: How many waited in Kafka at last; None where that is not known.
        freshness: How old records were when they landed; each counts as old as the oldest one of its batch.
        batches: How long batches took, by lane.
        reasons: Why records went to quarantine, and how many: the commonest reasons, the others as one.
        steps: Seconds that each step of batches took, by lane and step. Commits to different tables run side by side.
        cpu_seconds: Of the application on its machine, Spark's JVM and its start included; 0 where nobody counted.
    """

    tables: Mapping[str, TableFigures] = field(default_factory=dict)
    read: Count = 0
    filtered: Count = 0
    quarantined: Count = 0
    lag_records: Count | None = None
    freshness: Histogram = NO_DURATIONS
    batches: Mapping[str, Histogram] = field(default_factory=dict)
    steps: Mapping[str, Mapping[str, Moment]] = field(default_factory=dict)
    reasons: Mapping[str, Count] = field(default_factory=dict)
    cpu_seconds: Moment = 0.0

    @property
    def cpu_seconds_per_million(self) -> float | None:
        """CPU seconds per million records read; None where either is not known."""
        return self.cpu_seconds / self.read * 1e6 if self.read and self.cpu_seconds else None

    @property
    def commits(self) -> int:
        """Commits with rows, to all tables."""
        return sum(table.commits for table in self.tables.values())

    @property
    def rows(self) -> int:
        """Rows landed, in all tables."""
        return sum(table.rows for table in self.tables.values())

    def plus(self, later: Figures) -> Figures:
        """Return the sums; what cannot be summed is that of ``later``, if it is known there."""
        return Figures(
            tables=_merged(self.tables, later.tables, TableFigures.plus),
            read=counted(self.read + later.read),
            filtered=counted(self.filtered + later.filtered),
            quarantined=counted(self.quarantined + later.quarantined),
            lag_records=self.lag_records if later.lag_records is None else later.lag_records,
            freshness=self.freshness.plus(later.freshness),
            batches=_merged(self.batches, later.batches, Histogram.plus),
            steps=_merged(self.steps, later.steps, lambda one, other: _merged(one, other, seconds_summed)),
            reasons=commonest(_merged(self.reasons, later.reasons, _sum_of_counts)),
            cpu_seconds=seconds_summed(self.cpu_seconds, later.cpu_seconds),
        )


NO_FIGURES = Figures()


@dataclass(frozen=True, slots=True)
class Bucket:
    """The figures of one stretch of time, which began ``at`` (epoch seconds)."""

    at: Count
    figures: Figures = NO_FIGURES

    def plus(self, figures: Figures) -> Bucket:
        """Return the bucket with more in it."""
        return replace(self, figures=self.figures.plus(figures))


@dataclass(frozen=True, slots=True)
class Totals:
    """The sums of all that the pipeline's applications did since ``since`` (epoch seconds); they never go down."""

    since: Moment
    figures: Figures = NO_FIGURES

    def plus(self, figures: Figures) -> Totals:
        """Return the totals with more in them."""
        return replace(self, figures=self.figures.plus(figures))


def rolled_up(
    buckets: Iterable[Bucket],
    into: Resolution,
    *,
    before: float | None = None,
    known: Collection[int] = frozenset(),
) -> list[Bucket]:
    """Return coarser buckets, oldest first.

    Args:
        buckets: Finer ones, oldest first.
        into: The coarser resolution.
        before: Only buckets that have ended by then (epoch seconds); None: also one that is not over.
        known: Starts of coarser buckets that are there already, and are left out.
    """
    found: dict[int, Bucket] = {}
    for bucket in buckets:
        at = into.start_of(bucket.at)
        if at not in known and (before is None or at + into.seconds <= before):
            found[at] = found.get(at, Bucket(at)).plus(bucket.figures)
    return [found[at] for at in sorted(found)]


def pruned(buckets: Iterable[Bucket], resolution: Resolution, now: float) -> list[Bucket]:
    """Return the buckets that are kept at ``now`` (epoch seconds), oldest first; of two of the same time, the one given last.

    Buckets that have not begun yet are not kept: a clock was wrong then.

    Args:
        buckets: In any order.
        resolution: Of the buckets; it says for how long they are kept.
        now: Epoch seconds.
    """
    oldest = now - resolution.kept_seconds - resolution.seconds
    return latest_of_each_time(bucket for bucket in buckets if oldest <= bucket.at <= now + resolution.seconds)


def latest_of_each_time(buckets: Iterable[Bucket]) -> list[Bucket]:
    """Return them oldest first; of two of the same time, the one given last: it holds the other."""
    latest = {bucket.at: bucket for bucket in buckets}
    return [latest[at] for at in sorted(latest)]


def commonest(reasons: Mapping[str, int]) -> Mapping[str, int]:
    """Return the commonest reasons, and the others as one; of two that are as common, the same one each time."""
    if len(reasons) <= MOST_REASONS:
        return reasons
    ordered = sorted(reasons.items(), key=lambda one: (one[0] == OTHER_REASONS, -one[1], one[0]))
    kept = dict(ordered[: MOST_REASONS - 1])
    return {**kept, OTHER_REASONS: counted(sum(times for _, times in ordered[MOST_REASONS - 1 :]))}


def _merged(one: Mapping[str, T], other: Mapping[str, T], plus: Callable[[T, T], T]) -> Mapping[str, T]:
    if not other or not one:
        return one or other
    merged = dict(one)
    for key, value in other.items():
        merged[key] = plus(merged[key], value) if key in merged else value
    return merged


def _sum_of_counts(one: int, other: int) -> int:
    return counted(one + other)
