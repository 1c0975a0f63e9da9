"""One application's life: lease, tables, stream, and the record of its outcome."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial

from pyspark.sql import SparkSession

from lakebound.control.crash_loop import count_last_end, read_crash_loop, write_crash_loop
from lakebound.control.desired import keep_desired, read_desired
from lakebound.control.disks import scratch_folder
from lakebound.control.incidents import record_incident, record_refusal
from lakebound.control.last_end import LastEnd, read_last_end
from lakebound.control.lease import Lease, release
from lakebound.control.progress import Outcome, write_outcome
from lakebound.control.situations import crash_looping
from lakebound.control.start_incident import start_incident
from lakebound.errors import CrashLoopError, LakeboundError, LeaseHeldError, LeaseLostError
from lakebound.landing.complete_hours_watch import CompleteHoursKeeper, CompleteHoursWatch
from lakebound.landing.cpu_seconds import CpuClock
from lakebound.landing.kafka import KafkaFacts
from lakebound.landing.ledger_recorder import LedgerRecorder
from lakebound.landing.read_schemas import open_schemas
from lakebound.landing.rollup_recorder import RollupRecorder
from lakebound.landing.run_spec import RunSpec
from lakebound.landing.sample_recorder import SampleRecorder
from lakebound.landing.spark_command import is_local
from lakebound.landing.topic_check import check_landed_topics
from lakebound.ledger.marks import NextOffsets
from lakebound.ledger.start import plan_start
from lakebound.ledger.topics import TopicFacts
from lakebound.spec.real_time import REAL_TIME, has_both_ends
from lakebound.spec.state import check_stateless
from lakebound.tables.full_disk import full_disk_error
from lakebound.tables.landed import newest_landed_epoch
from lakebound.tables.outages import is_outage
from lakebound.tables.table import open_table
from lakebound_spark.batch.record_format import columns_of_ddl
from lakebound_spark.batch.targets import Target
from lakebound_spark.jvm import ParentWatch, SparkDiedError, obey_signals
from lakebound_spark.reference.book import ReferenceBook, open_book
from lakebound_spark.reference.refresh import ReferenceWatch
from lakebound_spark.session import SessionStart
from lakebound_spark.stream.batches_opening import OpenedBatches, Opening, open_in_batches
from lakebound_spark.stream.ending import change_desired_at_end, is_refusal, verdict_on, write_down
from lakebound_spark.stream.kafka_wait import KafkaWait
from lakebound_spark.stream.landed_batches import BATCHES, BatchListeners, LandedBatches
from lakebound_spark.stream.lineage_choice import chosen_lineage
from lakebound_spark.stream.opening import take_lease
from lakebound_spark.stream.other_epochs import newest_landed_other_epoch
from lakebound_spark.stream.query import LandingStream
from lakebound_spark.stream.real_time_opening import Opened, open_in_real_time, plan_in_real_time
from lakebound_spark.stream.real_time_query import IN_REAL_TIME, RealTimeStream
from lakebound_spark.stream.repeated_query import QueriesTogether, RepeatedQuery, Stream
from lakebound_spark.stream.reporting import TargetsReport
from lakebound_spark.stream.schema_watch import SchemaWatch
from lakebound_spark.stream.signs import LagWatch, ProgressBoard, SignsOfLife, lease_guard
from lakebound_spark.stream.stop_signal import StopRequest, StopSignal
from lakebound_spark.stream.window_query import WindowStream

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Parts:
    """What a running application is made of: a stream in batches, one in real time, or both."""

    quarantine: Target
    references: ReferenceBook
    batches: OpenedBatches | None
    real_time: Opened | None

    @property
    def targets(self) -> list[Target]:
        """All that rows go to."""
        of_batches = self.batches.targets if self.batches is not None else []
        return [*of_batches, *(self.real_time.targets if self.real_time is not None else [])]


class Application:
    """Runs a pipeline until it is asked to end, has nothing more to read, or must give up."""

    def __init__(self, run: RunSpec, session: SessionStart, stop: StopSignal) -> None:
        self._run = run
        self._session = session
        self._stop = stop
        self._jvm = ParentWatch()
        self._started_at = time.time()
        self._board = ProgressBoard(run, epoch=0)
        self._recorder = RollupRecorder(run.control, cpu_clock=CpuClock())
        self._ledger = LedgerRecorder(run.control)
        self._samples = SampleRecorder(run.control, run.spec.quarantine_samples)
        self._targets: list[Target] = []
        self._stuck: str | None = None
        self._last: LastEnd | None = None
        self._lineage = chosen_lineage(run)

    @cached_property
    def _facts(self) -> KafkaFacts:
        """Made when it is first asked, so that a secret which is missing is written down as what refused this start."""
        return KafkaFacts(self._run.spec.connection)

    def run(self) -> Outcome:
        """Run to the end and return how it ended; the outcome is also written to the pipeline's folder."""
        lease: Lease | None = None
        signs: SignsOfLife | None = None
        error: BaseException | None = None
        try:
            last = read_last_end(self._run.control)
            lease = take_lease(self._run)
            self._samples.guard(lease_guard(self._run.control, lease))
            keep_desired(self._run.control)
            self._bound_starts(last)
            self._board.change(epoch=lease.epoch)
            log.info("pipeline %s: lease taken, epoch %d", self._run.spec.pipeline, lease.epoch)
            signs = SignsOfLife(self._run, lease, self._board, self._stop, self._recorder, self._ledger, self._samples)
            signs.start()
            self._land(lease)
        except Exception as exc:
            log.exception("pipeline %s %s", self._run.spec.pipeline, "is refused" if is_refusal(exc) else "ended")
            error = self._told(exc)
        if error is None and self._stop.request is not None:
            error = self._stop.request.error
        outcome = self._outcome(error)
        if self._lineage is not None:
            self._lineage.end(outcome)
        self._board.change(state="ended")
        if signs is not None:
            signs.end()
            self._board.write()
            self._end_rollups(error)
        try:
            self._record_end(outcome, error, lease)
        except Exception as exc:
            log.error("the end of the application could not be written down: %s", exc)
        if self._lineage is not None:
            self._lineage.wait()
        return outcome

    def _end_rollups(self, error: BaseException | None) -> None:
        """Write the last figures, while the lease is still this application's."""
        request = self._stop.request
        if isinstance(error, LeaseLostError) or (request is not None and request.verdict == "superseded"):
            self._recorder.close()
            self._ledger.close()
            self._samples.close()
        self._recorder.end(self._board.latest)
        self._ledger.end()
        self._samples.end()

    def _record_end(self, outcome: Outcome, error: BaseException | None, lease: Lease | None) -> None:
        control, signalled = self._run.control, self._stop.signalled
        try:
            write_down(partial(change_desired_at_end, self._run, outcome, error), control, signalled)
        except Exception as exc:  # such as a damaged file: without an outcome the end would be told as a kill
            log.error("the desired state could not be changed at the application's end: %s", exc)
        write_down(partial(write_outcome, control, outcome), control, signalled)
        if outcome.verdict == "refused" and not isinstance(error, LeaseHeldError):
            record_refusal(control, outcome)
        if lease is not None:
            release(control, lease)

    def _told(self, error: Exception) -> Exception:
        """Return the error by which the end of the application is judged."""
        died = not isinstance(error, LakeboundError) and self._jvm.has_caused(error)
        return SparkDiedError(self._run.spec.pipeline) if died else self._with_disk(error)

    def _with_disk(self, error: Exception) -> Exception:
        """Return the error; where a disk is full, one that names it."""
        spec, places = self._run.spec, self._run.places
        return full_disk_error(error, f"pipeline {spec.pipeline!r}", *places.local_folders, scratch_folder()) or error

    def _bound_starts(self, last: LastEnd | None) -> None:
        """Count how the application before ended.

        Raises:
            CrashLoopError: Too many in a row landed nothing, and nobody has asked for anything since.
        """
        control, limit = self._run.control, self._run.spec.limits.max_failed_starts
        if last is not None and last.is_barren:
            tables = [open_table(table, self._run.places) for table in self._run.spec.tables]
            landed = max(newest_landed_epoch(tables), newest_landed_other_epoch(self._run.spec))
            last = replace(last, landed_epoch=landed)
        loop = count_last_end(read_crash_loop(control), last, read_desired(control).since)
        write_crash_loop(control, loop)
        if loop.is_over_limit(limit):
            raise CrashLoopError(control.pipeline, str(crash_looping(control.pipeline, loop)))
        self._last = last

    def _record_unclean_end(self, targets: list[Target], facts: dict[str, TopicFacts]) -> None:
        """Write down what the application before left behind and what becomes of it."""
        if self._last is None or not self._last.is_unclean:
            return
        start = plan_start([target.view.coverage for target in targets], facts)
        sent_again = [target.id for target in targets if target.was_real_time]
        found = start_incident(self._last, {target.id: target.view.coverage for target in targets}, start, sent_again)
        log.warning("incident: %s", found.what)
        try:
            record_incident(self._run.control, "unclean_end", found.what, facts=found.facts, outcome="repaired itself")
        except (LakeboundError, OSError) as exc:
            log.error("the incident could not be written down: %s", exc)

    def _land(self, lease: Lease) -> None:
        wait_for_kafka = KafkaWait(self._run, self._facts, self._board, self._stop, self._jvm.is_dead)
        facts = wait_for_kafka()
        if facts is None:
            return
        session = self._session.wait()
        obey_signals(self._stop.on_signal)
        try:
            self._board.change(spark_ui=session.sparkContext.uiWebUrl)
            parts = self.prepare(session, lease, facts)
            watch = LagWatch(self._facts, self._run.spec.topics, self._board)
            refresh = ReferenceWatch(session, parts.references, lambda found: self._board.change(references=found))
            schemas = None if parts.batches is None else SchemaWatch(parts.batches.opening.schemas, self._run.control)
            watch.start()
            refresh.start()
            if schemas is not None:
                schemas.start()
            hours = self._complete_hours(lease)
            if hours is not None:
                hours.start()
            try:
                if self._lineage is not None:
                    self._lineage.start(parts.targets, parts.quarantine, session.version)
                # Asked anew: until its tables were opened, the application before may have landed what came since.
                facts = wait_for_kafka() or facts
                self._record_unclean_end(parts.targets, facts)
                queries = self._queries(session, parts, facts, wait_for_kafka)
                together = QueriesTogether(queries, self._session, self._stop, self._told)
                try:
                    together.run(facts)
                finally:
                    self._stuck = together.stuck
            finally:
                watch.end()
                refresh.end()
                if schemas is not None:
                    schemas.end()
                if hours is not None:
                    hours.end()
                if parts.batches is not None:
                    parts.batches.lander.close()
        finally:
            session.stop()

    def _complete_hours(self, lease: Lease) -> CompleteHoursWatch | None:
        """Return what finds out which hours of the tables are complete, where the pipeline asks for that."""
        run, wanted = self._run, self._run.spec.complete_hours
        if wanted is None:
            return None
        # Records of a transaction that is open count: they were sent before the end, and land when it is committed.
        ends = partial(self._facts.topics, run.spec.topics, isolation="read_uncommitted")
        guard = lease_guard(run.control, lease)
        return CompleteHoursWatch(CompleteHoursKeeper(run.spec, wanted, run.places, run.control, ends, guard))

    def prepare(self, session: SparkSession, lease: Lease, facts: dict[str, TopicFacts]) -> Parts:
        """Make the tables what the pipeline needs, and return what lands in them.

        Args:
            session: The running Spark session.
            lease: Lease of this application; its epoch goes into every commit.
            facts: What Kafka has of each topic, by the topic's name.

        Raises:
            WithStateError: The pipeline's rows are of windows, and the run is bounded, in real time or on a cluster.
            LakeboundError: The pipeline is refused; nothing was created or changed.
        """
        run, spec = self._run, self._run.spec
        if run.until is not None:
            check_stateless(spec, "bounded run")
        if run.freshness == REAL_TIME:
            check_stateless(spec, "run in real time")
        if not is_local(session.sparkContext.master or ""):
            check_stateless(spec, "run on a cluster")
        check_landed_topics(spec, run.places, {topic: known.topic_id for topic, known in facts.items()})
        references = open_book(session, spec, run.places)
        if run.freshness != REAL_TIME:
            batches = open_in_batches(self._opening(session, run, lease, facts, references))
            parts = Parts(batches.quarantine, references, batches, None)
        else:
            parts = self._prepare_in_real_time(session, lease, facts, references)
        self._targets = parts.targets
        return parts

    def _opening(
        self, session: SparkSession, run: RunSpec, lease: Lease, facts: dict[str, TopicFacts], references: ReferenceBook
    ) -> Opening:
        schemas = open_schemas(run, columns_of_ddl, learns=True)
        return Opening(session, run, lease, facts, self._facts, references, self._samples, schemas)

    def _prepare_in_real_time(
        self, session: SparkSession, lease: Lease, facts: dict[str, TopicFacts], references: ReferenceBook
    ) -> Parts:
        """Prepare topics in real time, and tables and stores in batches where the pipeline has some."""
        run, both = self._run, has_both_ends(self._run.spec, REAL_TIME)
        planned, batches = plan_in_real_time(session, run, facts), None
        if both:
            batches = open_in_batches(self._opening(session, run.of_batches, lease, facts, references))
        quarantine = None if batches is None else batches.quarantine
        opened = open_in_real_time(run, lease, facts, self._facts, planned, quarantine)
        return Parts(opened.quarantine, references, batches, opened)

    def _queries(
        self, session: SparkSession, parts: Parts, facts: dict[str, TopicFacts], wait_for_kafka: KafkaWait
    ) -> list[RepeatedQuery]:
        """Return the queries of the application, that in batches first."""
        opened, batches = parts.real_time, parts.batches
        targets: dict[str, list[Target]] = {}
        if batches is not None:
            targets[BATCHES] = batches.targets
        if opened is not None:
            targets[IN_REAL_TIME] = opened.targets
        report = TargetsReport(self._board, targets)
        queries = []
        if batches is not None:
            stream = self._landing(session, parts, batches, facts, report)
            planned = partial(batches.planned, session)
            queries.append(self._repeated(BATCHES, stream, planned, batches.reopen, wait_for_kafka))
        if opened is not None:
            # What both read is counted once, by the batches.
            recorder = self._recorder if batches is None else None
            sending = RealTimeStream(self._run, session, opened, self._facts, self._board, report, self._stop, recorder)
            queries.append(self._repeated(IN_REAL_TIME, sending, opened.planned, opened.reopen, wait_for_kafka))
        return queries

    def _landing(
        self, session: SparkSession, parts: Parts, batches: OpenedBatches, facts: dict[str, TopicFacts], report: TargetsReport
    ) -> LandingStream:
        batches.show_searches(lambda found: self._board.change(search=found))
        run = self._run if parts.real_time is None else self._run.of_batches
        listeners = BatchListeners(self._board, report, self._recorder, self._ledger)
        told = LandedBatches(run.spec, batches.targets, listeners)
        until = self._bound(facts)
        kind = LandingStream if run.spec.state is None else WindowStream
        return kind(run, session, batches, self._facts, told, self._stop, until, parts.references)

    def _repeated(
        self,
        name: str,
        stream: Stream,
        planned: Callable[[dict[str, TopicFacts]], NextOffsets],
        reopen: Callable[[], None],
        wait_for_kafka: KafkaWait,
    ) -> RepeatedQuery:
        return RepeatedQuery(
            name=name,
            stream=stream,
            connection=self._run.spec.connection,
            planned=planned,
            reopen=reopen,
            wait_for_kafka=wait_for_kafka,
            has_died=self._jvm.has_caused,
            told=self._with_disk,
            board=self._board,
            stop=self._stop,
            checkpoints=self._run.control.checkpoint(self._run.app_id),
        )

    def _bound(self, facts: dict[str, TopicFacts]) -> NextOffsets | None:
        until = self._run.until
        if until is None:
            return None
        if until.offsets is not None:
            return {topic: dict(ends) for topic, ends in until.offsets.items() if topic in facts}
        return self._facts.offsets_at(self._run.spec.topics, until.timestamp_ms or 0)

    def _outcome(self, error: BaseException | None) -> Outcome:
        request = self._stop.request or StopRequest("completed", "nothing more to read")
        verdict, reason = verdict_on(error) if error is not None else (request.verdict, request.reason)
        return Outcome(
            app_id=self._run.app_id,
            verdict=verdict,
            reason=reason,
            error_class=type(error).__name__ if error else None,
            page=error.runbook if isinstance(error, LakeboundError) else None,
            passes=is_outage(error),
            records=self._board.latest.records,
            filtered=self._board.latest.filtered,
            quarantined=self._board.latest.quarantined,
            rows={target.id: target.rows for target in self._targets},
            commits=sum(target.commits for target in self._targets),
            stuck=self._stuck,
            started_at=self._started_at,
            ended_at=time.time(),
        )
