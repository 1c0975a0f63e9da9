"""Counts what an application does and has it written into the pipeline's rollups. Whatever happens here, the stream goes on.

A batch only adds to numbers in memory. The thread beside the stream writes when ten seconds are over; so an application that is
killed takes the figures of its last seconds along. The ledger of the tables is exact, these figures are for looking at.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Literal

from lakebound.control.bounds import seconds_summed
from lakebound.control.folder import ControlFolder
from lakebound.control.histogram import NO_DURATIONS, histogram_of
from lakebound.control.progress import Progress, TableProgress
from lakebound.control.rollup_book import RollupBook
from lakebound.control.rollups import TEN_SECONDS, Bucket, Figures, TableFigures, commonest
from lakebound.control.status import waiting_records
from lakebound.landing.recorder import Recorder

log = logging.getLogger(__name__)

Lane = Literal["direct", "driver", "cluster"]
"""The driver reads and writes it; Spark reads it and the driver writes it; Spark reads it and its executors write it."""

_MAX_UNWRITTEN = TEN_SECONDS.kept_seconds // TEN_SECONDS.seconds
"""Buckets that wait for a disk which takes nothing; then the oldest ones become one."""
_CLOCK_SECONDS = 60.0
"""While a clock is set back by less, the present bucket goes on."""


def figures_of_batch(
    *,
    read: int,
    filtered: int,
    quarantined: int,
    lane: Lane | None,
    seconds: float,
    durations_ms: Mapping[str, float],
    oldest_age_seconds: float | None,
    reasons: Mapping[str, int] | None = None,
) -> Figures:
    """Return what one batch adds; its commits and rows are those of the tables.

    Args:
        read: Records that were read, the next two among them.
        filtered: Records that gave no row.
        quarantined: Records that went to quarantine.
        lane: Who wrote its files; None when there was nothing to land, and then no duration counts.
        seconds: How long it took.
        durations_ms: Milliseconds by step.
        oldest_age_seconds: How old its oldest record was when it landed; None where that is not known.
        reasons: Why records went to quarantine, as far as that is known.
    """
    steps = {step: seconds_summed(milliseconds / 1000) for step, milliseconds in durations_ms.items()}
    return Figures(
        read=read,
        filtered=filtered,
        quarantined=quarantined,
        freshness=NO_DURATIONS if oldest_age_seconds is None else histogram_of(oldest_age_seconds, read),
        batches={} if lane is None else {lane: histogram_of(seconds)},
        steps={} if lane is None else {lane: steps},
        reasons=commonest(reasons or {}),
    )


class RollupRecorder(Recorder):
    """The figures of one application. ``add`` is for the stream's thread; ``tick``, ``end`` and ``close`` are for others."""

    def __init__(
        self, control: ControlFolder, clock: Callable[[], float] = time.time, cpu_clock: Callable[[], float] | None = None
    ) -> None:
        """Count nothing yet.

        Args:
            control: State folder of the pipeline.
            clock: Returns the time, in epoch seconds.
            cpu_clock: Returns the CPU seconds that the application has used so far; None where nobody counts them.
        """
        super().__init__("rollups")
        self._control = control
        self._clock = clock
        self._cpu_clock = cpu_clock
        self._cpu_seconds = 0.0
        self._cpu_counted_at = TEN_SECONDS.start_of(clock())
        self._counting = threading.Lock()
        self._open = Bucket(TEN_SECONDS.start_of(clock()))
        self._over: list[Bucket] = []
        self._seen: dict[str, TableFigures] = {}
        self._book: RollupBook | None = None

    def add(self, figures: Figures, tables: Mapping[str, TableProgress]) -> None:
        """Count a batch.

        Args:
            figures: What it adds (``figures_of_batch``).
            tables: All that this application has committed so far, by table id.
        """
        try:
            self._count(figures, tables)
        except Exception:
            log.exception("a batch is missing in the rollups")

    def tick(self, progress: Progress) -> None:
        """Note the lag, and write what is over; called about once a second by who has the lease."""
        self._guarded(lambda: self._write_what_is_over(progress, is_last=False))

    def end(self, progress: Progress) -> None:
        """Write everything, and nothing any more afterwards."""
        self._guarded(lambda: self._write_what_is_over(progress, is_last=True))
        self.close()

    def _write_what_is_over(self, progress: Progress, *, is_last: bool) -> None:
        lag_records = waiting_records(progress)
        self._count_cpu(is_last=is_last)
        self._count(Figures(lag_records=None if lag_records is None else max(0, lag_records)), progress.tables)
        with self._counting:
            if len(self._over) > _MAX_UNWRITTEN:
                self._over[:2] = [self._over[1].plus(self._over[0].figures)]
            over, latest = list(self._over), self._open
        written = [*over, latest] if is_last else over
        if not written:
            return
        if self._book is None:
            self._book = RollupBook(self._control, written[0].at)
        self._book.write(written, latest.at)
        with self._counting:
            del self._over[: len(over)]

    def _count_cpu(self, *, is_last: bool) -> None:
        """Give the bucket that has just ended its CPU seconds: to look takes milliseconds, so it is done once per bucket."""
        at = TEN_SECONDS.start_of(self._clock())
        if self._cpu_clock is None or (at == self._cpu_counted_at and not is_last):
            return
        self._cpu_counted_at, before = at, self._cpu_seconds
        self._cpu_seconds = max(before, self._cpu_clock())
        used = Figures(cpu_seconds=seconds_summed(self._cpu_seconds - before))
        with self._counting:
            if self._over and not is_last:
                self._over[-1] = self._over[-1].plus(used)
            else:
                self._open = self._open.plus(used)

    def _count(self, figures: Figures, tables: Mapping[str, TableProgress]) -> None:
        with self._counting:
            at = TEN_SECONDS.start_of(self._clock())
            if not self._open.at - _CLOCK_SECONDS < at <= self._open.at:
                self._over.append(self._open)
                self._open = Bucket(at)
            self._open = self._open.plus(replace(figures, tables=self._newly_committed(tables)))

    def _newly_committed(self, tables: Mapping[str, TableProgress]) -> dict[str, TableFigures]:
        """Return what was committed since the last look."""
        found = {}
        for table, progress in tables.items():
            so_far = TableFigures(progress.commits, progress.rows, progress.committed_at)
            before = self._seen.get(table, TableFigures())
            if so_far != before:
                found[table] = so_far.since(before)
                self._seen[table] = so_far
        return found
