"""Reads what charts are made of: rollups, readings of tables' health, and what happened. Small files only."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from lakebound.control.folder import ControlFolder, files_in, modified_at, read_json
from lakebound.control.incidents import newest_incidents
from lakebound.control.progress import Outcome, readable_progress
from lakebound.control.rollup_files import read_buckets
from lakebound.control.rollups import Bucket, rolled_up
from lakebound.first_line import first_line
from lakebound.operations.maintenance.health_history import HealthReading, read_health_history
from lakebound.operations.maintenance.run_times import read_run_times
from lakebound_airflow.page.charts.model import Mark
from lakebound_airflow.page.charts.periods import Period

T = TypeVar("T")

MOST_MARKS = 200
"""Files of one kind that are read: the newest ones."""
MOST_RUNS = 2000
"""Of maintenance: one each half hour for 30 days is fewer."""


@dataclass(frozen=True)
class History:
    """What is known of a period.

    Attributes:
        buckets: One per point at most, oldest first.
        readings: Of the tables' health, oldest first; also those before the period.
        marks: What happened, oldest first.
        problems: What could not be read.
    """

    buckets: list[Bucket]
    readings: list[HealthReading]
    marks: list[Mark]
    problems: tuple[str, ...] = ()


def read_history(control: ControlFolder, period: Period, now: float) -> History:
    """Return what the state knows of a period; a file that cannot be read hides nothing but itself.

    Args:
        control: State folder of the pipeline.
        period: It ends now.
        now: Epoch seconds.
    """
    since, problems = period.times(now)[0], list[str]()

    def tried(read: Callable[[], list[T]]) -> list[T]:
        try:
            return read()
        except (OSError, ValueError) as exc:
            problems.append(f"not all of the history can be read: {first_line(exc)}")
            return []

    buckets = tried(lambda: rolled_up(read_buckets(control, period.source, since), period.step))
    marks = [
        *tried(lambda: _incidents(control)),
        *tried(lambda: _maintenance(control, since)),
        *tried(lambda: list(_applications(control, since))),
    ]
    shown = sorted((mark for mark in marks if since <= (mark.until or mark.at) and mark.at <= now), key=lambda mark: mark.at)
    return History(buckets, tried(lambda: read_health_history(control)), shown, tuple(problems))


def _incidents(control: ControlFolder) -> list[Mark]:
    found, _ = newest_incidents(control, MOST_MARKS)
    return [Mark("incident", one.at, f"{one.kind.replace('_', ' ')}: {one.what}") for one in found]


def _maintenance(control: ControlFolder, since: float) -> list[Mark]:
    runs = read_run_times(control, since, MOST_RUNS)
    return [
        Mark("maintenance", one.started_at, f"maintenance: {one.steps} steps done, {one.failed} failed", one.ended_at)
        for one in runs
    ]


def _applications(control: ControlFolder, since: float) -> Iterator[Mark]:
    """Yield the starts and ends of applications: those with an outcome, and the present one."""
    progress = readable_progress(control)
    starts = {} if progress is None else {progress.app_id: progress.started_at}
    files = [(modified_at(file), file) for file in files_in(control.outcomes, "*.json")]
    for _, file in sorted((one for one in files if one[0] >= since), key=lambda one: one[0], reverse=True)[:MOST_MARKS]:
        outcome = Outcome.model_validate(read_json(file))
        starts[outcome.app_id] = outcome.started_at
        yield Mark("end", outcome.ended_at, f"{outcome.app_id} ended: {outcome.verdict}")
    for app_id, at in starts.items():
        yield Mark("start", at, f"{app_id} started")
