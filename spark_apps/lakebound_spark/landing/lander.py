"""One micro-batch: trim, decode, transform, write files in a lane, commit with the ledger's entry."""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from lakebound import faults
from lakebound.formats.registered import new_schemas_in
from lakebound.landing.rollup_recorder import Lane
from lakebound.landing.sample_recorder import SampleRecorder
from lakebound.ledger.entry import Offsets, count
from lakebound.ledger.marks import NextOffsets
from lakebound.operations.release.reading import read_places
from lakebound.operations.replay.chunks import chunks
from lakebound.tables.places import Places
from lakebound.tables.table import DataFile
from lakebound.tables.target import LandingTarget
from lakebound_spark.batch.decode import Decoder, good_columns
from lakebound_spark.batch.direct import DirectLane
from lakebound_spark.batch.failing_records import MOST_HELD, RAISED, InPiecesError, Search, SearchEndedError
from lakebound_spark.batch.lane_choice import LaneChooser
from lakebound_spark.batch.lanes import (
    ResultTooLargeError,
    UnlandableRowsError,
    WrittenBy,
    collect,
    write_by_cluster,
    write_by_driver,
)
from lakebound_spark.batch.observation import Watched, watch
from lakebound_spark.batch.quarantine import collected_rows, quarantine_columns
from lakebound_spark.batch.quarantine_landing import BadRecords, QuarantineLander
from lakebound_spark.batch.quarantine_sampling import QuarantineSampling
from lakebound_spark.batch.raised import raised_on_values
from lakebound_spark.batch.record_format import named_parts, value_schema
from lakebound_spark.batch.records import Records, in_offsets
from lakebound_spark.batch.report import BatchReport
from lakebound_spark.batch.rescue import Rescuer, may_be_rescued
from lakebound_spark.batch.row_writer import RowWriter, Written
from lakebound_spark.batch.seen_records import Observed, all_of, observed_by, seen_columns
from lakebound_spark.batch.targets import Counts, Origin, Target, Writer
from lakebound_spark.batch.tombstones import Deletions, TombstonesMismatchError, skipped_columns, write_tombstones
from lakebound_spark.landing.assembly import Assembly
from lakebound_spark.landing.trimming import group_by_missing

log = logging.getLogger(__name__)

_BATCHES_UNTIL_GOOD = 100
"""Bad records are collected beside the rows until this many batches had none. Collecting takes a fifth of a small batch's time,
whether it has any or not; to read them by a second job takes as long as the batch."""


@dataclass(frozen=True)
class _Work:
    """What of a batch some of the tables lack.

    Attributes:
        records: Kafka's columns of these offsets.
        offsets: What the tables lack.
        targets: The tables.
        decoder: How the records are decoded.
    """

    records: Records
    offsets: Offsets
    targets: list[Target]
    decoder: Decoder


class BatchLander:
    """Lands the batches of one query. Used by one thread at a time; commits to different tables run side by side."""

    def __init__(
        self,
        assembly: Assembly,
        targets: Sequence[Target],
        quarantine: QuarantineLander,
        writer: Writer,
        direct: DirectLane | None = None,
    ) -> None:
        """Land nothing yet.

        Args:
            assembly: Makes rows of the pipeline's records.
            targets: Where they go.
            quarantine: Where bad records go.
            writer: What all commits have in common.
            direct: The lane in which the driver reads; None where Spark reads every batch.
        """
        planned, process = assembly.planned, assembly.planned.process
        self._decoder = assembly.decoder
        self._transform = planned.transform
        self._targets = list(targets)
        self._quarantine = quarantine
        self._writer = writer
        self._how = assembly.how
        self._direct = direct
        self._rescuer = Rescuer(planned.session, assembly.spec)
        self._raising = assembly.raising
        self._tombstones = assembly.tombstones
        self._has_transform = planned.has_transform
        self._lanes = LaneChooser(
            assembly.spec.driver_lane,
            process.cores,
            has_transform=planned.spark_makes_rows,
            on_cluster=process.is_on_cluster,
        )
        self._batches_since_bad = _BATCHES_UNTIL_GOOD
        self._pool = ThreadPoolExecutor(max_workers=len(targets), thread_name_prefix="commit")
        self._seen_columns = seen_columns()

    def land(
        self,
        records: Records,
        batch: int,
        wanted: Offsets,
        verify: Callable[[], None],
        goes_on: Callable[[], bool] = lambda: True,
    ) -> BatchReport:
        """Land the batch in every table that does not hold it yet.

        Args:
            records: Kafka's columns of the whole batch.
            batch: Spark's batch id.
            wanted: The offsets that are to be landed.
            verify: Called before anything is committed; raises when the source is not what it was.
            goes_on: Asked before each piece of a batch that lands in pieces, and before each trial of a search for records on
                which the transform raises; the rest is left out where it says no.

        Raises:
            NewSchemasError: Records name schemas that are to be asked for; nothing was landed.
            LakeboundError: What commits raise; nothing is half done: a table has the batch (or piece), or has not.
        """
        report = BatchReport(batch)
        in_a_row = self._raising.in_a_row if self._raising is not None else 0
        for offsets, targets in group_by_missing(self._targets, wanted):
            if self._raising is not None:
                self._raising.in_a_row = in_a_row  # The records of another group are the same ones.
                self._raising.goes_on = goes_on
            work = _Work(records.among(offsets), offsets, targets, self._decoder)
            try:
                self._land_in_one_or_pieces(work, report, verify, goes_on)
            except SearchEndedError:
                log.info("an end was asked for: the search is given up, and nothing of its records is committed")
                report.ended_early = True
                break
        return report

    def arrived(self, position: NextOffsets, wait_seconds: float) -> NextOffsets | None:
        """Return the next offsets after what the driver has of each partition, waiting for the first record of them.

        None where the driver does not read, or Kafka refuses it.

        Args:
            position: Next offset to read of every partition.
            wait_seconds: How long to wait where nothing has come.
        """
        if self._direct is None or not self._direct.is_open:
            return None
        return self._direct.arrived(position, wait_seconds)

    def leave_reading_to_spark(self) -> None:
        """Read no batch in the driver any more."""
        direct, self._direct = self._direct, None
        if direct is not None:
            direct.close()

    def flush(self, older_than_seconds: float = 0.0) -> None:
        """Commit what is pending in the tables."""
        for target in self._targets:
            target.flush(self._writer, older_than_seconds=older_than_seconds)

    def close(self) -> None:
        """Free the threads, disconnect, and delete what was kept."""
        self._pool.shutdown()
        if self._direct is not None:
            self._direct.close()
        self._rescuer.close()

    def _land_in_one_or_pieces(
        self, work: _Work, report: BatchReport, verify: Callable[[], None], goes_on: Callable[[], bool]
    ) -> None:
        try:
            self._land_readable(work, report, verify)
        except InPiecesError:
            self._land_in_pieces(work, report, verify, goes_on)

    def _land_in_pieces(
        self, work: _Work, report: BatchReport, verify: Callable[[], None], goes_on: Callable[[], bool]
    ) -> None:
        """Land a batch with records on which the transform raises: each piece is searched, and has commits of its own."""
        log.info(
            "the transform raises on records of a batch of %d, which lands in pieces of %d", count(work.offsets), MOST_HELD
        )
        work.records.frame.persist()
        try:
            for piece in chunks(work.offsets, MOST_HELD):
                if not goes_on():
                    report.ended_early = True
                    return
                self._land_readable(replace(work, records=work.records.among(piece), offsets=piece), report, verify)
        finally:
            work.records.frame.unpersist()

    def _land_readable(self, work: _Work, report: BatchReport, verify: Callable[[], None]) -> None:
        """Land records, and let the driver read those that Spark cannot."""
        try:
            self._land_group(work, report, verify)
        except (PySparkException, Py4JJavaError) as exc:
            if not may_be_rescued(exc):
                raise
            rescued = self._rescuer.read(work.offsets).where(in_offsets(work.offsets))
            records = Records(work.records.session, work.offsets, lambda: rescued)
            try:
                self._land_group(replace(work, records=records), report, verify)
            finally:
                self._rescuer.close()

    def _land_group(self, work: _Work, report: BatchReport, verify: Callable[[], None]) -> None:
        faults.reach("after_trim")
        tag = f"{self._writer.epoch}-{report.batch}-{uuid.uuid4().hex[:8]}"
        began, raised_before = time.perf_counter(), report.reasons[RAISED]
        work, (written, observed, lane) = self._write_what_lands(work, tag, report)
        deleting: Mapping[str, list[DataFile]] = {}
        deletions = self._deletions(work, observed, report)
        if deletions is not None:
            bad = deletions.bad.num_rows
            observed = replace(observed, bad=observed.bad + bad, skipped=observed.skipped - bad)
            tables = [target.table for target in work.targets]
            deleting = write_tombstones(deletions.rows, tables, f"{tag}-d")
        written_by: WrittenBy = "cluster" if lane == "cluster" else "driver"
        faults.reach("after_data_files", written_by)
        if "isolate" not in report.durations_ms:
            self._lanes.learn(lane, observed.read, observed.value_bytes, written.rows, time.perf_counter() - began)
        self._batches_since_bad = 0 if observed.bad else self._batches_since_bad + 1
        with report.timed("verify"):
            verify()
        self._land_quarantine(work, tag, written_by, report, observed, None if deletions is None else deletions.bad)
        counts = Counts(
            read=observed.read,
            filtered=observed.read - observed.bad - written.records,
            landed=written.records,
            quarantined=observed.bad,
            rows=written.rows,
        )
        files = {target.id: [*written.files.get(target.id, ()), *deleting.get(target.id, ())] for target in work.targets}
        self._commit(work, counts, replace(written, files=files), written_by, observed, report)
        if self._raising is not None:
            taken = observed.read - observed.bad - observed.skipped
            self._raising.landed(taken, report.reasons[RAISED] - raised_before)
        report.lane, report.written_by = lane, written_by
        report.counts = report.counts.plus(counts)
        if observed.timestamps_ms:
            oldest, newest = observed.timestamps_ms
            report.newest_record_ms = max(report.newest_record_ms or 0, newest)
            report.oldest_record_ms = min(report.oldest_record_ms or oldest, oldest)

    def _write_what_lands(self, work: _Work, tag: str, report: BatchReport) -> tuple[_Work, tuple[Written, Observed, Lane]]:
        """Write a batch. Where some of its records cannot land, they are found out, and the others are written again.

        Both is rare, so it is done by jobs of its own; the decoder then refuses what was found.
        """
        tried: set[str] = set()
        while True:
            try:
                return work, self._write(work, "-".join([tag, *sorted(tried)]), report)
            except UnlandableRowsError:
                if "l" in tried:
                    raise
                tried.add("l")
                found = self._unlandable(work)
            except (PySparkException, Py4JJavaError) as exc:
                if (new := new_schemas_in(str(exc))) is not None:
                    raise new from exc
                if "t" in tried or self._raising is None or raised_on_values(exc) is None:
                    raise
                tried.add("t")
                with report.timed("isolate"):
                    found = self._raising_records(work, self._raising.search(count(work.offsets)))
                if not found.num_rows:
                    raise
            work = replace(work, decoder=work.decoder.refusing(found))

    def _raising_records(self, work: _Work, search: Search) -> pa.Table:
        """Return topic, partition, offset and problem of the records on which the transform raises."""
        search.check_size()
        found, waiting = [], [work.offsets]
        while waiting:
            piece = waiting.pop()
            try:
                rows = collect(good_columns(work.decoder.decode(work.records.among(piece).frame)))
            except ResultTooLargeError:
                if count(piece) == 1:
                    raise
                waiting += [*chunks(piece, count(piece) // 2)][::-1]
                continue
            found.append(search.among(work.records.session, rows))
        search.end()
        return pa.concat_tables(found)

    def _unlandable(self, work: _Work) -> pa.Table:
        """Return topic, partition, offset and problem of the records whose rows cannot land."""
        return self._how.check.places(self._transform(good_columns(work.decoder.decode(work.records.frame))))

    def _write(self, work: _Work, tag: str, report: BatchReport) -> tuple[Written, Observed, Lane]:
        size, tables = count(work.offsets), [target.table for target in work.targets]
        may_be_direct = self._direct is not None and self._direct.is_open and work.decoder is self._decoder
        lane = self._lanes.choose(size, may_be_direct=may_be_direct)
        if lane == "direct":
            written = self._write_directly(work, tables, tag, report)
            if written is not None:
                return written
            lane = self._lanes.choose(size)
        if lane == "driver":
            try:
                with report.timed("driver_lane"):
                    collected = [collected_rows().alias("bad_rows")] if self._batches_since_bad < _BATCHES_UNTIL_GOOD else []
                    output, records = self._observed_output(work, tag, *collected)
                    rows = write_by_driver(output, tables, tag, self._how)
                    return rows, observed_by(records.seen(self._is_whole(size))), lane
            except ResultTooLargeError:
                tag = f"{tag}-c"
        with report.timed("cluster_lane"):
            output, records = self._observed_output(work, tag)
            rows = write_by_cluster(output, tables, tag, self._how)
            return rows, observed_by(records.seen(self._is_whole(size))), "cluster"

    def _write_directly(
        self, work: _Work, tables: list[LandingTarget], tag: str, report: BatchReport
    ) -> tuple[Written, Observed, Lane] | None:
        """Write a batch that the driver reads and decodes; None where it turns out that Spark has to."""
        assert self._direct is not None
        how = self._how
        with RowWriter(tables, tag, how.left_out, self._pool, multiplies=how.multiplies, hour_column=how.hour_column) as writer:
            observed = self._direct.write(work.offsets, work.records.session, writer, report.timed)
            if observed is None:
                return None
            with report.timed("direct_write"):
                return writer.close(), observed, "direct"

    def _is_whole(self, size: int) -> Callable[[Mapping[str, Any]], bool]:
        """Only a transform can keep Spark from taking every record; without one, no second job is spent on gaps of Kafka's."""
        return all_of(size if self._has_transform else 0)

    def _observed_output(self, work: _Work, tag: str, *further: Column) -> tuple[DataFrame, Watched]:
        records = watch(work.decoder.decode(work.records.frame), f"records-{tag}", *self._seen_columns, *further)
        # The star puts a view that a transform has made of the records into the action's plan (``observation``).
        return self._transform(good_columns(records.rows)).select("*"), records

    def _deletions(self, work: _Work, observed: Observed, report: BatchReport) -> Deletions | None:
        """Return what becomes of the tombstones of a batch; None where it has none, or where they are skipped."""
        if self._tombstones is None or not observed.skipped:
            return None
        with report.timed("tombstones"):
            found = observed.skipped_rows
            if found is None:
                found = collect(skipped_columns(work.decoder.decode(work.records.frame)))
            if found.num_rows != observed.skipped:
                raise TombstonesMismatchError(observed.skipped, found.num_rows)
            return self._tombstones.judged(found)

    def _land_quarantine(
        self,
        work: _Work,
        tag: str,
        written_by: WrittenBy,
        report: BatchReport,
        observed: Observed,
        tombstones: pa.Table | None,
    ) -> None:
        """Commit the bad records before the tables commit their coverage of them, so that none can fall between.

        Args:
            work: The records.
            tag: Of the batch.
            written_by: Who wrote its rows.
            report: Of the batch.
            observed: Counts the tombstones that go to quarantine as bad ones.
            tombstones: These, as rows of the quarantine table; None where none was looked at.
        """
        if not observed.bad:
            self._quarantine.pass_over(work.offsets)
            return
        with report.timed("quarantine"):
            rows: pa.Table | DataFrame
            if tombstones is not None and tombstones.num_rows == observed.bad:
                rows = tombstones
            elif observed.bad_rows is not None:
                rows = observed.bad_rows if tombstones is None else pa.concat_tables([observed.bad_rows, tombstones])
            else:
                suspects = work.records.frame
                if observed.bad_offsets is not None:
                    suspects = suspects.where(F.col("offset").between(*observed.bad_offsets))
                rows = quarantine_columns(work.decoder.decode(suspects))
                if tombstones is not None and tombstones.num_rows:
                    rows = rows.union(work.records.session.createDataFrame(tombstones))
            report.reasons += self._quarantine.land(work.offsets, BadRecords(rows, observed.bad, tag, written_by, report.batch))

    def _commit(
        self, work: _Work, counts: Counts, written: Written, written_by: WrittenBy, observed: Observed, report: BatchReport
    ) -> None:
        for target in work.targets:
            if not written.files[target.id]:
                target.remember(work.offsets, counts)
        targets = [target for target in work.targets if written.files[target.id]]
        if not targets:
            return

        hour_column = self._how.hour_column
        hours = None if hour_column is None or not written.rows else hour_column.told(written.hours)
        origin = Origin(report.batch, written_by, observed.timestamps_ms, hours)

        def commit(target: Target) -> None:
            with report.timed(f"commit {target.id}"):
                target.commit(self._writer, work.offsets, counts, written.files[target.id], origin)

        # Both are joined before an error is raised: a commit that nobody waits for could land after the next start.
        futures = [self._pool.submit(commit, target) for target in targets]
        errors = [error for future in futures if (error := future.exception()) is not None]
        if errors:
            raise errors[0]


def make_lander(
    assembly: Assembly,
    targets: Sequence[Target],
    quarantine: Target,
    writer: Writer,
    places: Places,
    *,
    direct: DirectLane | None = None,
    samples: SampleRecorder | None = None,
) -> BatchLander:
    """Return what lands a pipeline's batches in its targets, and their bad records in its quarantine.

    Args:
        assembly: Makes rows of its records.
        targets: Where they go.
        quarantine: The quarantine table.
        writer: What all commits have in common.
        places: Where the tables are.
        direct: The lane in which the driver reads; None where Spark reads every batch.
        samples: Keeps bad records, where the pipeline asks for that; None where nobody looks at them.
    """
    spec, schema = assembly.spec, value_schema(assembly.spec)
    kept = spec.quarantine_samples if samples is not None else 0
    parts = named_parts(spec)
    sampling = QuarantineSampling(samples, kept, schema, parts) if samples is not None and kept else None
    own_places = partial(read_places, spec.quarantine_table, places)
    bad = QuarantineLander(quarantine, writer, own_places, schema, sampling, parts)
    return BatchLander(assembly, targets, bad, writer, direct)
