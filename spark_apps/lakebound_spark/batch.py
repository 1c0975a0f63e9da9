"""One micro-batch: trim, decode, transform, write files in a lane, commit with the ledger's entry."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F

from lakebound import faults
from lakebound.ledger import Offsets, TopicOffsets, add, count, intervals_of, missing
from lakebound.offsets import Intervals
from lakebound.spec import PipelineSpec
from lakebound.tables import Table
from lakebound_spark.batch_report import BatchReport
from lakebound_spark.decode import Decoder, good_columns
from lakebound_spark.direct import DirectLane
from lakebound_spark.lane_choice import Way, WayChooser
from lakebound_spark.lanes import Lane, ResultTooLargeError, write_by_cluster, write_by_driver, write_in_lane
from lakebound_spark.observed import Observed, observed_by, seen_columns
from lakebound_spark.quarantine import collected_rows, quarantine_columns, rows_of
from lakebound_spark.row_writer import LeftOut, RowWriter, Written, write_rows
from lakebound_spark.targets import Counts, Target, Writer
from lakebound_spark.transform import Transform

_BATCHES_UNTIL_GOOD = 100
"""Bad records are collected beside the rows until so many batches had none. Collecting takes a fifth of a small batch's time,
whether it has any or not; to read them by a second job takes as long as the batch."""


class BatchLander:
    """Lands the batches of one query. Used by one thread at a time; commits to different tables run side by side."""

    def __init__(
        self,
        spec: PipelineSpec,
        decoder: Decoder,
        transform: Transform,
        targets: Sequence[Target],
        quarantine: Target,
        writer: Writer,
        *,
        multiplies: bool,
        left_out: LeftOut,
        direct: DirectLane | None = None,
        cores: int = 2,
    ) -> None:
        self._decoder = decoder
        self._transform = transform
        self._targets = list(targets)
        self._quarantine = quarantine
        self._writer = writer
        self._multiplies = multiplies
        self._left_out = left_out
        self._direct = direct
        self._ways = WayChooser(spec.driver_lane, cores)
        self._batches_since_bad = _BATCHES_UNTIL_GOOD
        self._pool = ThreadPoolExecutor(max_workers=len(targets), thread_name_prefix="commit")
        self._seen_columns = seen_columns()

    def land(self, records: DataFrame, batch: int, wanted: Offsets, verify: Callable[[], None]) -> BatchReport:
        """Land the batch in every table that does not hold it yet.

        Args:
            records: Kafka's columns of the whole batch.
            batch: Spark's batch id.
            wanted: The offsets that are to be landed.
            verify: Called before anything is committed; raises when the source is not what it was.

        Raises:
            LakeboundError: What commits raise; nothing is half done: a table has the batch, or has not.
        """
        report = BatchReport(batch)
        for offsets, targets in group_by_missing(self._targets, wanted):
            self._land_group(records, offsets, targets, report, verify, whole=offsets == wanted)
        return report

    def flush(self, older_than_seconds: float = 0.0) -> None:
        """Commit what is pending in the tables."""
        for target in self._targets:
            target.flush(self._writer, older_than_seconds=older_than_seconds)

    def close(self) -> None:
        """Free the threads, and disconnect."""
        self._pool.shutdown()
        if self._direct is not None:
            self._direct.close()

    def _land_group(
        self,
        records: DataFrame,
        offsets: Offsets,
        targets: list[Target],
        report: BatchReport,
        verify: Callable[[], None],
        *,
        whole: bool,
    ) -> None:
        faults.reach("after_trim")
        source = records if whole else records.where(in_offsets(offsets))
        tag = f"{self._writer.epoch}-{report.batch}-{uuid.uuid4().hex[:8]}"
        tables = [target.table for target in targets]
        began = time.perf_counter()
        written, observed, way = self._write(source, offsets, tables, tag, report)
        lane: Lane = "cluster" if way == "cluster" else "driver"
        faults.reach("after_data_files", lane)
        self._ways.learn(way, observed.read, observed.value_bytes, written.rows, time.perf_counter() - began)
        self._batches_since_bad = 0 if observed.bad else self._batches_since_bad + 1
        with report.timed("verify"):
            verify()
        if observed.bad:
            with report.timed("quarantine"):
                self._land_quarantine(records, offsets, tag, lane, report, observed)
        else:
            self._quarantine.remember(missing(offsets, self._quarantine.coverage), Counts())
        counts = Counts(
            read=observed.read,
            filtered=observed.read - observed.bad - written.records,
            landed=written.records,
            quarantined=observed.bad,
            rows=written.rows,
        )
        self._commit(targets, offsets, counts, written, lane, observed, report)
        report.lane = lane
        report.counts = report.counts.plus(counts)
        if observed.timestamps_ms:
            oldest, newest = observed.timestamps_ms
            report.newest_record_ms = max(report.newest_record_ms or 0, newest)
            report.oldest_record_ms = min(report.oldest_record_ms or oldest, oldest)

    def _write(
        self, source: DataFrame, offsets: Offsets, tables: list[Table], tag: str, report: BatchReport
    ) -> tuple[Written, Observed, Way]:
        size = count(offsets)
        way = self._ways.choose(size, may_be_direct=self._direct is not None and self._direct.is_open)
        if way == "direct":
            written = self._write_directly(offsets, tables, tag, report)
            if written is not None:
                return written
            way = self._ways.choose(size)
        if way == "collected":
            try:
                with report.timed("driver_lane"):
                    collected = [collected_rows().alias("bad_rows")] if self._batches_since_bad < _BATCHES_UNTIL_GOOD else []
                    output, observation = self._observed_output(source, tag, *collected)
                    rows = write_by_driver(output, tables, tag, multiplies=self._multiplies, left_out=self._left_out)
                    return rows, observed_by(observation), way
            except ResultTooLargeError:
                tag = f"{tag}-c"
        with report.timed("cluster_lane"):
            output, observation = self._observed_output(source, tag)
            rows = write_by_cluster(output, tables, tag, multiplies=self._multiplies, left_out=self._left_out)
            return rows, observed_by(observation), "cluster"

    def _write_directly(
        self, offsets: Offsets, tables: list[Table], tag: str, report: BatchReport
    ) -> tuple[Written, Observed, Way] | None:
        """Write a batch without a Spark job; None where it turns out to need one."""
        assert self._direct is not None
        with RowWriter(tables, tag, self._left_out, self._pool) as writer:
            observed = self._direct.write(offsets, writer, report.timed)
            if observed is None:
                return None
            with report.timed("direct_write"):
                return writer.close(), observed, "direct"

    def _observed_output(self, source: DataFrame, tag: str, *further: Column) -> tuple[DataFrame, Observation]:
        observation = Observation(f"records-{tag}")
        decoded = self._decoder.decode(source).observe(observation, *self._seen_columns, *further)
        return self._transform(good_columns(decoded)), observation

    def _land_quarantine(
        self, records: DataFrame, offsets: Offsets, tag: str, lane: Lane, report: BatchReport, observed: Observed
    ) -> None:
        """Commit the bad records before the tables commit their coverage of them, so that none can fall between."""
        rest = missing(offsets, self._quarantine.coverage)
        if not rest:
            return
        table = self._quarantine.table
        if observed.bad_rows is not None and rest == offsets:
            written = write_rows(rows_of(observed.bad_rows), [table], f"{tag}-q", multiplies=False)
        else:
            suspects = records.where(in_offsets(rest))
            if observed.bad_offsets is not None:
                suspects = suspects.where(F.col("offset").between(*observed.bad_offsets))
            bad = quarantine_columns(self._decoder.decode(suspects))
            written = write_in_lane(bad, table, f"{tag}-q", lane)
        counts = Counts(read=written.rows, quarantined=written.rows, rows=written.rows)
        self._quarantine.commit(self._writer, rest, counts, written.files.get(table.spec.id, []), batch=report.batch)

    def _commit(
        self,
        targets: list[Target],
        offsets: Offsets,
        counts: Counts,
        written: Written,
        lane: Lane,
        observed: Observed,
        report: BatchReport,
    ) -> None:
        if not written.rows:
            for target in targets:
                target.remember(offsets, counts)
            return

        def commit(target: Target) -> None:
            with report.timed(f"commit {target.id}"):
                target.commit(
                    self._writer,
                    offsets,
                    counts,
                    written.files[target.id],
                    batch=report.batch,
                    lane=lane,
                    timestamps_ms=observed.timestamps_ms,
                )

        # Both are joined before an error is raised: a commit that nobody waits for could land after the next start.
        futures = [self._pool.submit(commit, target) for target in targets]
        errors = [error for future in futures if (error := future.exception()) is not None]
        if errors:
            raise errors[0]


def group_by_missing(targets: Sequence[Target], wanted: Offsets) -> list[tuple[Offsets, list[Target]]]:
    """Return the tables grouped by what of ``wanted`` they lack; those that lack nothing are left out."""
    groups: list[tuple[Offsets, list[Target]]] = []
    for target in targets:
        lacking = missing(wanted, target.coverage)
        if not lacking:
            continue
        for offsets, members in groups:
            if offsets == lacking:
                members.append(target)
                break
        else:
            groups.append((lacking, [target]))
    return groups


def in_offsets(offsets: Mapping[str, TopicOffsets]) -> Column:
    """Return the condition that a record's offset is among ``offsets``."""
    pieces = [
        (F.col("topic") == topic) & (F.col("partition") == partition) & (F.col("offset") >= start) & (F.col("offset") < end)
        for topic, partition, intervals in intervals_of(dict(offsets))
        for start, end in intervals
    ]
    return reduce(or_, pieces)


def range_between(
    start: Mapping[str, Mapping[int, int]], end: Mapping[str, Mapping[int, int]], topic_ids: Mapping[str, str]
) -> Offsets:
    """Return the offsets that a batch reads; a partition without a start is new and begins at 0, as Spark reads it."""
    result: Offsets = {}
    for topic, ends in end.items():
        starts = start.get(topic, {})
        intervals: dict[int, Intervals] = {
            p: ((starts.get(p, 0), stop),) for p, stop in sorted(ends.items()) if stop > starts.get(p, 0)
        }
        if intervals:
            result = add(result, {topic: TopicOffsets(topic_id=topic_ids[topic], partitions=intervals)})
    return result
