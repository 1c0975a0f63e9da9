"""Why records went to quarantine, how the tables' files are, and how expectations came out: from small files of the state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from lakebound.control.folder import ControlFolder
from lakebound.control.progress import RecentRecords, readable_progress
from lakebound.control.rollup_files import read_buckets
from lakebound.control.rollups import HOUR, NO_FIGURES, Bucket, Figures
from lakebound.first_line import first_line
from lakebound.inspection.validation.history import read_newest
from lakebound.inspection.validation.verdict import ExpectationResult, ValidatedRange
from lakebound.operations.maintenance.health_history import HealthReading, Trend, read_health_history, trend

T = TypeVar("T")

DAY_SECONDS = 86_400.0


@dataclass(frozen=True)
class ReasonRow:
    """How many records went to quarantine for a reason: of the last minutes, and of about a day.

    Attributes:
        reason: A word, and the schema's column where one is known; None for those whose reason was not counted.
    """

    reason: str | None
    recent: int
    day: int


@dataclass(frozen=True)
class LastResult:
    """How an expectation last came out, and in which range of a table's commits."""

    one: ValidatedRange
    result: ExpectationResult


@dataclass(frozen=True)
class Quality:
    """What the page shows.

    Attributes:
        recent: The records of the last minutes; None where no application tells.
        since: From when the day's figures are, in epoch seconds.
        day: These.
        readings: The newest of each table, with what changed in a day where an earlier one is known.
        results: The last of each expectation; those that failed first.
        problems: What could not be read.
    """

    recent: RecentRecords | None
    since: int
    day: Figures
    readings: tuple[tuple[HealthReading, Trend | None], ...]
    results: tuple[LastResult, ...]
    problems: tuple[str, ...] = ()


def read_quality(control: ControlFolder, now: float) -> Quality:
    """Return what the state knows; a file that cannot be read hides nothing but itself.

    Args:
        control: State folder of the pipeline.
        now: Epoch seconds.
    """
    problems = list[str]()

    def tried(read: Callable[[], list[T]]) -> list[T]:
        try:
            return read()
        except (OSError, ValueError) as exc:
            problems.append(f"not all of the state can be read: {first_line(exc)}")
            return []

    since, progress = HOUR.start_of(now - DAY_SECONDS), readable_progress(control)
    return Quality(
        recent=None if progress is None else progress.recent,
        since=since,
        day=_summed(tried(lambda: read_buckets(control, HOUR, since))),
        readings=newest_readings(tried(lambda: read_health_history(control))),
        results=last_results(tried(lambda: read_newest(control))),
        problems=tuple(problems),
    )


def reason_rows(recent: RecentRecords | None, day: Figures) -> list[ReasonRow]:
    """Return a row per reason, the commonest of the day first. Pure.

    Args:
        recent: The last minutes.
        day: The sums of about a day.
    """
    late = Counter(recent.reasons if recent is not None else {})
    long = Counter(day.reasons)
    rows = [ReasonRow(reason, late[reason], long[reason]) for reason in sorted({*late, *long})]
    # An older application counted records, and not their reasons.
    others = (max(0, (recent.quarantined if recent else 0) - late.total()), max(0, day.quarantined - long.total()))
    found = [*rows, ReasonRow(None, *others)] if any(others) else rows
    return sorted(found, key=lambda row: (-row.day, -row.recent))


def newest_readings(readings: Sequence[HealthReading]) -> tuple[tuple[HealthReading, Trend | None], ...]:
    """Return the newest reading of each table, the worst score first, and its change of a day. Pure."""
    newest = {one.table: one for one in readings}
    ordered = sorted(newest.values(), key=lambda one: (one.score, one.table))
    return tuple((one, trend(readings, one)) for one in ordered)


def last_results(ranges: Iterable[ValidatedRange]) -> tuple[LastResult, ...]:
    """Return how each expectation last came out, those that failed first. Pure.

    Args:
        ranges: Of the record, oldest first.
    """
    found = {(one.table, result.label): LastResult(one, result) for one in ranges for result in one.results}
    return tuple(found[key] for key in sorted(found, key=lambda key: (found[key].result.passed, *key)))


def _summed(buckets: Iterable[Bucket]) -> Figures:
    total = NO_FIGURES
    for bucket in buckets:
        total = total.plus(bucket.figures)
    return total
