"""Lands the batches of a pipeline with state: rows of closed windows into every table, late records into quarantine.

A batch that has something to say is committed in every table, with or without rows, so that the tables are never more than one
batch apart. Its entry names where it ends and its watermark: a start repeats exactly this batch where it is missing.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

from pyspark.sql import DataFrame

from lakebound import faults
from lakebound.errors import WindowRowsError, WindowsMismatchError, WindowValueError
from lakebound.ledger.entry import Offsets, count, missing
from lakebound.ledger.far_ahead import FarAhead, FarAheadRanges, limit_ms, with_batch
from lakebound.ledger.marks import NextOffsets
from lakebound.ledger.windows import (
    Ends,
    OpenRanges,
    WindowCounts,
    WindowPosition,
    WindowStart,
    WindowState,
    is_same_batch,
    latest_of,
)
from lakebound_spark.batch.bad_reasons import reasons_of
from lakebound_spark.batch.event_times import AheadRule
from lakebound_spark.batch.lanes import PLAIN, ResultTooLargeError, collect
from lakebound_spark.batch.quarantine import quarantine_columns
from lakebound_spark.batch.raised import raised_on_values
from lakebound_spark.batch.record_format import named_parts, value_schema
from lakebound_spark.batch.records import Records
from lakebound_spark.batch.report import BatchReport
from lakebound_spark.batch.row_writer import Written, write_rows
from lakebound_spark.batch.targets import Counts, Origin, Target, Writer
from lakebound_spark.batch.window_records import WindowRecords, judge_records
from lakebound_spark.landing.assembly import Assembly
from lakebound_spark.landing.trimming import range_between

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class WindowBatch:
    """A batch as Spark runs it.

    Attributes:
        number: Spark's.
        rows: Those of the windows that it closes.
        records: Kafka's columns of its offsets; not looked at where it has none.
        ends: Offset after the last one, by partition.
        watermark_ms: With which it is run.
        planned_ms: When Spark has planned it.
        newest_ms: Returns the latest event time that Spark has seen in it, once its rows were evaluated; None without any.
    """

    number: int
    rows: DataFrame
    records: Records
    ends: Ends
    watermark_ms: int
    planned_ms: int
    newest_ms: Callable[[], int | None]


class WindowLander:
    """Lands the batches of one query. Used by one thread at a time; commits to different tables run side by side."""

    def __init__(
        self,
        assembly: Assembly,
        targets: Sequence[Target],
        quarantine: Target,
        writer: Writer,
        window_id: str,
        rows_id: str,
    ) -> None:
        """Land nothing yet.

        Args:
            assembly: Makes rows of the pipeline's records.
            targets: The tables.
            quarantine: The quarantine table.
            writer: What all commits have in common.
            window_id: Of the aggregation.
            rows_id: Of the rows that are made of it.
        """
        self._assembly = assembly
        self._spec = assembly.spec
        self._targets = list(targets)
        self._quarantine = quarantine
        self._writer = writer
        self.window_id = window_id
        self.rows_id = rows_id
        self._rows_since_ms: int | None = None
        self._pool = ThreadPoolExecutor(max_workers=len(targets), thread_name_prefix="commit")
        self._start: NextOffsets = {}
        self._repeated: WindowState | None = None
        self._serial = 0
        self._before = self._after = WindowPosition(ends={})
        self._ranges, self._known = OpenRanges(self._after), self._after
        self._in_doubt = False

    def begin(self, windows: WindowStart, start: NextOffsets) -> None:
        """Take over what the ledgers say, before a query.

        Args:
            windows: From where the query goes on.
            start: The lowest high-water marks of the tables.
        """
        self._start, self._repeated, self._serial = start, windows.repeated, windows.serial
        self._before = self._after = windows.position
        self._rows_since_ms = windows.rows_since_ms(self.rows_id)
        self._ranges, self._known = OpenRanges(windows.position), windows.known
        self._in_doubt = False

    @property
    def position(self) -> WindowPosition:
        """Where the stream stands after the newest batch."""
        return self._after

    def land(self, batch: WindowBatch, verify: Callable[[], None]) -> BatchReport:
        """Land a batch.

        Args:
            batch: As Spark runs it.
            verify: Called before anything is committed; raises when the source is not what it was.

        Raises:
            WindowRowsError: Its rows cannot land.
            WindowsMismatchError: It is a batch that was landed in part, and its records are not what they were.
            LakeboundError: What commits raise; a table has the batch, or has not.
        """
        report = BatchReport(batch.number)
        tag = f"{self._writer.epoch}-{batch.number}-{uuid.uuid4().hex[:8]}"
        written = self._written(batch, tag, report)
        read = self._judged(batch, report)
        faults.reach("after_data_files", "driver")
        after = self._position_after(batch, read)
        run = WindowState(id=self.window_id, serial=self._serial + 1, before=self._after, after=after)
        if self._repeated is not None and not is_same_batch(run, self._repeated):
            reason = f"batch {self._repeated.serial} was landed in part, and its records are not what they were"
            raise WindowsMismatchError(self._spec.pipeline, reason)
        with report.timed("verify"):
            verify()
        counts = _counts(read, written.rows)
        self._before, self._after = self._after, after
        if written.rows or self._repeated is not None or (read is not None and read.quarantine_rows):
            counts = counts if self._repeated is None else _counts_of(self._repeated, counts)
            state = self._next_state(counts)
            if read is not None and read.quarantine_rows:
                self._land_quarantine(batch, read, state, tag, report)
            self._commit(batch.number, state, written, counts, read, report)
        else:
            self._remember(counts)
        report.lane, report.written_by, report.counts = "driver", "driver", counts
        if read is not None and read.timestamps_ms is not None:
            report.oldest_record_ms, report.newest_record_ms = read.timestamps_ms
        return report

    def flush(self, older_than_seconds: float = 0.0) -> None:
        """Commit how far the stream has got, where nothing was landed since, so that a start reads less again.

        After a commit that failed nothing is: some tables lack the rows of that batch, and an entry behind it would say that
        they have them.
        """
        if self._in_doubt:
            return
        oldest = min((target.last_entry_at for target in self._targets), default=0.0)
        if not any(count(target.pending) for target in self._targets) or time.monotonic() - oldest < older_than_seconds:
            return
        self._commit(None, self._next_state(Counts()), Written({}, 0, 0), Counts(), None, BatchReport(0))

    def arrived(self, position: NextOffsets, wait_seconds: float) -> NextOffsets | None:
        """Return None: the driver reads nothing by itself."""
        return None

    def close(self) -> None:
        """Free the threads."""
        self._pool.shutdown()

    def _written(self, batch: WindowBatch, tag: str, report: BatchReport) -> Written:
        """Evaluate the batch's rows, all of them and once, into files of the tables that lack the batch."""
        how = self._assembly.how
        with report.timed("windows"):
            with self._within_the_driver("they"), self._naming_values(batch):
                rows = collect(batch.rows)
        if not how.check.holds(rows):
            raise WindowRowsError(self._spec.pipeline, "a value that no table can store, such as a date after the year 9999")
        with report.timed("driver_lane"):
            tables = [target.table for target in self._lacking(self._serial + 1)]
            return write_rows(rows, tables, tag, multiplies=False, left_out=how.left_out)

    def _judged(self, batch: WindowBatch, report: BatchReport) -> WindowRecords | None:
        if not self._has_records(batch):
            return None
        with report.timed("records"):
            planned = self._assembly.planned
            rule = AheadRule(batch.planned_ms, self._known.ends, self._known.far_ahead)
            with self._within_the_driver("what is known of each of its records"), self._naming_values(batch):
                return judge_records(
                    batch.records.frame, self._spec, self._assembly.decoder, planned.function, self._after.watermark_ms, rule
                )

    @contextmanager
    def _within_the_driver(self, what: str) -> Iterator[None]:
        """Turn more than the driver takes into a refusal: each start would find the same batch, unless batches are smaller."""
        try:
            yield
        except ResultTooLargeError:
            reason = (
                f"{what} take more than the 128 MiB that the driver takes of a batch; lower limits.max_records_per_batch. Rows "
                f"of one window land in one batch whatever its size: use smaller windows or fewer keys"
            )
            raise WindowRowsError(self._spec.pipeline, reason) from None

    @contextmanager
    def _naming_values(self, batch: WindowBatch) -> Iterator[None]:
        """Turn what the transform raises on a value into a refusal: each start would find the same record."""
        try:
            yield
        except Exception as exc:
            raised = raised_on_values(exc)
            if raised is None:
                raise
            read = ((p, self._after.ends.get(p, 0), end) for p, end in sorted(batch.ends.items()))
            told = ", ".join(f"{end - begin:,} of partition {p} from {begin}" for p, begin, end in read if end > begin)
            raise WindowValueError(self._spec.pipeline, raised.kind, told or "before: windows close with it") from exc

    def _has_records(self, batch: WindowBatch) -> bool:
        return any(end > self._after.ends.get(partition, 0) for partition, end in batch.ends.items())

    def _position_after(self, batch: WindowBatch, read: WindowRecords | None) -> WindowPosition:
        if read is not None:
            self._ranges.read(read.ranges)
        self._ranges.close(batch.watermark_ms)
        newest = latest_of((self._after.newest_ms, batch.newest_ms()))
        return self._ranges.position(dict(batch.ends), batch.watermark_ms, newest, self._far_ahead(batch, read))

    def _far_ahead(self, batch: WindowBatch, read: WindowRecords | None) -> FarAheadRanges:
        if self._repeated is not None:
            return self._repeated.after.far_ahead
        assert self._spec.state is not None
        begin, ahead_ms = self._after.ends, self._spec.state.max_ahead_ms
        limit = limit_ms(batch.planned_ms, ahead_ms)
        ranges = {
            partition: FarAhead(start=begin.get(partition, 0), end=end, limit_ms=limit, max_ahead_ms=ahead_ms)
            for partition, end in batch.ends.items()
            if end > begin.get(partition, 0)
        }
        return with_batch(self._after.far_ahead, ranges, frozenset() if read is None else read.far_ahead)

    def _next_state(self, counts: Counts) -> WindowState:
        """Return what the next commits say; until all of them have succeeded, the tables may be one batch apart."""
        self._in_doubt = True
        self._serial += 1
        own = counts.plus(self._targets[0].pending_counts)
        known = WindowCounts(read=own.read, filtered=own.filtered, landed=own.landed, quarantined=own.quarantined)
        return WindowState(
            id=self.window_id,
            serial=self._serial,
            before=self._before,
            after=self._after,
            counts=known,
            rows_id=self.rows_id,
            rows_since_ms=self._rows_since_ms,
        )

    def _lacking(self, serial: int) -> list[Target]:
        """Return the tables that do not have the batch yet."""
        return [target for target in self._targets if _serial_of(target) < serial]

    def _range(self, target: Target) -> Offsets:
        """Return what the newest batch adds to a table: everything read that it does not cover."""
        topic = self._spec.topics[0]
        ids = self._assembly.topic_ids
        return missing(range_between(self._start, {topic: self._after.ends}, ids), target.coverage)

    def _remember(self, counts: Counts) -> None:
        for target in (*self._targets, self._quarantine):
            own = counts if target is not self._quarantine else Counts()
            target.remember(self._range(target), own)

    def _land_quarantine(
        self, batch: WindowBatch, read: WindowRecords, state: WindowState, tag: str, report: BatchReport
    ) -> None:
        """Commit bad and late records before the tables commit their coverage of them, so that none can fall between."""
        if _serial_of(self._quarantine) >= state.serial:
            return
        with report.timed("quarantine"):
            decoder = self._assembly.decoder.refusing(read.refused) if read.refused.num_rows else self._assembly.decoder
            with self._within_the_driver("its late and bad records"):
                rows = collect(quarantine_columns(decoder.decode(batch.records.frame)))
            if rows.num_rows != read.quarantine_rows:
                reason = (
                    f"{read.quarantine_rows} records are bad or late, and {rows.num_rows} were found when they were read again"
                )
                raise WindowRowsError(self._spec.pipeline, reason)
            written = write_rows(rows, [self._quarantine.table], tag, multiplies=PLAIN.multiplies)
            own = Counts(read=read.quarantined, quarantined=read.quarantined, rows=rows.num_rows)
            origin = Origin(batch.number, windows=state)
            self._quarantine.commit(
                self._writer, self._range(self._quarantine), own, written.files[self._quarantine.id], origin
            )
            report.reasons += reasons_of(rows, value_schema(self._spec), named_parts(self._spec))

    def _commit(
        self,
        number: int | None,
        state: WindowState,
        written: Written,
        counts: Counts,
        read: WindowRecords | None,
        report: BatchReport,
    ) -> None:
        """Commit the batch in every table that lacks it, side by side."""
        lane: Literal["driver"] | None = "driver" if written.rows else None
        origin = Origin(number, lane, None if read is None else read.timestamps_ms, windows=state)

        def commit(target: Target) -> None:
            with report.timed(f"commit {target.id}"):
                files = list(written.files.get(target.id, ()))
                target.commit(self._writer, self._range(target), counts, files, origin)

        # All are joined before an error is raised: a commit that nobody waits for could land after the next start.
        futures = [self._pool.submit(commit, target) for target in self._lacking(state.serial)]
        errors = [error for future in futures if (error := future.exception()) is not None]
        if errors:
            raise errors[0]
        self._repeated, self._in_doubt = None, False


def _serial_of(target: Target) -> int:
    entry = target.view.entry
    return 0 if entry is None or entry.windows is None else entry.windows.serial


def _counts_of(repeated: WindowState, own: Counts) -> Counts:
    """Return what the commit of a batch says that others have landed: of batches before it, too."""
    known = repeated.counts
    return Counts(known.read, known.filtered, known.landed, known.quarantined, own.rows)


def _counts(read: WindowRecords | None, rows: int) -> Counts:
    """Return the counts of a batch: records of its offsets, and rows of the windows that it closes."""
    if read is None:
        return Counts(rows=rows)
    landed = read.read - read.filtered - read.quarantined
    return Counts(read=read.read, filtered=read.filtered, landed=landed, quarantined=read.quarantined, rows=rows)
