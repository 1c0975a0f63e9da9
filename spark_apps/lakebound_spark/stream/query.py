"""One streaming query, from a fresh checkpoint at exact offsets to its end."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from lakebound import faults
from lakebound.control.private_files import make_private_folder
from lakebound.formats.registered import NewSchemasError
from lakebound.landing.kafka import KafkaFacts
from lakebound.landing.rollup_recorder import Lane
from lakebound.landing.run_spec import RunSpec
from lakebound.landing.to_topics.target import TopicTarget, check_target_ids
from lakebound.ledger.entry import TopicOffsets, check_topic_ids
from lakebound.ledger.marks import NextOffsets, highest, lowest
from lakebound.ledger.start import bound_range, bound_reached
from lakebound.spec.pipeline import parse_freshness
from lakebound_spark.batch.records import Records
from lakebound_spark.landing.lander import BatchLander
from lakebound_spark.landing.trimming import range_between
from lakebound_spark.reference.book import ReferenceBook
from lakebound_spark.stream.batches_opening import OpenedBatches
from lakebound_spark.stream.garbage import collect_garbage_seldom
from lakebound_spark.stream.landed_batches import LandedBatches
from lakebound_spark.stream.planned import PROGRESS_IN_MEMORY, planned_ends
from lakebound_spark.stream.rounds import Rounds
from lakebound_spark.stream.source import read_offsets, read_stream
from lakebound_spark.stream.stop_signal import StopSignal
from lakebound_spark.stream.tracing import Tracer
from lakebound_spark.stream.unknown_schemas import first_unknown

log = logging.getLogger(__name__)

_POLL_SECONDS = 0.2
QUERY_SECONDS = 60.0
"""Spark may run the first batch before it has returned the query that it started."""
_KEEP_CHEAP_SECONDS = 15.0


class LandingStream:
    """Runs one query until it ends, fails, or the stop signal is set."""

    def __init__(
        self,
        run: RunSpec,
        session: SparkSession,
        opened: OpenedBatches,
        facts: KafkaFacts,
        told: LandedBatches,
        stop: StopSignal,
        until: NextOffsets | None,
        references: ReferenceBook,
    ) -> None:
        """Start nothing yet.

        Args:
            run: The orders.
            session: Spark's.
            opened: What lands, and where.
            facts: Kafka's.
            told: Hears of each batch.
            stop: Is set when the application is to end.
            until: Where a bounded run ends; None without a bound.
            references: Turned to newer versions between two batches.
        """
        self._run = run
        self._session = session
        self._opened = opened
        self._targets = opened.targets
        self._topic_ids = opened.assembly.topic_ids
        self._facts = facts
        self._told = told
        self._stop = stop
        self._until = until
        self._references = references
        self._tracer = Tracer(run.control.trace(run.app_id)) if run.trace else None
        self._batch_lock = threading.Lock()
        self._verifier = ThreadPoolExecutor(max_workers=1, thread_name_prefix="verify")
        self._error: Exception | None = None
        self._query: Future[StreamingQuery] = Future()
        self._position: NextOffsets = {}
        self._planned: NextOffsets = {}
        self._held: NextOffsets = {}
        self._lane: Lane | None = None
        self._ending = threading.Event()
        self.landed_batches = 0
        collect_garbage_seldom()

    def run(self, start: NextOffsets, checkpoint: Path) -> None:
        """Run the query in a fresh checkpoint folder; return when it ended gracefully.

        Raises:
            Exception: What a batch raised, or what Spark says ended the query.
        """
        self._begin(start)
        self._rounds = Rounds(self._run, self._lander)
        make_private_folder(checkpoint.parent)
        writer = read_stream(self._session, self._run.spec, start).writeStream.foreachBatch(
            partial(self._on_batch, self._ending)
        )
        writer = self._named(writer, checkpoint)
        if parse_freshness(self._run.freshness) is not None:
            writer = writer.options(**PROGRESS_IN_MEMORY)
        self._run_query(writer)

    @property
    def _lander(self) -> BatchLander:
        lander = self._opened.lander
        assert isinstance(lander, BatchLander)
        return lander

    def _begin(self, start: NextOffsets) -> None:
        """Forget the query before."""
        self._query, self._error, self._lane, self._ending = Future(), None, None, threading.Event()
        self._position = self._planned = start
        self._held = {}
        self._told.hold()

    def _named(self, writer: DataStreamWriter, checkpoint: Path) -> DataStreamWriter:
        """Return the writer with the pipeline's name, and the query's folder."""
        return writer.option("checkpointLocation", f"file://{checkpoint}").queryName(self._run.spec.pipeline)

    def _run_query(self, writer: DataStreamWriter) -> None:
        """Start the query as often as the freshness says, and return when it ended gracefully."""
        interval_seconds = parse_freshness(self._run.freshness)
        if interval_seconds is None:
            writer = writer.trigger(availableNow=True)
        else:
            writer = writer.trigger(processingTime=f"{round(interval_seconds * 1000)} milliseconds")
        query = writer.start()
        self._query.set_result(query)
        self._told.begin(self._position)
        try:
            self._watch(query)
        except NewSchemasError as new:
            if new.ids:  # Without any, the query ended for versions that are known by now.
                self._opened.opening.schemas.want(new.part, new.ids)
            raise
        finally:
            self._end(query)

    def _watch(self, query: StreamingQuery) -> None:
        next_care = time.monotonic() + _KEEP_CHEAP_SECONDS
        schemas = self._opened.opening.schemas
        while not self._stop.wait(_POLL_SECONDS):
            if not query.isActive:
                self._raise_end(query)
                return
            if schemas.has_newer or (self._held and schemas.away is None):
                raise NewSchemasError("value", ())
            self._told.show_missing_schemas(schemas.away if self._held else None)
            with self._batch_lock:
                self._flush_when_idle()
                self._told.show_recent()
            if time.monotonic() > next_care:
                self._keep_cheap()
                next_care = time.monotonic() + _KEEP_CHEAP_SECONDS

    def _flush_when_idle(self) -> None:
        try:
            self._opened.lander.flush(self._run.spec.limits.idle_entry_seconds)
        except Exception:
            # A batch may wait for the lock: it must not land behind a commit that failed.
            self._ending.set()
            raise

    def _end(self, query: StreamingQuery) -> None:
        """Let the batch in flight end, land what is pending, then stop Spark's query."""
        self._ending.set()
        with self._batch_lock:
            if self._may_commit(query):
                self._opened.lander.flush()
                self._told.show_targets()
        query.stop()

    def _may_commit(self, query: StreamingQuery) -> bool:
        """Whether the query ends well: it was asked to end, or nothing is left to read, and nobody else has taken over."""
        request = self._stop.request
        if request is None and (query.isActive or query.exception() is not None):
            return False
        return self._error is None and (request is None or request.verdict != "superseded")

    def _raise_end(self, query: StreamingQuery) -> None:
        if self._error is not None:
            raise self._error
        failure = query.exception()
        if failure is not None:
            raise failure

    def _on_batch(self, ending: threading.Event, records: DataFrame, batch: int) -> None:
        """Land a batch, and what comes meanwhile.

        Args:
            ending: Of the query that the batch is of.
            records: What Spark has planned.
            batch: Spark's id of it.
        """
        session = records.sparkSession
        with self._landing(ending) as may_land:
            if not may_land:
                return
            faults.reach("batch_begins")
            ends = planned_ends(self._query.result(QUERY_SECONDS), batch)
            # Spark does not know what landed without its planning.
            held, self._planned = range_between(self._planned, ends, self._topic_ids), ends
            self._land(Records(session, held, lambda: records), ends, batch)
        for arrived in self._rounds.after(ends, lambda: self._position, lambda: self._may_go_on(ending)):
            with self._landing(ending) as may_land:
                if not may_land:
                    return
                faults.reach("round_begins")
                read = range_between(self._position, arrived, self._topic_ids)
                records_of_it = Records(session, read, partial(read_offsets, session, self._run.spec, read))
                self._land(records_of_it, arrived, batch)
        if faults.wanted("between_batches"):
            _reach_after(self._query.result(), batch)

    def _may_go_on(self, ending: threading.Event) -> bool:
        return self._lane == "direct" and not self._is_over(ending)

    def _is_over(self, ending: threading.Event) -> bool:
        return self._stop.is_set() or ending.is_set()

    @contextmanager
    def _landing(self, ending: threading.Event) -> Iterator[bool]:
        """Let nobody else land meanwhile; yield whether anything may land, and note why it fails.

        Spark may start one more batch while the application ends. Nothing is landed then, and Spark's own record of that batch
        does not matter: the next start reads the ledger, not the checkpoint.
        """
        with self._batch_lock:
            try:
                yield not self._is_over(ending)
            except Exception as exc:
                self._error = exc
                self._told.show_targets()  # One table may have the batch.
                raise

    def _land(self, records: Records, ends: NextOffsets, batch: int) -> None:
        """Land what lies between the position and the ends, within the bound.

        Args:
            records: Have at least these.
            ends: Next offset to read afterwards, per topic and partition.
            batch: Spark's id of it.
        """
        wanted = bound_range(range_between(self._position, ends, self._topic_ids), self._until)
        wanted = bound_range(wanted, self._held or None)
        if self._references.has_newer:
            # What is pending was read with the version before: its entry says so.
            self._opened.lander.flush()
            self._references.turn()
        asked = [self._ask_topic_ids()]
        held = {topic: TopicOffsets(topic_id=known, partitions={}) for topic, known in self._topic_ids.items()}
        began = time.perf_counter()

        def verify() -> None:
            # Asked while the files are written; a batch in pieces takes long enough to be asked again.
            found = (asked.pop() if asked else self._ask_topic_ids()).result()
            check_topic_ids(held, found)
            check_target_ids(self._written_ids(), found)

        try:
            report = self._lander.land(records.among(wanted), batch, wanted, verify, self._goes_on)
        except NewSchemasError as new:
            if not self._holds(new, records.among(wanted)):
                raise
            self._land(records, ends, batch)
            return
        if report.ended_early:
            self._told.add(report, {}, time.perf_counter() - began)
            return
        self._position = highest([self._position, ends])
        if self._held:
            self._position = lowest([self._position, self._held])
        self._lane = report.lane or self._lane
        self.landed_batches += 1
        self._told.add(report, wanted, time.perf_counter() - began)
        if self._tracer is not None:
            self._tracer.add(report, self._query.result())
        faults.reach("batch_ends")
        self._end_in_a_flood()
        if self._until is not None and bound_reached(self._position, self._until):
            self._stop.set("completed", "the bound is reached")

    def _holds(self, new: NewSchemasError, records: Records) -> bool:
        """While the registry is away, read no further in a partition than to the first record of a schema that is wanted.

        Args:
            new: What the records name.
            records: Among which they are.
        """
        schemas = self._opened.opening.schemas
        if schemas.away is None:
            return False
        found = first_unknown(records.frame, self._opened.known_schemas())
        if not found:
            return False
        schemas.want(new.part, new.ids)
        # The driver's consumer would keep all that comes of a partition that is not read on.
        self._lander.leave_reading_to_spark()
        self._held = lowest([self._held, found])
        log.warning("partitions are read up to the first record of a schema that the registry is asked for: %s", self._held)
        return True

    def _ask_topic_ids(self) -> Future[dict[str, str]]:
        return self._verifier.submit(self._facts.topic_ids, (*self._run.spec.topics, *self._written_ids()))

    def _written_ids(self) -> dict[str, str | None]:
        """Return the ids of the target topics, by their names, as their ledgers have them."""
        return {one.table.spec.topic: one.table.topic_id for one in self._targets if isinstance(one.table, TopicTarget)}

    def _goes_on(self) -> bool:
        """Show how far a batch in pieces is, and say whether its rest is wanted: the next start reads the ledger."""
        self._told.show_targets()
        return not self._stop.is_set()

    def _end_in_a_flood(self) -> None:
        """Ask for the end where more is quarantined than the pipeline's author allows. The batch has landed by then."""
        error = self._told.flood()
        if error is not None:
            self._stop.refuse(error)

    def _keep_cheap(self) -> None:
        for target in self._targets:
            try:
                target.table.keep_cheap()
            except Exception as exc:
                log.warning("%s: maintenance of the log failed and is tried again: %s", target.id, exc)


def _reach_after(query: StreamingQuery, batch: int) -> None:
    """A fault point that only Spark passes: after the end of this batch, about when the next is planned."""

    def wait() -> None:
        while (progress := query.lastProgress) is None or progress["batchId"] < batch:
            pass
        faults.reach("between_batches")

    threading.Thread(target=wait, daemon=True).start()
