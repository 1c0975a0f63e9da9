"""The policy of a replay: an offset below the lowest high-water mark lands in each table whose coverage lacks it (decision 5).

The records are read from Kafka, once for all tables. Below that mark the stream does not read any more.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial, reduce
from typing import ClassVar

from pyspark.sql import SparkSession

from lakebound.control.desired import Desired
from lakebound.control.replay_result import PieceCounts, ReplayResult, TableLanded
from lakebound.landing.kafka import KafkaFacts
from lakebound.landing.table_settling import check_unmoved
from lakebound.ledger.entry import Offsets, TopicOffsets, add, check_topic_ids, count, missing
from lakebound.operations.backfill.tables import owned_table
from lakebound.operations.replay.chunks import chunks
from lakebound.operations.replay.orders import ReplayOrders
from lakebound.operations.replay.plan import announced, below_marks, lowest_marks
from lakebound.spec.table import TableSpec
from lakebound_spark.backfill.job import Backfill, CheckWanted
from lakebound_spark.backfill.planning import plan_on_tables
from lakebound_spark.batch.record_format import value_fields
from lakebound_spark.batch.records import Records
from lakebound_spark.batch.targets import Counts, Target, Writer
from lakebound_spark.landing.assembly import Assembly
from lakebound_spark.landing.lander import BatchLander, make_lander
from lakebound_spark.reference.book import open_book
from lakebound_spark.stream.source import read_offsets

log = logging.getLogger(__name__)


def replay(orders: ReplayOrders) -> ReplayResult:
    """Land what any table lacks of the orders' offsets, and return how that ended."""
    return Backfill(orders, CoverageDecides(orders)).run()


@dataclass(frozen=True)
class CoverageDecides:
    """See ``lakebound_spark.backfill.job.Policy``."""

    orders: ReplayOrders
    name: ClassVar[str] = "replay"

    def goes_on_held(self, hold: Desired) -> bool:
        """Return False: a held pipeline gets no rows of a replay."""
        return False

    def begun(self) -> ReplayResult:
        """Return the record as it is before anything has landed."""
        return ReplayResult(app_id=self.orders.app_id)

    def alone(self, check_wanted: CheckWanted) -> AbstractContextManager[None]:
        """Keep nobody out: the tables tell who was faster."""
        return nullcontext()

    def pieces(self) -> Sequence[Offsets]:
        """Return the offsets in pieces, the oldest first: Kafka deletes these first."""
        return list(chunks(self.orders.wanted, self.orders.spec.limits.max_records_per_batch))

    def open(self, session: SparkSession, check_wanted: CheckWanted) -> CoveredTables:
        """Return the tables, ready for the first piece."""
        return CoveredTables(self.orders, session, check_wanted)

    def finish(self) -> str:
        """Say nothing: what the tables lack, another run lands."""
        return ""


class CoveredTables:
    """The tables of a replay. Nothing stays pending between two pieces: a stream that starts goes on from the ledgers alone."""

    def __init__(self, orders: ReplayOrders, session: SparkSession, check_wanted: CheckWanted) -> None:
        spec = orders.spec
        self._orders, self._places, self._wanted, self._session = orders, orders.places, orders.wanted, session
        self._check_wanted = check_wanted
        self._facts = KafkaFacts(spec.connection)
        self._references = open_book(session, spec, orders.places)
        self._topic_ids = self._facts.topic_ids(spec.topics)
        found = plan_on_tables(session, orders, self._references, with_quarantine=True)
        self._spec, self._schemas, self._settled = found.planned.spec, found.schemas, found.settled
        self._targets = [self._target(one) for one in spec.tables]
        self._quarantine = Target(*owned_table(spec, spec.quarantine_table, orders.places))
        self._assembly = Assembly(
            found.planned,
            self._topic_ids,
            layouts=[target.table.layout() for target in self._targets],
            unhoused=self._settled.unhoused,
            left_out=self._settled.left_out,
        )
        self._writer = self._guest()
        self._lander = self._make_lander()

    def land(self, piece: Offsets, number: int) -> PieceCounts:
        """Land what any table lacks of a piece now.

        Raises:
            ColumnsMovedError: The tables have other columns than those that it decodes.
            LakeboundError: What a batch raises.
        """
        rest = self._look(piece)
        if not count(rest):
            return PieceCounts()
        records = Records(self._session, rest, partial(read_offsets, self._session, self._spec, rest))
        counts = self._lander.land(records, number, rest, self._check_topics, self._goes_on).counts
        self._flush()
        return PieceCounts(read=counts.read, filtered=counts.filtered, landed=counts.landed, quarantined=counts.quarantined)

    def look_again(self) -> None:
        """Do nothing: each attempt begins by reading all ledgers."""

    def landed(self) -> Mapping[str, TableLanded]:
        """Return what was committed until now, by the table's id."""
        return {target.id: TableLanded(commits=target.commits, rows=target.rows) for target in self._targets}

    def close(self) -> None:
        """Free the threads."""
        self._lander.close()

    def _flush(self) -> None:
        """Commit what is pending."""
        self._lander.flush()

    def _target(self, one: TableSpec) -> Target:
        return Target(*owned_table(self._orders.spec, one, self._places))

    def _look(self, piece: Offsets) -> Offsets:
        """Read all ledgers and return what of a piece any table lacks below the lowest mark."""
        self._refresh()
        coverages = [target.view.coverage for target in self._targets]
        marks = lowest_marks(coverages)
        for target in self._targets:
            self._announce(target, below_marks(self._wanted, marks))
        below = below_marks(piece, marks)
        return reduce(add, (missing(below, coverage) for coverage in coverages), {})

    def _refresh(self) -> None:
        """Read all ledgers, check that the pipeline is what it was, and take the newest epoch."""
        for target in (*self._targets, self._quarantine):
            target.refresh()
            check_topic_ids(target.view.coverage, self._topic_ids)
        # A rewind holds the pipeline before its first table and until its last: who has read its epoch in some sees the hold.
        self._check_wanted()
        # After the ledgers: a rewind that comes later has a later epoch, with which a commit on these is refused.
        check_unmoved(self._spec, self._places, self._schemas, self._settled, value_fields(self._spec))
        writer = self._guest()
        if writer.epoch != self._writer.epoch:
            log.info("the newest epoch is now %d", writer.epoch)
            self._lander.close()
            self._writer = writer
            self._lander = self._make_lander()

    def _announce(self, target: Target, wanted: Offsets) -> None:
        """Have the table say where the replay begins, once."""
        marks = announced(wanted, target.view.coverage)
        if marks:
            target.commit(self._writer, marks, Counts(), [])

    def _guest(self) -> Writer:
        """Return a writer with the newest epoch in the ledgers: one that is older would be fenced out."""
        epoch = max(target.view.epoch for target in (*self._targets, self._quarantine))
        attempts, references = self._spec.limits.commit_attempts, self._references.versions
        return Writer(self._spec.pipeline, epoch, lambda: None, attempts, kind="replay", references=references)

    def _make_lander(self) -> BatchLander:
        return make_lander(self._assembly, self._targets, self._quarantine, self._writer, self._places)

    def _goes_on(self) -> bool:
        self._check_wanted()
        return True

    def _check_topics(self) -> None:
        held = {topic: TopicOffsets(topic_id=known, partitions={}) for topic, known in self._topic_ids.items()}
        check_topic_ids(held, self._facts.topic_ids(self._spec.topics))
