"""What a batch did, as all hear of it who follow a stream: the board, the figures over time, and the newest batches."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from lakebound.control.quarantine_rate import stop_error, window_seconds
from lakebound.control.recent_ledger import LandedBatch
from lakebound.control.rollups import MOST_REASONS
from lakebound.control.windows_in_use import WindowsProgress
from lakebound.errors import LakeboundError
from lakebound.landing.landed_freshness import LandedFreshness
from lakebound.landing.ledger_recorder import LedgerRecorder
from lakebound.landing.recent_window import RecentWindow
from lakebound.landing.rollup_recorder import RollupRecorder, figures_of_batch
from lakebound.ledger.entry import Offsets
from lakebound.ledger.marks import NextOffsets
from lakebound.redaction import redacted
from lakebound.spec.pipeline import PipelineSpec
from lakebound_spark.batch.report import BatchReport
from lakebound_spark.batch.targets import Target
from lakebound_spark.stream.reporting import TargetsReport
from lakebound_spark.stream.signs import ProgressBoard

BATCHES = "batches"
"""Name of the query in batches among those of an application."""
_SCHEMAS = "schemas of records"
"""By which the board tells what is missing of them from failures of a query."""


@dataclass(frozen=True)
class BatchListeners:
    """Who hears of an application's batches.

    Attributes:
        board: Has the progress.
        report: Has what the targets hold, and puts it on the board.
        rollups: Figures over time.
        ledger: The newest batches.
    """

    board: ProgressBoard
    report: TargetsReport
    rollups: RollupRecorder
    ledger: LedgerRecorder


class LandedBatches:
    """Tells of the batches of one query."""

    def __init__(self, spec: PipelineSpec, targets: Sequence[Target], listeners: BatchListeners) -> None:
        """Tell nothing yet.

        Args:
            spec: The pipeline.
            targets: Where its batches land.
            listeners: Who hears of them.
        """
        self._spec = spec
        self._targets = targets
        self._board, self._report = listeners.board, listeners.report
        self._rollups, self._ledger = listeners.rollups, listeners.ledger
        self._freshness = LandedFreshness()
        self._missing_schemas: Exception | None = None
        self._recent = RecentWindow(window_seconds(spec.objectives))

    def hold(self) -> None:
        """Note what all targets hold before a query."""
        self._ledger.hold(self._coverages())

    def begin(self, start: NextOffsets) -> None:
        """Tell that a query runs, and from where it reads."""
        self._board.wait_no_more("running")
        self._report.begin(BATCHES, start)

    def show_recent(self) -> None:
        """Tell what of the last minutes went to quarantine."""
        self._board.change(recent=self._recent.counted(time.time()))

    def show_missing_schemas(self, error: Exception | None) -> None:
        """Tell that partitions wait for schemas that a registry was asked for in vain; None: none does."""
        if error is self._missing_schemas:
            return
        self._missing_schemas = error
        if error is None:
            self._board.recover(_SCHEMAS)
        else:
            self._board.fail(_SCHEMAS, error, redacted(error))

    def show_targets(self) -> None:
        """Tell what the targets hold."""
        self._report.put(BATCHES, self._targets)

    def show_windows(self, windows: WindowsProgress) -> None:
        """Tell how much state there is."""
        self._board.change(windows=windows)

    def flood(self) -> LakeboundError | None:
        """Return the error with which the application ends where more is quarantined than the pipeline's author allows."""
        return stop_error(self._spec, self._board.latest.recent)

    def add(self, report: BatchReport, read: Offsets, seconds: float) -> None:
        """Tell what a batch did.

        Args:
            report: Of the batch.
            read: Its offsets; none where it was ended early.
            seconds: How long it took.
        """
        latest, coverages = self._board.latest, self._coverages()
        self._board.recover(BATCHES)
        self._board.change(
            batch=report.batch,
            lane=report.written_by,
            records=latest.records + report.counts.read,
            filtered=latest.filtered + report.counts.filtered,
            quarantined=latest.quarantined + report.counts.quarantined,
            durations_ms=report.durations_ms,
        )
        self._report.put(BATCHES, self._targets, report.newest_record_ms)
        now = time.time()
        self._recent.add(now, report.counts.read, report.counts.quarantined, report.reasons)
        self._count(report, seconds, now)
        if read:
            self._note(report, read, coverages, seconds, now)
        self._board.change(recent=self._recent.counted(now), freshness_p99_seconds=self._freshness.p99_seconds(now))

    def _count(self, report: BatchReport, seconds: float, now: float) -> None:
        """Add a batch to the figures over time."""
        age_seconds = None
        if report.oldest_record_ms is not None:
            self._freshness.add(now, report.oldest_record_ms, report.counts.read)
            age_seconds = now - report.oldest_record_ms / 1000
        figures = figures_of_batch(
            read=report.counts.read,
            filtered=report.counts.filtered,
            quarantined=report.counts.quarantined,
            lane=report.lane,
            seconds=seconds,
            durations_ms=report.durations_ms,
            oldest_age_seconds=age_seconds,
            reasons=report.reasons,
        )
        self._rollups.add(figures, self._board.latest.tables)

    def _note(self, report: BatchReport, read: Offsets, coverages: list[Offsets], seconds: float, now: float) -> None:
        """Keep a batch among the newest ones."""
        landed = LandedBatch(
            at=now,
            epoch=self._board.latest.epoch,
            batch=report.batch,
            ranges={},
            partitions=0,
            read=report.counts.read,
            filtered=report.counts.filtered,
            quarantined=report.counts.quarantined,
            reasons=dict(report.reasons.most_common(MOST_REASONS)),
            lane=report.lane,
            seconds=seconds,
        )
        tables = self._board.latest.tables
        self._ledger.add(landed, read, coverages, {one.id: tables[one.id] for one in self._targets if one.id in tables})

    def _coverages(self) -> list[Offsets]:
        return [target.coverage for target in self._targets]
