"""What happens before a stream in real time: what cannot run is refused, the topics are opened, and the plan is made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession

from lakebound.control.lease import Lease
from lakebound.errors import RealTimeRefusedError
from lakebound.landing.kafka import KafkaFacts
from lakebound.landing.real_time_check import few_slots
from lakebound.landing.run_spec import RunSpec
from lakebound.landing.table_settling import settle_tables
from lakebound.ledger.marks import NextOffsets
from lakebound.ledger.start import covered_from, plan_start
from lakebound.ledger.topics import TopicFacts
from lakebound.spec.real_time import REAL_TIME, has_both_ends, real_time_end, real_time_problem
from lakebound_spark.batch.record_format import value_fields
from lakebound_spark.batch.schema import QUARANTINE_SCHEMA
from lakebound_spark.batch.targets import Target, Writer
from lakebound_spark.landing.parts import ProcessParts, SessionParts, plan_pipeline
from lakebound_spark.real_time.refusals import real_time_refusal
from lakebound_spark.real_time.rows import real_time_rows
from lakebound_spark.real_time.spark_decoder import make_spark_decoder
from lakebound_spark.stream.opening import make_writer, open_others, open_targets
from lakebound_spark.stream.source import read_stream
from lakebound_spark.stream.targets.topics import TopicTargets, check_target_topics


@dataclass(frozen=True)
class Opened:
    """What a stream in real time needs.

    Attributes:
        targets: The topics as their ledgers stand.
        quarantine: The quarantine table.
        writer: This application.
        topic_ids: Kafka's ids of the topics that are read, by their names.
        rows_from: Returns the messages of what is read from some offsets on.
    """

    targets: list[Target]
    quarantine: Target
    writer: Writer
    topic_ids: dict[str, str]
    rows_from: Callable[[NextOffsets], DataFrame]

    def planned(self, facts: Mapping[str, TopicFacts]) -> NextOffsets:
        """Return where a query starts, as the ledgers and Kafka's facts say."""
        return plan_start([target.view.coverage for target in self.targets], facts)

    def reopen(self) -> None:
        """Read every ledger again."""
        for target in self.targets:
            target.refresh()


def plan_in_real_time(session: SparkSession, run: RunSpec, facts: Mapping[str, TopicFacts]) -> SessionParts:
    """Refuse what cannot run in real time; nothing is created or changed.

    Args:
        session: Spark's.
        run: The orders.
        facts: What Kafka has of each topic that is read, by the topic's name.

    Raises:
        RealTimeRefusedError: It cannot run so.
        LakeboundError: The pipeline is refused for another reason.
    """
    planned = plan_pipeline(session, run.spec, with_messages=True)
    _check(run, planned, facts)
    check_target_topics(run, planned.arrow_rows, {topic: known.topic_id for topic, known in facts.items()})
    return planned


def open_in_real_time(
    run: RunSpec,
    lease: Lease,
    facts: Mapping[str, TopicFacts],
    kafka: KafkaFacts,
    planned: SessionParts,
    quarantine: Target | None = None,
) -> Opened:
    """Open the topics, and the quarantine table, which gets nothing here but the epoch of each start.

    Args:
        run: The orders.
        lease: Of this application; its epoch goes into every entry.
        facts: What Kafka has of each topic that is read, by the topic's name.
        kafka: Asks Kafka.
        planned: The pipeline, as ``plan_in_real_time`` returns it.
        quarantine: The quarantine table where a query in batches has opened it, and its tables; None where there is none.

    Raises:
        LakeboundError: The pipeline is refused.
    """
    spec = real_time_end(run.spec)
    own = run.model_copy(update={"spec": spec})
    writer = replace(make_writer(own, lease), delivery="at_least_once")
    schemas, others = {spec.quarantine_table.id: QUARANTINE_SCHEMA}, TopicTargets(own, planned, kafka)
    if quarantine is None:
        settle_tables(spec, own.places, schemas, value_fields(spec), own_epoch=writer.epoch, check_lease=writer.check_lease)
    topics = others.made(writer)
    if quarantine is None:
        targets, quarantine = open_targets(own, schemas | others.staged, writer, facts, topics)
    else:
        targets = open_others(own, others.staged, writer, facts, topics)
    topic_ids = {topic: known.topic_id for topic, known in facts.items()}
    session, decoder = planned.session, make_spark_decoder(spec, topic_ids)

    def rows_from(start: NextOffsets) -> DataFrame:
        records = read_stream(session, spec, start, in_batches=False)
        held = {target.id: covered_from(target.coverage, start) for target in targets}
        held = {target: offsets for target, offsets in held.items() if offsets}
        return real_time_rows(session, spec, records, decoder, planned.function, others.messages, held)

    return Opened(targets, quarantine, writer, topic_ids, rows_from)


def _check(run: RunSpec, planned: SessionParts, facts: Mapping[str, TopicFacts]) -> None:
    spec = run.spec
    problem = real_time_problem(spec)
    reason = problem[1] if problem is not None else _bounded(run)
    partitions = sum(len(known.earliest) for known in facts.values())
    few = few_slots(partitions, _slots(planned.process), beside_batches=has_both_ends(spec, REAL_TIME))
    reason = reason or few or real_time_refusal(planned.session, spec, planned.function)
    if reason is not None:
        raise RealTimeRefusedError(spec.pipeline, reason)


def _bounded(run: RunSpec) -> str | None:
    return "a bounded run is made of batches" if run.until is not None else None


def _slots(process: ProcessParts) -> int | None:
    """Return how many tasks run at the same time; None where that is not known before executors have come."""
    return None if process.is_on_cluster else process.cores
