"""Rows in real time: they go on as they come, and the ledger is told at each epoch's end what was sent.

The ledger is the checkpoint here, too: a start begins where the newest entry ends, in a fresh checkpoint folder of Spark's. The
entry comes after the rows, so what was sent since the newest one is sent again.

Before long epochs come some short ones, in a query of their own (``real_time/warm_up.py``).
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from lakebound import faults
from lakebound.control.private_files import make_private_folder
from lakebound.control.quarantine_rate import stop_error, window_seconds
from lakebound.landing.kafka import KafkaFacts
from lakebound.landing.recent_window import RecentWindow
from lakebound.landing.rollup_recorder import RollupRecorder, figures_of_batch
from lakebound.landing.run_spec import RunSpec
from lakebound.landing.to_topics.target import TopicTarget, check_target_ids
from lakebound.ledger.entry import Offsets, TopicOffsets, check_topic_ids, missing
from lakebound.ledger.marks import NextOffsets
from lakebound_spark.batch.session_settings import SETTINGS_LOCK
from lakebound_spark.batch.targets import Origin, Target
from lakebound_spark.landing.trimming import range_between
from lakebound_spark.real_time.epochs import Epoch, epoch_of
from lakebound_spark.real_time.warm_up import LEAST_EPOCH, Stretch, stretches
from lakebound_spark.stream.epoch_end import ended_epochs, stop_after_epoch
from lakebound_spark.stream.real_time_opening import Opened
from lakebound_spark.stream.reporting import TargetsReport
from lakebound_spark.stream.signs import ProgressBoard
from lakebound_spark.stream.source import connection_options
from lakebound_spark.stream.stop_signal import StopSignal

log = logging.getLogger(__name__)

IN_REAL_TIME = "real time"
"""Name of this query among those of an application."""
_POLL_SECONDS = 0.2
_KEEP_CHEAP_SECONDS = 15.0
_LARGEST_BYTES = 32 * 1024 * 1024
"""As much as the client buffers by default."""
REASON = "bad_record"
"""Spark counts bad records; their reasons stand in the headers of the quarantine topic."""


class RealTimeStream:
    """Runs until a query fails, or until an epoch ends after the stop signal was set."""

    def __init__(
        self,
        run: RunSpec,
        session: SparkSession,
        opened: Opened,
        facts: KafkaFacts,
        board: ProgressBoard,
        report: TargetsReport,
        stop: StopSignal,
        recorder: RollupRecorder | None,
    ) -> None:
        """Start nothing yet.

        Args:
            run: The orders.
            session: Spark's.
            opened: Targets, and the plan of the query.
            facts: Kafka's.
            board: For progress.
            report: For what is landed.
            stop: Is set when the application is to end.
            recorder: Of figures; None where a query in batches reads the same records, and counts them.
        """
        self._run = run
        self._session = session
        self._opened = opened
        self._targets = opened.targets
        self._topic_ids = opened.topic_ids
        self._facts = facts
        self._board = board
        self._landed = report
        self._stop = stop
        self._recorder = recorder
        self._is_warm = False
        self._position: NextOffsets = {}
        self._next_epoch = 0
        self._recent = RecentWindow(window_seconds(run.spec.objectives))
        self.landed_batches = 0
        """Epochs of the wanted length. Short ones always end: they do not tell that the stream gets on."""

    def run(self, start: NextOffsets, checkpoint: Path) -> None:
        """Run the queries in fresh checkpoint folders; return when the last one ended gracefully.

        Args:
            start: Next offset to read, of every partition that there is.
            checkpoint: Folder for Spark's files, which nothing is read from later.

        Raises:
            Exception: What Spark says ended a query, or what noting an epoch raised.
        """
        self._position = start
        make_private_folder(checkpoint)
        self._landed.begin(IN_REAL_TIME, start)
        for number, stretch in enumerate(stretches(self._run.spec.real_time.epoch_seconds)):
            if not number or not self._stop.is_set():
                self._run_stretch(stretch, checkpoint / str(number))

    def _run_stretch(self, stretch: Stretch, checkpoint: Path) -> None:
        self._next_epoch, self._is_warm = 0, stretch.epochs is None
        query = self._started(self._opened.rows_from(self._position), stretch, checkpoint)
        self._board.wait_no_more("running")
        try:
            self._watch(query, stretch)
        finally:
            query.stop()

    def _started(self, rows: DataFrame, stretch: Stretch, checkpoint: Path) -> StreamingQuery:
        writer = rows.writeStream.format("kafka").outputMode("update").queryName(f"{self._run.spec.pipeline} in {IN_REAL_TIME}")
        writer = writer.option("checkpointLocation", f"file://{checkpoint}").options(**self._sink_options())
        with SETTINGS_LOCK:
            self._session.conf.set(LEAST_EPOCH, stretch.epoch_ms)
        jvm: Any = self._session._jvm
        # PySpark has this trigger from 4.2 on.
        trigger = jvm.org.apache.spark.sql.streaming.Trigger.RealTime(stretch.epoch_ms)
        writer._jwrite = writer._jwrite.trigger(trigger)
        return writer.start()

    def _sink_options(self) -> dict[str, str]:
        return {
            **connection_options(self._run.spec.connection),
            "kafka.linger.ms": "0",
            "kafka.compression.type": "lz4",
            # Of rows it is known that their topic takes them; of a bad record Kafka must say so.
            "kafka.max.request.size": str(_LARGEST_BYTES),
        }

    def _watch(self, query: StreamingQuery, stretch: Stretch) -> None:
        next_care = time.monotonic() + _KEEP_CHEAP_SECONDS
        while not stretch.is_over(self._next_epoch) and not self._stop.wait(_POLL_SECONDS):
            self._note_ended(query)
            self._raise_end(query)
            if self._recorder is not None:
                self._board.change(recent=self._recent.counted(time.time()))
            if time.monotonic() > next_care:
                for target in self._targets:
                    target.table.keep_cheap()
                next_care = time.monotonic() + _KEEP_CHEAP_SECONDS
        request = self._stop.request
        if request is None or request.verdict != "superseded":
            self._end_epoch(query)
        if request is None and (failure := query.exception()) is not None:
            raise failure

    def _end_epoch(self, query: StreamingQuery) -> None:
        """Stop the query at the end of the epoch, and note what was sent."""
        limit = self._run.spec.limits.stop_timeout_seconds
        if not stop_after_epoch(query, limit) and query.exception() is None:
            log.warning("stopped within an epoch, after %.0f s (limits.stop_timeout_seconds): its rows are sent again", limit)
        self._note_ended(query)

    def _note_ended(self, query: StreamingQuery) -> None:
        """Commit an entry for each epoch that has ended."""
        if ended_epochs(query) <= self._next_epoch:
            return
        for progress in query._jsq.recentProgress():
            if progress.batchId() >= self._next_epoch:
                epoch = epoch_of(progress.json())
                self._note(epoch)
                self._next_epoch = epoch.number + 1

    def _note(self, epoch: Epoch) -> None:
        sent = range_between(self._position, epoch.end, self._topic_ids)
        if sent:
            self._check_topics()
            faults.reach("epoch_sent")
            for target in self._targets:
                self._commit(target, missing(sent, target.coverage), epoch)
            faults.reach("epoch_noted")
        self._position = {topic: {**self._position.get(topic, {}), **ends} for topic, ends in epoch.end.items()}
        self.landed_batches += self._is_warm
        self._report(epoch)

    def _commit(self, target: Target, lacking: Offsets, epoch: Epoch) -> None:
        """Commit the entry of an epoch for what the target did not have; another one may be behind it."""
        if lacking:
            counts, times = epoch.counts_of_targets.get(target.id, epoch.counts), epoch.timestamps_ms
            target.commit(self._opened.writer, lacking, counts, [], Origin(epoch.number, "cluster", times))

    def _check_topics(self) -> None:
        written = {one.table.spec.topic: one.table.topic_id for one in self._targets if isinstance(one.table, TopicTarget)}
        found = self._facts.topic_ids((*self._topic_ids, *written))
        held = {topic: TopicOffsets(topic_id=known, partitions={}) for topic, known in self._topic_ids.items()}
        check_topic_ids(held, found)
        check_target_ids(written, found)

    def _report(self, epoch: Epoch) -> None:
        self._board.recover(IN_REAL_TIME)
        self._landed.put(IN_REAL_TIME, self._targets, epoch.timestamps_ms[1] if epoch.timestamps_ms else None)
        if self._recorder is not None:
            self._count(epoch, self._recorder)

    def _count(self, epoch: Epoch, recorder: RollupRecorder) -> None:
        """Count an epoch as others count a batch, and ask for the end where too much of it is bad."""
        latest, counts, now = self._board.latest, epoch.counts, time.time()
        reasons = Counter({REASON: counts.quarantined} if counts.quarantined else {})
        self._recent.add(now, counts.read, counts.quarantined, reasons)
        self._board.change(
            batch=epoch.number,
            lane="cluster",
            records=latest.records + counts.read,
            filtered=latest.filtered + counts.filtered,
            quarantined=latest.quarantined + counts.quarantined,
            durations_ms={"epoch": epoch.seconds * 1000},
            recent=self._recent.counted(now),
        )
        figures = figures_of_batch(
            read=counts.read,
            filtered=counts.filtered,
            quarantined=counts.quarantined,
            lane="cluster" if counts.rows else None,
            seconds=epoch.seconds,
            durations_ms={"epoch": epoch.seconds * 1000},
            oldest_age_seconds=None,  # of the whole epoch, which is not how old a row is when it is sent
            reasons=reasons,
        )
        recorder.add(figures, self._board.latest.tables)
        error = stop_error(self._run.spec, self._board.latest.recent)
        if error is not None:
            self._stop.refuse(error)

    def _raise_end(self, query: StreamingQuery) -> None:
        if query.isActive:
            return
        failure = query.exception()
        if failure is not None:
            raise failure
        raise RuntimeError("Spark has ended the query, and does not say why")
