"""What happens before a stream in batches: what cannot land is refused, the targets are opened, and the lanes are made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

from pyspark.sql import SparkSession

from lakebound.control.lease import Lease
from lakebound.landing.kafka import KafkaFacts
from lakebound.landing.run_spec import RunSpec
from lakebound.landing.sample_recorder import SampleRecorder
from lakebound.landing.table_settling import check_settled, settle_tables
from lakebound.ledger.marks import NextOffsets
from lakebound.ledger.topics import TopicFacts
from lakebound.spec.pipeline import AVAILABLE_NOW
from lakebound_spark.batch.decode import value_fields
from lakebound_spark.batch.rehearsal import Rehearsal, nothing_waits
from lakebound_spark.batch.schema import QUARANTINE_SCHEMA
from lakebound_spark.batch.targets import Target
from lakebound_spark.landing.assembly import Assembly
from lakebound_spark.landing.lander import BatchLander, make_lander
from lakebound_spark.landing.parts import ProcessParts, plan_pipeline
from lakebound_spark.reference.book import ReferenceBook
from lakebound_spark.stream.opening import make_writer, open_targets, reopen, start_offsets
from lakebound_spark.stream.other_targets import OtherTargets, check_machine, take_json


@dataclass
class OpenedBatches:
    """What a stream in batches needs.

    Attributes:
        assembly: Makes rows of records.
        lander: Lands batches.
        targets: Tables, topics and stores as their ledgers stand.
        quarantine: The quarantine table.
        rehearsal: Of the first batch; None where the driver decodes no batch, where the first one needs nothing of Spark, and
            after it has been.
        check_columns: Checks that the tables' columns take the pipeline's.
    """

    assembly: Assembly
    lander: BatchLander
    targets: list[Target]
    quarantine: Target
    rehearsal: Rehearsal | None
    check_columns: Callable[[], object]

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
        """Read every ledger again, and check that the tables still take what the pipeline produces.

        Raises:
            SchemaChangedError: Somebody else has changed the columns of one.
        """
        reopen(self.targets, self.quarantine)
        self.check_columns()


def open_in_batches(
    session: SparkSession,
    run: RunSpec,
    lease: Lease,
    facts: Mapping[str, TopicFacts],
    kafka: KafkaFacts,
    references: ReferenceBook,
    samples: SampleRecorder,
) -> OpenedBatches:
    """Refuse what cannot land, then make the targets what the pipeline needs, and open them.

    Args:
        session: Spark's.
        run: The orders.
        lease: Of this application; its epoch goes into every commit.
        facts: What Kafka has of each topic that is read, by the topic's name.
        kafka: Asks Kafka.
        references: Reference data of the transform.
        samples: Keeps bad records, where the pipeline asks for that.

    Raises:
        LakeboundError: The pipeline is refused; nothing was created or changed.
    """
    spec, topic_ids = run.spec, {topic: known.topic_id for topic, known in facts.items()}
    check_machine(run, ProcessParts(session.sparkContext).master)
    planned = plan_pipeline(session, spec, references, with_messages=take_json(spec))
    schemas = planned.table_schemas() | {spec.quarantine_table.id: QUARANTINE_SCHEMA}
    others, fields = OtherTargets(run, planned, kafka), value_fields(spec)
    others.check(topic_ids)
    writer = replace(make_writer(run, lease), references=references.versions)
    settled = settle_tables(spec, run.places, schemas, fields, own_epoch=writer.epoch, check_lease=writer.check_lease)
    targets, quarantine = open_targets(run, schemas | others.staged, writer, facts, others.make(writer))
    assembly = Assembly(
        planned,
        topic_ids,
        layouts=[target.table.layout() for target in targets],
        unhoused=settled.unhoused,
        left_out=others.left_out(settled.left_out),
        bounds=others.bounds(),
    )
    direct = assembly.direct_lane()
    rehearsal = assembly.rehearsal() if direct is not None and run.freshness != AVAILABLE_NOW else None
    lander = make_lander(assembly, targets, quarantine, writer, run.places, direct=direct, samples=samples)
    check_columns = partial(check_settled, spec, run.places, schemas, fields)
    return OpenedBatches(assembly, lander, targets, quarantine, rehearsal, check_columns)
