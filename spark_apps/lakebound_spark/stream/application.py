"""One application's life: lease, tables, stream, and the record of its outcome."""

from __future__ import annotations

import logging
import shutil
import time
from dataclasses import dataclass, replace
from functools import cached_property, partial

from pyspark.sql.pandas.types import to_arrow_schema

from lakebound.control.crash_loop import count_last_end, read_crash_loop, write_crash_loop
from lakebound.control.desired import keep_desired, read_desired
from lakebound.control.disks import scratch_folder
from lakebound.control.incidents import record_incident, record_refusal
from lakebound.control.last_end import LastEnd, read_last_end
from lakebound.control.lease import Lease, release
from lakebound.control.progress import Outcome, write_outcome
from lakebound.control.situations import Situation, crash_looping, topic_missing
from lakebound.control.start_incident import start_incident
from lakebound.errors import (
    BrokerUnavailableError,
    CrashLoopError,
    KafkaRefusalError,
    LakeboundError,
    LeaseHeldError,
    LeaseLostError,
    MissingTopicError,
    QuarantineFloodError,
)
from lakebound.landing.complete_hours_watch import CompleteHoursKeeper, CompleteHoursWatch
from lakebound.landing.cpu_seconds import CpuClock
from lakebound.landing.kafka import KafkaFacts
from lakebound.landing.kafka_errors import refusal_in
from lakebound.landing.ledger_recorder import LedgerRecorder
from lakebound.landing.rollup_recorder import RollupRecorder
from lakebound.landing.run_spec import RunSpec
from lakebound.landing.sample_recorder import SampleRecorder
from lakebound.landing.table_settling import settle_tables
from lakebound.landing.to_stores import store_rows
from lakebound.landing.to_topics.messages import staged_schema
from lakebound.landing.topic_check import check_landed_topics
from lakebound.ledger.marks import NextOffsets
from lakebound.ledger.topics import TopicFacts
from lakebound.operations.release.reading import read_places
from lakebound.redaction import redacted
from lakebound.spec.pipeline import AVAILABLE_NOW
from lakebound.spec.real_time import REAL_TIME
from lakebound.tables.commit import BatchOverlapError
from lakebound.tables.full_disk import full_disk_error
from lakebound.tables.landed import landed_topics, newest_landed_epoch
from lakebound.tables.outages import is_outage
from lakebound.tables.schemas import normalise_schema
from lakebound.tables.table import open_table
from lakebound.tables.target import LandingTarget
from lakebound_spark.batch.batch import BatchLander
from lakebound_spark.batch.decode import make_decoder, value_fields, value_schema
from lakebound_spark.batch.direct import make_direct_lane
from lakebound_spark.batch.doubtful import SparkDecoding
from lakebound_spark.batch.landable import make_check
from lakebound_spark.batch.lanes import How
from lakebound_spark.batch.local_transform import LocalTransform
from lakebound_spark.batch.quarantine_landing import QuarantineLander
from lakebound_spark.batch.quarantine_sampling import QuarantineSampling
from lakebound_spark.batch.raising import RaisingRecords
from lakebound_spark.batch.rehearsal import Rehearsal, nothing_waits
from lakebound_spark.batch.rescue import Rescuer
from lakebound_spark.batch.row_hours import make_hour_column
from lakebound_spark.batch.schema import QUARANTINE_SCHEMA, table_schema
from lakebound_spark.batch.store_bounds import store_bounds
from lakebound_spark.batch.targets import Target
from lakebound_spark.batch.topic_rows import with_json, without_json
from lakebound_spark.batch.transform import load_transform, may_multiply, planned_input, planned_output
from lakebound_spark.jvm import ParentWatch, SparkDiedError, obey_signals
from lakebound_spark.reference.book import ReferenceBook, open_book
from lakebound_spark.reference.refresh import ReferenceWatch
from lakebound_spark.session import SessionStart
from lakebound_spark.stream.ending import finish_bounded_run, hold, is_refusal, verdict_on
from lakebound_spark.stream.lineage_choice import chosen_lineage
from lakebound_spark.stream.opening import make_writer, open_targets, reopen, start_offsets, take_lease
from lakebound_spark.stream.query import LandingStream
from lakebound_spark.stream.real_time_opening import Opened, open_in_real_time
from lakebound_spark.stream.real_time_query import RealTimeStream
from lakebound_spark.stream.signs import LagWatch, ProgressBoard, SignsOfLife, lease_guard
from lakebound_spark.stream.stop_signal import StopRequest, StopSignal
from lakebound_spark.stream.stores import check_stores, left_out_by_stores, make_store_targets
from lakebound_spark.stream.topics import (
    check_machine,
    check_target_topics,
    left_out_by_targets,
    make_topic_targets,
    message_bounds,
    newest_landed_topic_epoch,
)

log = logging.getLogger(__name__)

_FRESH_STARTS = 3
"""Queries in a row that may fail without landing a batch before the application gives up."""


@dataclass
class Parts:
    """What a running application is made of."""

    lander: BatchLander | None
    """None in real time."""
    targets: list[Target]
    quarantine: Target
    topic_ids: dict[str, str]
    references: ReferenceBook
    real_time: Opened | None = None
    """None in batches."""
    rehearsal: Rehearsal | None = None
    """None where the driver decodes no batch, or the first one needs nothing of Spark."""


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
            died = not isinstance(exc, LakeboundError) and self._jvm.has_caused(exc)
            error = SparkDiedError(self._run.spec.pipeline) if died else self._with_disk(exc)
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
        except OSError as exc:
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
        write_outcome(self._run.control, outcome)
        if outcome.verdict == "refused" and not isinstance(error, LeaseHeldError):
            record_refusal(self._run.control, outcome)
        if lease is not None:
            release(self._run.control, lease)

    def _with_disk(self, error: Exception) -> Exception:
        """Return the error; where a disk is full, one that names it."""
        spec, places = self._run.spec, self._run.places
        return full_disk_error(error, f"pipeline {spec.pipeline!r}", *places.local_folders, scratch_folder()) or error

    def _bound_starts(self, last: LastEnd | None) -> None:
        """Count how the application before ended.

        Raises:
            CrashLoopError: Too many in a row landed nothing, and nobody has wished anything since.
        """
        control, limit = self._run.control, self._run.spec.limits.max_failed_starts
        if last is not None and last.is_barren:
            tables = [open_table(table, self._run.places) for table in self._run.spec.tables]
            landed = max(newest_landed_epoch(tables), newest_landed_topic_epoch(self._run))
            last = replace(last, landed_epoch=landed)
        loop = count_last_end(read_crash_loop(control), last, read_desired(control).since)
        write_crash_loop(control, loop)
        if loop.is_over_limit(limit):
            raise CrashLoopError(control.pipeline, str(crash_looping(control.pipeline, loop)))
        self._last = last

    def _record_unclean_end(self, targets: list[Target], start: NextOffsets) -> None:
        """Write down, once, what the application before left behind and what becomes of it."""
        last, self._last = self._last, None
        if last is None or not last.is_unclean:
            return
        sent_again = [target.id for target in targets if target.was_real_time]
        found = start_incident(last, {target.id: target.view.coverage for target in targets}, start, sent_again)
        log.warning("incident: %s", found.what)
        record_incident(self._run.control, "unclean_end", found.what, facts=found.facts, outcome="repaired itself")

    def _land(self, lease: Lease) -> None:
        facts = self._wait_for_kafka()
        if facts is None:
            return
        session = self._session.wait()
        obey_signals(self._stop.on_signal)
        try:
            self._board.change(spark_ui=session.sparkContext.uiWebUrl)
            parts = self.prepare(session, lease, facts)
            watch = LagWatch(self._facts, self._run.spec.topics, self._board)
            refresh = ReferenceWatch(session, parts.references, lambda found: self._board.change(references=found))
            watch.start()
            refresh.start()
            hours = self._complete_hours(lease)
            if hours is not None:
                hours.start()
            try:
                if self._lineage is not None:
                    self._lineage.start(parts.targets, parts.quarantine, session.version)
                self._stream(session, parts, facts)
            finally:
                watch.end()
                refresh.end()
                if hours is not None:
                    hours.end()
                if parts.lander is not None:
                    parts.lander.close()
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

    def prepare(self, session, lease: Lease, facts: dict[str, TopicFacts]) -> Parts:  # type: ignore[no-untyped-def]
        """Make the tables what the pipeline needs, and return what lands in them.

        Args:
            session: The running Spark session.
            lease: Lease of this application; its epoch goes into every commit.
            facts: What Kafka has of each topic, by the topic's name.

        Raises:
            LakeboundError: The pipeline is refused; nothing was created or changed.
        """
        spec = self._run.spec
        topic_ids = {topic: known.topic_id for topic, known in facts.items()}
        check_landed_topics(spec, self._run.places, topic_ids)
        references = open_book(session, spec, self._run.places)
        if self._run.freshness == REAL_TIME:
            opened = open_in_real_time(session, self._run, lease, facts, self._facts)
            self._targets = opened.targets
            return Parts(None, opened.targets, opened.quarantine, topic_ids, references, opened)
        check_machine(self._run, session.sparkContext.master)
        transform = load_transform(spec, references.frames)
        if spec.to_topics:
            transform = with_json(transform)
        output = planned_output(session, spec, transform)
        hour_column = make_hour_column(spec, output.schema)
        schemas = {table.id: table_schema(without_json(output.schema), table) for table in spec.tables}
        schemas[spec.quarantine_table.id] = QUARANTINE_SCHEMA
        rows = normalise_schema(to_arrow_schema(output.schema))
        check_target_topics(self._run, rows, topic_ids)
        plain = normalise_schema(to_arrow_schema(without_json(output.schema)))
        stored = {one.id: store_rows.staged_schema(one, plain) for one in spec.to_stores}
        check_stores(self._run, session.sparkContext.master, stored)
        staged = {one.id: staged_schema(one, rows) for one in spec.to_topics} | stored
        writer = replace(make_writer(self._run, lease), references=references.versions)
        settled = settle_tables(
            spec, self._run.places, schemas, value_fields(spec), own_epoch=writer.epoch, check_lease=writer.check_lease
        )
        bounds = message_bounds(self._run, self._facts)
        of_stores = [bound for one in spec.to_stores for bound in store_bounds(one, plain)]
        others: list[LandingTarget] = [
            *make_topic_targets(self._run, writer, bounds, staged),
            *make_store_targets(self._run, writer, stored),
        ]
        targets, quarantine = open_targets(self._run, schemas | staged, writer, facts, others)
        self._targets = targets
        decoder = make_decoder(spec, topic_ids, settled.unhoused)
        layouts = [target.table.layout() for target in targets]
        check = make_check(output.schema, layouts, has_transform=spec.transform is not None, bounds=[*bounds, *of_stores])
        how: How = {
            "multiplies": may_multiply(output),
            "left_out": left_out_by_targets(self._run, rows, settled.left_out) | left_out_by_stores(stored, rows),
            "check": check,
            "hour_column": hour_column,
        }
        given = planned_input(session, spec).schema
        # The JSON for topics needs Spark, too; on that nothing can raise.
        local = LocalTransform(transform, given, references.versions) if spec.transform is not None or spec.to_topics else None
        raising = RaisingRecords(spec, transform, given) if spec.transform is not None else None
        decoding = SparkDecoding(decoder)
        direct = make_direct_lane(spec, topic_ids, settled.unhoused, check, decoding, local, raising)
        cores = session.sparkContext.defaultParallelism
        own_places = partial(read_places, spec.quarantine_table, self._run.places)
        kept, schema = spec.quarantine_samples, value_schema(spec)
        sampling = QuarantineSampling(self._samples, kept, schema) if kept else None
        bad = QuarantineLander(quarantine, writer, own_places, schema, sampling)
        rescuer = Rescuer(session, spec, self._run.control.checkpoint(self._run.app_id) / "rescued")
        lander = BatchLander(
            spec,
            decoder,
            transform,
            targets,
            bad,
            writer,
            how,
            direct=direct,
            rescuer=rescuer,
            raising=raising,
            cores=cores,
        )
        rehearsal = None
        if direct is not None and local is not None and self._run.freshness != AVAILABLE_NOW:
            rehearsal = Rehearsal(schema, spec.topics[0], decoding, local)
        return Parts(lander, targets, quarantine, topic_ids, references, rehearsal=rehearsal)

    def _stream(self, session, parts: Parts, facts: dict[str, TopicFacts]) -> None:  # type: ignore[no-untyped-def]
        """Run queries, each in a fresh checkpoint from the ledger, until one ends gracefully."""
        stream = self._make_stream(session, parts, facts)
        failures, query = 0, 0
        found: dict[str, TopicFacts] | None = facts
        while found is not None and not self._stop.is_set():
            checkpoint = self._run.control.checkpoint(self._run.app_id) / str(query)
            landed = stream.landed_batches
            try:
                start = start_offsets(parts.targets, parts.quarantine, found)
                log.info("the ledger says: start at %s", start)
                self._record_unclean_end(parts.targets, start)
                if query == 0 and parts.rehearsal is not None and nothing_waits(start, found):
                    parts.rehearsal.run(session)
                stream.run(start, checkpoint)
                return
            except Exception as caught:
                exc = refusal_in(self._run.spec.connection, caught) or caught
                if isinstance(exc, LeaseLostError) or (is_refusal(exc) and not isinstance(exc, KafkaRefusalError)):
                    raise
                failures = 1 if stream.landed_batches > landed else failures + 1
                if self._jvm.has_caused(caught) or (failures > _FRESH_STARTS and not _comes_right(exc)):
                    if exc is caught:
                        raise
                    raise exc from caught
                log.warning("the query ended and starts again from the ledger (%d in a row): %s", failures, redacted(exc))
                told = self._with_disk(exc)
                self._board.fail(told, redacted(told))
            finally:
                shutil.rmtree(checkpoint, ignore_errors=True)
            query += 1
            self._stop.wait(min(2.0**failures / 2, 10.0))
            found = self._wait_for_kafka()
            reopen(parts.targets, parts.quarantine)

    def _make_stream(  # type: ignore[no-untyped-def]
        self, session, parts: Parts, facts: dict[str, TopicFacts]
    ) -> LandingStream | RealTimeStream:
        if parts.real_time is not None:
            opened = parts.real_time
            return RealTimeStream(self._run, session, opened, self._facts, self._board, self._stop, self._recorder)
        assert parts.lander is not None
        return LandingStream(
            self._run,
            session,
            parts.lander,
            parts.targets,
            self._facts,
            parts.topic_ids,
            self._board,
            self._stop,
            self._bound(facts),
            self._recorder,
            self._ledger,
            parts.references,
        )

    def _wait_for_kafka(self) -> dict[str, TopicFacts] | None:
        """Return Kafka's facts; None when the application is asked to end meanwhile.

        An outage is waited out, and a topic that is not there is waited for: somebody is about to create it.

        Raises:
            BrokerUnavailableError: The outage lasts longer than ``limits.outage_seconds``.
            KafkaRefusalError: So long Kafka has refused the login, or what was asked.
        """
        deadline = time.monotonic() + self._run.spec.limits.outage_seconds
        landed: frozenset[str] | None = None
        while not self._stop.is_set():
            try:
                facts = self._facts.topics(self._run.spec.topics)
                if written := self._written_topics():
                    self._facts.topic_ids(written)
            except (BrokerUnavailableError, KafkaRefusalError) as exc:
                if time.monotonic() > deadline or self._jvm.is_dead():
                    raise
                self._wait_out(exc, str(exc))
            except MissingTopicError as exc:
                deadline = time.monotonic() + self._run.spec.limits.outage_seconds
                landed = landed_topics(self._run.spec, self._run.places) if landed is None else landed
                self._wait_out(exc, str(self._topic_missing(exc, landed)))
            else:
                self._board.wait_no_more("starting")
                return facts
        return None

    def _written_topics(self) -> list[str]:
        """Return the names of the topics that rows or bad records go to."""
        spec = self._run.spec
        bad = [spec.quarantine_topic] if self._run.freshness == REAL_TIME else []
        return [*(one.topic for one in spec.to_topics), *bad]

    def _wait_out(self, error: LakeboundError, sentence: str) -> None:
        if self._board.latest.waiting_for != sentence:
            log.warning("waiting: %s", sentence)
        self._board.wait_for(error, sentence)
        self._stop.wait(1.0)

    def _topic_missing(self, error: MissingTopicError, landed: frozenset[str]) -> Situation:
        spec, gone = self._run.spec, [error.topic]
        return topic_missing(gone, spec.connection.bootstrap_servers, spec.pipeline, [one for one in gone if one in landed])

    def _bound(self, facts: dict[str, TopicFacts]) -> NextOffsets | None:
        until = self._run.until
        if until is None:
            return None
        if until.offsets is not None:
            return {topic: dict(ends) for topic, ends in until.offsets.items() if topic in facts}
        return self._facts.offsets_at(self._run.spec.topics, until.timestamp_ms or 0)

    def _outcome(self, error: BaseException | None) -> Outcome:
        request = self._stop.request or StopRequest("completed", "nothing more to read")
        error = error or request.error
        verdict, reason = verdict_on(error) if error is not None else (request.verdict, request.reason)
        if verdict == "completed" and self._run.until is not None:
            finish_bounded_run(self._run)
        if isinstance(error, QuarantineFloodError):
            hold(self._run, error)
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
            started_at=self._started_at,
            ended_at=time.time(),
        )


def _comes_right(error: BaseException) -> bool:
    return isinstance(error, BatchOverlapError) or is_outage(error)
