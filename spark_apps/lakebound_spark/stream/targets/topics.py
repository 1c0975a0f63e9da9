"""The target topics of an application: looked at before anything is made, then opened with a producer of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema

from lakebound.errors import TableMismatchError
from lakebound.first_line import first_line
from lakebound.landing.kafka import KafkaFacts
from lakebound.landing.other_target import OtherTarget
from lakebound.landing.run_spec import RunSpec
from lakebound.landing.to_topics.messages import compaction_problem, quarantine_compaction_problem, staged_schema
from lakebound.landing.to_topics.producer import TopicProducer
from lakebound.landing.to_topics.target import TopicTarget
from lakebound.ledger.entry import check_owner, check_topic_ids
from lakebound.spec.real_time import REAL_TIME
from lakebound.spec.to_topics import ToTopicSpec
from lakebound.tables.schemas import normalise_schema
from lakebound_spark.batch.landable import Bound
from lakebound_spark.batch.message_bounds import MessageBound, topic_bounds
from lakebound_spark.batch.targets import Writer
from lakebound_spark.batch.topic_rows import with_json
from lakebound_spark.stream.target_kind import ApplicationTargets


class TopicTargets(ApplicationTargets):
    """Topics on the pipeline's broker."""

    key = "to_topics"
    takes_json = True

    @cached_property
    def messages(self) -> list[MessageBound]:
        """Which messages each topic takes."""
        return message_bounds(self.run, self.kafka)

    def staged_schema(self, one: ToTopicSpec) -> pa.Schema:
        """Return the columns of the files in which rows wait for a topic's transaction."""
        return staged_schema(one, self.planned.arrow_rows)

    def check(self, topic_ids: Mapping[str, str]) -> None:
        """Check, before anything is made, that the pipeline can land in its target topics; ``check_target_topics``."""
        check_target_topics(self.run, self.planned.arrow_rows, topic_ids)

    def make(self, writer: Writer, folder: Path) -> list[OtherTarget]:
        """Return the target topics with one producer, which fences no other one before the first ledger is read."""
        spec = self.run.spec
        most_bytes = [one.largest_bytes for one in self.messages]
        producer = TopicProducer(spec.connection, spec.pipeline, writer.check_lease, most_bytes)
        return [
            TopicTarget(
                one,
                spec.pipeline,
                spec.connection,
                producer=producer,
                schema=self.staged[one.id],
                scratch=folder / one.topic,
            )
            for one in self.specs
        ]

    def bounds(self) -> list[Bound]:
        """Return which messages the topics take."""
        return topic_bounds(self.messages)

    @classmethod
    def plan_problems(cls, run: RunSpec, one: ToTopicSpec, output: DataFrame) -> Iterator[tuple[str, str | None]]:
        """Yield what keeps a pipeline from sending its rows to a topic."""
        try:
            rows = with_json(lambda frame: frame)(output)
            staged_schema(one, normalise_schema(to_arrow_schema(rows.schema)))
        except TableMismatchError as exc:
            yield f"{one.id}: {exc.difference}", "key"
        except (PySparkException, pa.ArrowException, TypeError) as exc:
            yield f"{one.id}: Spark has no JSON for the rows: {first_line(exc)}", None


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


def message_bounds(run: RunSpec, facts: KafkaFacts) -> list[MessageBound]:
    """Return which messages each target topic takes; Kafka's defaults where the user may not ask."""
    settings = facts.written_settings(one.topic for one in run.spec.to_topics)
    return [
        MessageBound(one.id, one.key, settings[one.topic].largest_batch_bytes, settings[one.topic].is_compacted)
        for one in run.spec.to_topics
    ]


TARGETS = TopicTargets
