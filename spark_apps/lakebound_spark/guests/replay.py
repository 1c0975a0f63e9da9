"""A replay: batches of a range that the tables lack, read from Kafka once, and committed as a guest of the running stream.

What keeps it and the stream from landing an offset twice is each table's compare-and-swap (``lakebound.tables.guest``). It
stays below the lowest high-water mark, where the stream does not read any more.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import closing
from functools import partial, reduce

from pyspark.sql import SparkSession

from lakebound.control.desired import read_desired
from lakebound.control.replay_result import ReplayResult, ReplayState, TableLanded, write_result
from lakebound.errors import HeldError, LakeboundError
from lakebound.landing.kafka import KafkaFacts
from lakebound.landing.kafka_errors import refusal_in
from lakebound.landing.table_settling import check_settled, check_unmoved
from lakebound.ledger.entry import Offsets, TopicOffsets, add, check_owner, check_topic_ids, count, missing
from lakebound.operations.replay.chunks import chunks
from lakebound.operations.replay.orders import ReplayOrders
from lakebound.operations.replay.plan import NothingLandedYetError, announced, below_marks, lowest_marks
from lakebound.redaction import redacted
from lakebound.spec.table import TableSpec
from lakebound.tables.guest import retry_as_guest
from lakebound.tables.stale_ledger import read_not_behind
from lakebound.tables.table import open_table
from lakebound_spark.batch.decode import value_fields
from lakebound_spark.batch.records import Records
from lakebound_spark.batch.report import BatchReport
from lakebound_spark.batch.schema import QUARANTINE_SCHEMA
from lakebound_spark.batch.targets import Counts, Target, Writer
from lakebound_spark.landing.assembly import Assembly
from lakebound_spark.landing.lander import BatchLander, make_lander
from lakebound_spark.landing.parts import plan_pipeline
from lakebound_spark.reference.book import open_book
from lakebound_spark.session import make_session
from lakebound_spark.stream.source import read_offsets

log = logging.getLogger(__name__)


class StoppedError(LakeboundError):
    """Somebody asked the replay to end."""

    def __init__(self, pipeline: str) -> None:
        super().__init__(f"replay of {pipeline!r}: stopped on request between two batches; run it again to land the rest")


class Replay:
    """Lands what is wanted, batch after batch, each table on its own."""

    def __init__(self, orders: ReplayOrders) -> None:
        self._orders = orders
        self._facts = KafkaFacts(orders.spec.connection)
        self._result = ReplayResult(app_id=orders.app_id)

    def run(self) -> ReplayResult:
        """Run to the end and return how it ended; that is also written to the pipeline's folder, after each batch."""
        error: Exception | None = None
        try:
            self._replay()
        except Exception as exc:
            log.exception("replay of %s ended", self._orders.spec.pipeline)
            error = refusal_in(self._orders.spec.connection, exc) or exc
        changes = {"state": state_of(error), "reason": reason_of(error, self._result), "ended_at": time.time()}
        self._change(**changes, error_class=type(error).__name__ if error else None)
        return self._result

    def _replay(self) -> None:
        spec = self._orders.spec
        pieces = list(chunks(self._orders.wanted, spec.limits.max_records_per_batch))
        self._change(chunks=len(pieces))
        session = make_session(f"lakebound-replay-{spec.pipeline}")
        try:
            with closing(_Landing(self._orders, session, self._facts)) as landing:
                for number, piece in enumerate(pieces):
                    self._check_wanted()
                    report = landing.land(piece, number, self._check_wanted)
                    self._report(report, landing, done=number + 1)
                    log.info("batch %d of %d: %s", number + 1, len(pieces), report)
        finally:
            session.stop()

    def _check_wanted(self) -> None:
        control, pipeline = self._orders.control, self._orders.spec.pipeline
        if control.stop_marker(self._orders.app_id).exists():
            raise StoppedError(pipeline)
        desired = read_desired(control)
        if desired.state == "held":
            raise HeldError(pipeline, desired.reason)

    def _report(self, report: BatchReport, landing: _Landing, *, done: int) -> None:
        counts, before = report.counts, self._result
        self._change(
            chunks_done=done,
            read=before.read + counts.read,
            filtered=before.filtered + counts.filtered,
            landed=before.landed + counts.landed,
            quarantined=before.quarantined + counts.quarantined,
            tables={target.id: TableLanded(commits=target.commits, rows=target.rows) for target in landing.targets},
        )

    def _change(self, **changes: object) -> None:
        self._result = self._result.model_copy(update=changes)
        write_result(self._orders.control, self._result)


class _Landing:
    """The tables of a replay, and its batches."""

    def __init__(self, orders: ReplayOrders, session: SparkSession, facts: KafkaFacts) -> None:
        spec = orders.spec
        self._spec, self._wanted, self._session, self._facts = spec, orders.wanted, session, facts
        self._references = open_book(session, spec, orders.places)
        planned = plan_pipeline(session, spec, self._references)
        self._schemas = planned.table_schemas() | {spec.quarantine_table.id: QUARANTINE_SCHEMA}
        self._places = orders.places
        self._topic_ids = facts.topic_ids(spec.topics)
        self._settled = check_settled(spec, orders.places, self._schemas, value_fields(spec))
        self.targets = [self._open(orders, table) for table in spec.tables]
        self._quarantine = self._open(orders, spec.quarantine_table)
        self._assembly = Assembly(
            planned,
            self._topic_ids,
            layouts=[target.table.layout() for target in self.targets],
            unhoused=self._settled.unhoused,
            left_out=self._settled.left_out,
        )
        self._writer = self._guest()
        self._lander = self._make_lander()

    def land(self, wanted: Offsets, number: int, check_wanted: Callable[[], None]) -> BatchReport:
        """Land what any table lacks of ``wanted``, whatever else is committed meanwhile.

        Args:
            wanted: Offsets.
            number: Of the batch.
            check_wanted: Raises when the replay is no longer wanted; called before each attempt after the first,
                and between the pieces of a batch that lands in pieces.

        Raises:
            ColumnsMovedError: The tables have other columns than those that it decodes.
            LakeboundError: What a batch raises; after ``limits.commit_attempts`` tries also what a table's moving on does.
        """
        attempts = self._spec.limits.commit_attempts
        land = partial(self._land_rest, wanted, number, check_wanted)
        return retry_as_guest(land, what=f"batch {number}", attempts=attempts, look_again=check_wanted)

    def _land_rest(self, wanted: Offsets, number: int, check_wanted: Callable[[], None]) -> BatchReport:
        """Land what any table lacks of ``wanted`` now."""
        rest = self._look_again(wanted, check_wanted)
        if not count(rest):
            return BatchReport(number)

        def goes_on() -> bool:
            check_wanted()
            return True

        records = Records(self._session, rest, lambda: read_offsets(self._session, self._spec, rest))
        report = self._lander.land(records, number, rest, self._check_topics, goes_on)
        self._lander.flush()
        return report

    def close(self) -> None:
        """Free the threads."""
        self._lander.close()

    def _look_again(self, wanted: Offsets, check_wanted: Callable[[], None]) -> Offsets:
        """Read all ledgers and return what of ``wanted`` any table lacks below the lowest mark.

        Nothing stays pending from batch to batch: a stream that starts meanwhile takes over from the ledgers alone.
        """
        for target in (*self.targets, self._quarantine):
            target.refresh()
            check_topic_ids(target.view.coverage, self._topic_ids)
        # A rewind holds the pipeline before its first table and until its last: who has read its epoch in some sees the hold.
        check_wanted()
        # After the ledgers: a rewind that comes later has a later epoch, with which a commit on these is refused.
        check_unmoved(self._spec, self._places, self._schemas, self._settled, value_fields(self._spec))
        writer = self._guest()
        if writer.epoch != self._writer.epoch:
            log.info("the newest epoch is now %d", writer.epoch)
            self._lander.close()
            self._writer = writer
            self._lander = self._make_lander()
        coverages = [target.view.coverage for target in self.targets]
        marks = lowest_marks(coverages)
        for target in self.targets:
            self._announce(target, below_marks(self._wanted, marks))
        below = below_marks(wanted, marks)
        return reduce(add, (missing(below, coverage) for coverage in coverages), {})

    def _announce(self, target: Target, wanted: Offsets) -> None:
        """Have the table say where the replay begins, once."""
        marks = announced(wanted, target.view.coverage)
        if marks:
            target.commit(self._writer, marks, Counts(), [])

    def _guest(self) -> Writer:
        """Return a writer with the newest epoch in the ledgers: one that is older would be fenced out."""
        epoch = max(target.view.epoch for target in (*self.targets, self._quarantine))
        attempts, references = self._spec.limits.commit_attempts, self._references.versions
        return Writer(self._spec.pipeline, epoch, lambda: None, attempts, kind="replay", references=references)

    def _make_lander(self) -> BatchLander:
        return make_lander(self._assembly, self.targets, self._quarantine, self._writer, self._places)

    def _check_topics(self) -> None:
        held = {topic: TopicOffsets(topic_id=known, partitions={}) for topic, known in self._topic_ids.items()}
        check_topic_ids(held, self._facts.topic_ids(self._spec.topics))

    def _open(self, orders: ReplayOrders, table_spec: TableSpec) -> Target:
        """Return a table as the stream has made it."""
        table = open_table(table_spec, orders.places)
        if not table.exists():
            raise NothingLandedYetError(orders.spec.pipeline, table_spec.id)
        view = read_not_behind(table, orders.places)
        if view.entry is None:
            raise NothingLandedYetError(orders.spec.pipeline, table_spec.id)
        check_owner(view.entry, orders.spec.pipeline, table_spec.id)
        return Target(table, view)


def state_of(error: Exception | None) -> ReplayState:
    """Return how an application ended that works beside the stream."""
    if error is None:
        return "completed"
    if isinstance(error, StoppedError):
        return "stopped"
    refused = isinstance(error, LakeboundError) and error.is_refusal
    return "refused" if refused or isinstance(error, (HeldError, NothingLandedYetError)) else "failed"


def reason_of(error: Exception | None, result: ReplayResult) -> str:
    """Return why it ended, in words."""
    if error is None:
        return f"all {result.chunks} batches landed"
    return redacted(error)
