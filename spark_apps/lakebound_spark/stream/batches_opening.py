"""What happens before a stream in batches: what cannot land is refused, the targets are opened, and the lanes are made."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import SparkSession

from lakebound.control.lease import Lease
from lakebound.control.progress import SearchProgress
from lakebound.errors import LakeboundError
from lakebound.formats.schemas import PartOfRecord, SchemaId
from lakebound.landing.kafka import KafkaFacts
from lakebound.landing.read_schemas import SchemaBook
from lakebound.landing.run_spec import RunSpec
from lakebound.landing.sample_recorder import SampleRecorder
from lakebound.landing.schema_findings import tell_not_followed
from lakebound.landing.table_settling import Settled, check_settled, settle_tables
from lakebound.ledger.marks import NextOffsets
from lakebound.ledger.topics import TopicFacts
from lakebound.redaction import redacted
from lakebound.spec.pipeline import AVAILABLE_NOW, PipelineSpec
from lakebound_spark.batch.record_format import value_fields
from lakebound_spark.batch.rehearsal import Rehearsal, nothing_waits
from lakebound_spark.batch.schema import QUARANTINE_SCHEMA
from lakebound_spark.batch.targets import Target, Writer
from lakebound_spark.landing.assembly import Assembly
from lakebound_spark.landing.lander import BatchLander, make_lander
from lakebound_spark.landing.parts import ProcessParts, SessionParts, plan_pipeline
from lakebound_spark.landing.window_lander import WindowLander
from lakebound_spark.reference.book import ReferenceBook
from lakebound_spark.stream.opening import make_writer, newest_entries, open_targets, reopen, start_offsets
from lakebound_spark.stream.other_targets import OtherTargets, check_machine, take_json
from lakebound_spark.stream.unknown_schemas import Known

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Opening:
    """What a stream in batches is opened from.

    Attributes:
        session: Spark's.
        run: The orders.
        lease: Of this application; its epoch goes into every commit.
        facts: What Kafka has of each topic that is read, by the topic's name.
        kafka: Asks Kafka.
        references: Reference data of the transform.
        samples: Keeps bad records, where the pipeline asks for that.
        schemas: Those of the records, and the pipeline with them.
    """

    session: SparkSession
    run: RunSpec
    lease: Lease
    facts: Mapping[str, TopicFacts]
    kafka: KafkaFacts
    references: ReferenceBook
    samples: SampleRecorder
    schemas: SchemaBook


@dataclass(frozen=True)
class _Settled:
    """A pipeline as its schemas are now, and its tables as they stand to it.

    Attributes:
        run: The orders, with the pipeline as it is now.
        planned: Its transform.
        others: What it lands in beside its tables.
        schemas: Columns of its tables, by their id.
        tables: How these stand.
    """

    run: RunSpec
    planned: SessionParts
    others: OtherTargets
    schemas: Mapping[str, pa.Schema]
    tables: Settled

    def check_columns(self) -> None:
        """Check that the tables' columns still take the pipeline's.

        Raises:
            SchemaChangedError: Somebody else has changed the columns of one.
        """
        check_settled(self.run.spec, self.run.places, self.schemas, value_fields(self.run.spec))


@dataclass
class OpenedBatches:
    """What a stream in batches needs.

    Attributes:
        opening: What it was opened from.
        writer: What all commits have in common.
        assembly: Makes rows of records.
        lander: Lands batches.
        targets: Tables, topics and stores as their ledgers stand.
        quarantine: The quarantine table.
        rehearsal: Of the first batch; None where the driver decodes no batch, where the first one needs nothing of Spark, and
            after it has been.
        tell_search: Hears of a search for records on which the transform raises.
    """

    opening: Opening
    writer: Writer
    assembly: Assembly
    lander: BatchLander | WindowLander
    targets: list[Target]
    quarantine: Target
    rehearsal: Rehearsal | None
    _settled: _Settled
    tell_search: Callable[[SearchProgress], None] = lambda found: None

    def planned(self, session: SparkSession, facts: Mapping[str, TopicFacts]) -> NextOffsets:
        """Return where a query starts, as the ledgers and Kafka's facts say; rehearse before the first one if nothing waits.

        Args:
            session: Spark's.
            facts: Kafka's.
        """
        start = start_offsets(self.targets, self.quarantine, facts)
        rehearsal, self.rehearsal = self.rehearsal, None
        if rehearsal is not None and nothing_waits(start, facts):
            rehearsal.run(session)
        return start

    def reopen(self) -> None:
        """Read every ledger again, and what records want of schemas; check that the tables take what the pipeline produces.

        Raises:
            SchemaChangedError: Somebody else has changed the columns of one.
            LakeboundError: The registry of the schemas refuses; or it is away, and the application is to land what there is.
        """
        self._ask_for_schemas()
        newer = _followed(self.opening, self.writer) if self.opening.schemas.has_newer else None
        reopen(self.targets, self.quarantine)
        if newer is None:
            self._settled.check_columns()
            return
        self.lander.close()
        self._settled = newer
        self.assembly = _assemble(self.opening, newer, self.targets)
        self.lander = _lander(self.opening, self.assembly, self.targets, self.quarantine, self.writer)
        self.show_searches(self.tell_search)

    def known_schemas(self) -> Known:
        """Return the schemas of which the decoder knows what becomes of their records, of each part that asks for others."""
        found: dict[PartOfRecord, frozenset[SchemaId]] = {}
        for part, source in self._settled.run.spec.schema_sources.items():
            known = source.read.known
            if known is not None and known.asks:
                found[part] = frozenset(one for one, _ in (*known.writers, *known.refused))
        return found

    def _ask_for_schemas(self) -> None:
        try:
            self.opening.schemas.ask()
        except LakeboundError as exc:
            if not exc.passes or self.opening.run.freshness == AVAILABLE_NOW:
                raise
            log.warning("what lies before records of new schemas lands meanwhile: %s", redacted(exc))

    def show_searches(self, tell: Callable[[SearchProgress], None]) -> None:
        """Tell of each search for records on which the transform raises, now and after the schemas were read again."""
        self.tell_search = tell
        if self.assembly.raising is not None:
            self.assembly.raising.tell = tell


def open_in_batches(opening: Opening) -> OpenedBatches:
    """Refuse what cannot land, then make the targets what the pipeline needs, and open them.

    Raises:
        LakeboundError: The pipeline is refused; nothing was created or changed.
    """
    run, facts = opening.run, opening.facts
    check_machine(run, ProcessParts(opening.session.sparkContext).master)
    writer = replace(make_writer(run, opening.lease), references=opening.references.versions, schemas=opening.schemas.named)
    if opening.schemas.has_registry:
        opening.schemas.know_entries(entry.schemas for entry in newest_entries(run))
    settled = _followed(opening, writer)
    others = settled.others
    targets, quarantine = open_targets(run, {**settled.schemas, **others.staged}, writer, facts, others.make(writer))
    assembly = _assemble(opening, settled, targets)
    lander = _lander(opening, assembly, targets, quarantine, writer)
    is_rehearsed = run.spec.driver_lane.direct and run.spec.state is None and run.freshness != AVAILABLE_NOW
    rehearsal = assembly.rehearsal() if is_rehearsed else None
    return OpenedBatches(opening, writer, assembly, lander, targets, quarantine, rehearsal, settled)


def _followed(opening: Opening, writer: Writer) -> _Settled:
    """Settle the tables with the newest schemas that they can follow; a finding tells of newer ones."""
    settled = opening.schemas.followed(lambda spec: _settle(opening, spec, writer))
    if opening.schemas.has_registry:
        tell_not_followed(opening.run.control, opening.schemas.not_followed, opening.schemas.reused)
    return settled


def _settle(opening: Opening, spec: PipelineSpec, writer: Writer) -> _Settled:
    """Make the tables what the pipeline needs, with its schemas as they are now."""
    run = opening.run.model_copy(update={"spec": spec})
    planned = plan_pipeline(opening.session, spec, opening.references, with_messages=take_json(spec))
    schemas = planned.table_schemas() | {spec.quarantine_table.id: QUARANTINE_SCHEMA}
    others = OtherTargets(run, planned, opening.kafka)
    others.check(_topic_ids(opening))
    tables = settle_tables(
        spec, run.places, schemas, value_fields(spec), own_epoch=writer.epoch, check_lease=writer.check_lease
    )
    return _Settled(run, planned, others, schemas, tables)


def _assemble(opening: Opening, settled: _Settled, targets: Sequence[Target]) -> Assembly:
    return Assembly(
        settled.planned,
        _topic_ids(opening),
        layouts=[target.table.layout() for target in targets],
        unhoused=settled.tables.unhoused,
        left_out=settled.others.left_out(settled.tables.left_out),
        bounds=settled.others.bounds(),
    )


def _lander(
    opening: Opening, assembly: Assembly, targets: Sequence[Target], quarantine: Target, writer: Writer
) -> BatchLander | WindowLander:
    if assembly.spec.state is not None:
        planned = assembly.planned
        return WindowLander(assembly, targets, quarantine, writer, planned.window_id, planned.rows_id(writer.source.hash))
    direct = assembly.direct_lane()
    return make_lander(assembly, targets, quarantine, writer, opening.run.places, direct=direct, samples=opening.samples)


def _topic_ids(opening: Opening) -> dict[str, str]:
    return {topic: known.topic_id for topic, known in opening.facts.items()}
