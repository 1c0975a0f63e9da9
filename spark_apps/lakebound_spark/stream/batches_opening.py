"""What happens before a stream in batches: what cannot land is refused, the targets are opened, and the lanes are made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import to_arrow_schema

from lakebound.control.lease import Lease
from lakebound.landing.kafka import KafkaFacts
from lakebound.landing.run_spec import RunSpec
from lakebound.landing.sample_recorder import SampleRecorder
from lakebound.landing.spark_command import is_local
from lakebound.landing.table_settling import check_settled, settle_tables
from lakebound.landing.to_stores import store_rows
from lakebound.landing.to_topics.messages import staged_schema
from lakebound.ledger.marks import NextOffsets
from lakebound.ledger.topics import TopicFacts
from lakebound.operations.release.reading import read_places
from lakebound.spec.pipeline import AVAILABLE_NOW
from lakebound.tables.schemas import normalise_schema
from lakebound.tables.target import LandingTarget
from lakebound_spark.batch.batch import BatchLander
from lakebound_spark.batch.decode import make_decoder, value_fields, value_schema
from lakebound_spark.batch.direct import make_direct_lane
from lakebound_spark.batch.doubtful import SparkDecoding
from lakebound_spark.batch.failing_records import RaisingRecords
from lakebound_spark.batch.landable import make_check
from lakebound_spark.batch.lanes import How, RowNumbers
from lakebound_spark.batch.local_transform import LocalTransform
from lakebound_spark.batch.message_bounds import topic_bounds
from lakebound_spark.batch.plan_keeper import PlanKeeper
from lakebound_spark.batch.quarantine_landing import QuarantineLander
from lakebound_spark.batch.quarantine_sampling import QuarantineSampling
from lakebound_spark.batch.rehearsal import Rehearsal, nothing_waits
from lakebound_spark.batch.rescue import Rescuer
from lakebound_spark.batch.row_hours import make_hour_column
from lakebound_spark.batch.schema import QUARANTINE_SCHEMA, table_schema
from lakebound_spark.batch.store_bounds import store_bounds
from lakebound_spark.batch.targets import Target
from lakebound_spark.batch.tombstones import make_tombstones
from lakebound_spark.batch.topic_rows import with_json, without_json
from lakebound_spark.batch.transform import load_transform, planned_input, planned_output
from lakebound_spark.batch.transform_plan import may_multiply
from lakebound_spark.reference.book import ReferenceBook
from lakebound_spark.stream.opening import make_writer, open_targets, reopen, start_offsets
from lakebound_spark.stream.stores import check_stores, left_out_by_stores, make_store_targets
from lakebound_spark.stream.topics import (
    check_machine,
    check_target_topics,
    left_out_by_targets,
    make_topic_targets,
    message_bounds,
)


@dataclass
class OpenedBatches:
    """What a stream in batches needs.

    Attributes:
        lander: Lands batches.
        targets: Tables, topics and stores as their ledgers stand.
        quarantine: The quarantine table.
        rehearsal: Of the first batch; None where the driver decodes no batch, where the first one needs nothing of Spark, and
            after it has been.
        check_columns: Checks that the tables' columns take the pipeline's.
        raising: Finds records on which the transform raises; None without one.
    """

    lander: BatchLander
    targets: list[Target]
    quarantine: Target
    rehearsal: Rehearsal | None
    check_columns: Callable[[], object]
    raising: RaisingRecords | None = None

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
    spec = run.spec
    topic_ids = {topic: known.topic_id for topic, known in facts.items()}
    master = str(session.sparkContext.master)
    check_machine(run, master)
    transform = load_transform(spec, references.frames)
    if spec.to_topics:
        transform = with_json(transform)
    output = planned_output(session, spec, transform)
    hour_column = make_hour_column(spec, output.schema)
    schemas = {table.id: table_schema(without_json(output.schema), table) for table in spec.tables}
    schemas[spec.quarantine_table.id] = QUARANTINE_SCHEMA
    rows = normalise_schema(to_arrow_schema(output.schema))
    check_target_topics(run, rows, topic_ids)
    plain = normalise_schema(to_arrow_schema(without_json(output.schema)))
    stored = {one.id: store_rows.staged_schema(one, plain) for one in spec.to_stores}
    check_stores(run, master, stored)
    staged = {one.id: staged_schema(one, rows) for one in spec.to_topics} | stored
    writer = replace(make_writer(run, lease), references=references.versions)
    settled = settle_tables(
        spec, run.places, schemas, value_fields(spec), own_epoch=writer.epoch, check_lease=writer.check_lease
    )
    bounds = message_bounds(run, kafka)
    of_stores = [bound for one in spec.to_stores for bound in store_bounds(one, plain)]
    others: list[LandingTarget] = [
        *make_topic_targets(run, writer, bounds, staged),
        *make_store_targets(run, writer, stored),
    ]
    targets, quarantine = open_targets(run, schemas | staged, writer, facts, others)
    decoder = make_decoder(spec, topic_ids, settled.unhoused)
    layouts = [target.table.layout() for target in targets]
    asked = [*topic_bounds(bounds), *of_stores]
    check = make_check(output.schema, layouts, has_transform=spec.transform is not None, bounds=asked)
    how: How = {
        "multiplies": may_multiply(output),
        "left_out": left_out_by_targets(run, rows, settled.left_out) | left_out_by_stores(stored, rows),
        "check": check,
        "hour_column": hour_column,
        "numbers": RowNumbers(),
    }
    given = planned_input(session, spec).schema
    # The JSON for topics needs Spark, too; on that nothing can raise.
    local = (
        LocalTransform(PlanKeeper(transform, references.tokens), given)
        if spec.transform is not None or spec.to_topics
        else None
    )
    raising = RaisingRecords(spec, transform, given) if spec.transform is not None else None
    tombstones = make_tombstones(spec, output.schema)
    decoding = SparkDecoding(decoder, keeps_skipped=tombstones is not None)
    direct = make_direct_lane(spec, topic_ids, settled.unhoused, check, decoding, local, raising)
    cores = session.sparkContext.defaultParallelism
    own_places = partial(read_places, spec.quarantine_table, run.places)
    kept, schema = spec.quarantine_samples, value_schema(spec)
    sampling = QuarantineSampling(samples, kept, schema) if kept else None
    bad = QuarantineLander(quarantine, writer, own_places, schema, sampling)
    rescuer = Rescuer(session, spec)
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
        tombstones=tombstones,
        cores=cores,
        on_cluster=not is_local(str(session.sparkContext.master)),
    )
    rehearsal = None
    if direct is not None and local is not None and run.freshness != AVAILABLE_NOW:
        rehearsal = Rehearsal(schema, spec.topics[0], decoding, local)
    check_columns = partial(check_settled, spec, run.places, schemas, value_fields(spec))
    return OpenedBatches(lander, targets, quarantine, rehearsal, check_columns, raising)
