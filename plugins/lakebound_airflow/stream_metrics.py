"""Tells Airflow's own metrics (OpenTelemetry or StatsD, where an installation has them on) how a stream does.

The trigger that watches an application tells them: gauges as the application last wrote them, and counters of what came since
the look before. A trigger that moves begins anew, so counters may miss some; Prometheus' page (`metrics_app`) misses none.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator

from airflow.observability import stats

from lakebound.control.folder import ControlFolder
from lakebound.control.progress import Progress, readable_progress
from lakebound.control.status import waiting_records

log = logging.getLogger(__name__)

PREFIX = "lakebound."
"""Airflow puts a prefix of its own before it."""
TELL_SECONDS = 10.0

Values = Iterator[tuple[str, float]]


class StreamMetrics:
    """What is told of one application. Nothing here can end a watch."""

    def __init__(self, control: ControlFolder, app_id: str) -> None:
        """Tell nothing yet.

        Args:
            control: State folder of the pipeline.
            app_id: The application; what another one did is not told.
        """
        self._control = control
        self._app_id = app_id
        self._before: Progress | None = None
        self._told_at = 0.0

    def tell(self, now: float) -> None:
        """Tell what is known, every ten seconds.

        Args:
            now: Epoch seconds.
        """
        if abs(now - self._told_at) < TELL_SECONDS:
            return
        self._told_at = now
        try:
            self._tell(now)
        except Exception as exc:
            log.warning("metrics of %s could not be told: %s", self._app_id, type(exc).__name__)

    def _tell(self, now: float) -> None:
        progress, tags = readable_progress(self._control), {"pipeline": self._control.pipeline}
        if progress is None or progress.app_id != self._app_id:
            return
        for name, value in gauges_of(progress, now):
            stats.gauge(f"{PREFIX}{name}", value, tags=tags)
        if self._before is not None:
            for name, count in counts_of(self._before, progress):
                stats.incr(f"{PREFIX}{name}", int(count), tags=tags)
        self._before = progress


def gauges_of(progress: Progress, now: float) -> Values:
    """Yield names and values of what is known now; what is not known is left out. Pure.

    Args:
        progress: The application's.
        now: Epoch seconds.
    """
    waiting = waiting_records(progress)
    if waiting is not None:
        yield "lag_records", float(waiting)
    if progress.freshness_p99_seconds is not None:
        yield "freshness_p99_seconds", progress.freshness_p99_seconds
    if progress.last_commit_at is not None:
        yield "last_commit_age_seconds", round(max(0.0, now - progress.last_commit_at), 3)


def counts_of(before: Progress, progress: Progress) -> Values:
    """Yield names and what came between two looks at one application, where something did. Pure.

    Args:
        before: The look before.
        progress: The present one.
    """
    rows = [sum(table.rows for table in one.tables.values()) for one in (before, progress)]
    for name, came in (
        ("records_read", progress.records - before.records),
        ("records_quarantined", progress.quarantined - before.quarantined),
        ("rows_landed", rows[1] - rows[0]),
    ):
        if came > 0:
            yield name, came
