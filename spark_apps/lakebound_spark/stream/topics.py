"""The target topics of an application: looked at before anything is made, then opened with a producer of its own."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice

import pyarrow as pa

from lakebound.control.private_files import make_private_folder
from lakebound.errors import BrokerUnavailableError, LakeboundError, TableMismatchError
from lakebound.landing.kafka import KafkaFacts
from lakebound.landing.run_spec import RunSpec
from lakebound.landing.spark_command import is_local
from lakebound.landing.to_topics.messages import (
    JSON_COLUMN,
    compaction_problem,
    quarantine_compaction_problem,
    staged_schema,
)
from lakebound.landing.to_topics.producer import TopicProducer
from lakebound.landing.to_topics.target import TopicTarget
from lakebound.ledger.entry import check_owner, check_topic_ids
from lakebound.spec.real_time import REAL_TIME
from lakebound_spark.batch.message_bounds import MessageBound
from lakebound_spark.batch.targets import Writer

_FOLDER = "topics"


def newest_topic_epoch(run: RunSpec) -> int:
    """Return the newest epoch in the ledgers of the target topics, as far as Kafka gives them now; 0 without any.

    The tables have every epoch before the topics. So this only matters where tables and state are both new.
    """
    epochs = []
    for one in run.spec.to_topics:
        try:
            epochs.append(TopicTarget(one, run.spec.pipeline, run.spec.connection).read_ledger().epoch)
        except BrokerUnavailableError:
            break  # one wait is enough
        except LakeboundError:
            continue
    return max(epochs, default=0)


def check_target_topics(run: RunSpec, output: pa.Schema, topic_ids: Mapping[str, str]) -> None:
    """Check, before anything is made, that the pipeline can land in its target topics.

    Args:
        run: The orders.
        output: Columns of the pipeline's rows.
        topic_ids: Kafka's ids of the topics that are read, by their names.

    Raises:
        TableMismatchError: There is no such key column, or a topic is compacted, and its messages would have no key: a target,
            or in real time the topic of bad records.
        TopicRecreatedError: A topic that is read is another one than that of the ledger.
        TargetNotEmptyError: A topic has messages, and the ledger topic no entry of it.
        TargetRecreatedError: A topic is another one than its entry names.
        ForeignTableError: Another pipeline's entry stands in the ledger topic.
        MissingTopicError: There is no such topic.
    """
    topics, bad = run.spec.to_topics, [run.spec.quarantine_topic] if run.freshness == REAL_TIME else []
    written = [*(one.topic for one in topics), *bad]
    settings = KafkaFacts(run.spec.connection).written_settings(written) if written else {}
    for topic in bad:
        if (problem := quarantine_compaction_problem(topic, is_compacted=settings[topic].is_compacted)) is not None:
            raise TableMismatchError(f"topic:{topic}", problem)
    for one in topics:
        staged_schema(one, output)
        if (problem := compaction_problem(one, is_compacted=settings[one.topic].is_compacted)) is not None:
            raise TableMismatchError(one.id, problem)
        entry = TopicTarget(one, run.spec.pipeline, run.spec.connection).read_ledger().entry
        if entry is not None:
            check_owner(entry, run.spec.pipeline, one.id)
            check_topic_ids(entry.coverage, topic_ids)


def check_machine(run: RunSpec, master: str) -> None:
    """Check that rows which wait for a transaction are where the driver is.

    Args:
        run: The orders.
        master: Of Spark.

    Raises:
        TableMismatchError: They would be written on other machines.
    """
    for one in run.spec.to_topics:
        if not is_local(master):
            reason = f"its rows wait on the driver's machine, and Spark runs on {master}; run the pipeline by the backend local"
            raise TableMismatchError(one.id, reason)


def newest_landed_topic_epoch(run: RunSpec) -> int:
    """Return the epoch of the newest commit with rows, over all target topics, as far as Kafka tells; 0 without any."""
    epochs = [0]
    for one in run.spec.to_topics:
        try:
            entries = TopicTarget(one, run.spec.pipeline, run.spec.connection).entries()
            epochs += islice((found.entry.epoch for found in entries if found.entry.rows), 1)
        except LakeboundError:
            break  # one wait is enough
    return max(epochs)


def message_bounds(run: RunSpec, facts: KafkaFacts) -> list[MessageBound]:
    """Return which messages each target topic takes; Kafka's defaults where the user may not ask."""
    settings = facts.written_settings(one.topic for one in run.spec.to_topics)
    return [
        MessageBound(one.id, one.key, settings[one.topic].largest_batch_bytes, settings[one.topic].is_compacted)
        for one in run.spec.to_topics
    ]


def make_topic_targets(
    run: RunSpec, writer: Writer, bounds: list[MessageBound], schemas: Mapping[str, pa.Schema]
) -> list[TopicTarget]:
    """Return the target topics with one producer, which fences no other one before the first ledger is read.

    Args:
        run: The orders.
        writer: This application.
        bounds: Of the messages.
        schemas: Columns of the files in which rows wait, by the target's id.
    """
    spec = run.spec
    if not spec.to_topics:
        return []
    producer = TopicProducer(spec.connection, spec.pipeline, writer.check_lease, [one.largest_bytes for one in bounds])
    folder = run.control.checkpoint(run.app_id) / _FOLDER
    make_private_folder(folder)
    return [
        TopicTarget(one, spec.pipeline, spec.connection, producer=producer, schema=schemas[one.id], scratch=folder / one.topic)
        for one in spec.to_topics
    ]


def left_out_by_targets(run: RunSpec, output: pa.Schema, left_out: Mapping[str, frozenset[str]]) -> dict[str, frozenset[str]]:
    """Return per target the columns that it does not get: tables no JSON, topics nothing but it, their key and ``_kafka``.

    Args:
        run: The orders.
        output: Columns of the pipeline's rows, with their JSON.
        left_out: What tables do not get for other reasons.
    """
    if not run.spec.to_topics:
        return dict(left_out)
    of_tables = {one.id: left_out.get(one.id, frozenset()) | {JSON_COLUMN} for one in run.spec.tables}
    of_topics = {one.id: frozenset(output.names) - {*staged_schema(one, output).names} for one in run.spec.to_topics}
    return {**of_tables, **of_topics}
