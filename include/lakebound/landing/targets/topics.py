"""Kafka topics as targets: what a start would refuse of them, and transactions that hang."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from confluent_kafka import TopicPartition

from lakebound.errors import BrokerUnavailableError, KafkaRefusalError, LakeboundError, MissingSecretError
from lakebound.landing.kafka import KafkaFacts
from lakebound.landing.kafka_clients import make_consumer
from lakebound.landing.kafka_settings import consumer_config
from lakebound.landing.target_kind import Condition, TargetKind
from lakebound.landing.to_topics.producer import TRANSACTION_SECONDS
from lakebound.landing.to_topics.target import TopicTarget
from lakebound.spec.connection import ConnectionSpec
from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.times import seconds_in_words
from lakebound.spec.to_topics import ToTopicSpec, ledger_topic

HANGING_SECONDS = TRANSACTION_SECONDS + 60.0
"""Kafka looks for transactions whose time is over every ten seconds, and writes their markers then."""

_TIMEOUT_SECONDS = 5.0
_READ_SECONDS = 3.0
_OF_KAFKA = (BrokerUnavailableError, KafkaRefusalError, MissingSecretError)
"""Errors of which the rules about the source topics tell: it is the same broker."""


@dataclass(frozen=True)
class OpenTransaction:
    """A place up to which readers of committed records get, although there are later records.

    Attributes:
        topic: A target topic, or the ledger topic.
        partition: Its partition.
        stable: The last stable offset: where the oldest open transaction begins.
        end: The high watermark.
        begun_ms: When the first message of the transaction was made; None where that could not be read.
    """

    topic: str
    partition: int
    stable: int
    end: int
    begun_ms: int | None = None


@dataclass(frozen=True)
class WrittenTopics:
    """What the target topics are like.

    Attributes:
        refusals: By target: why a start would refuse it.
        transactions: Those that are open.
    """

    refusals: Mapping[str, str] = field(default_factory=dict)
    transactions: tuple[OpenTransaction, ...] = ()


def target_topic_refused(seen: WrittenTopics, now: float) -> Iterator[Condition]:
    """A target topic is not the one that the ledger names, or has messages that no entry explains."""
    for target, refusal in seen.refusals.items():
        yield Condition("target-topic-refused", "needs_person", refusal, "target-topic", {"target": target})


def hanging_transaction(seen: WrittenTopics, now: float) -> Iterator[Condition]:
    """A transaction is open for longer than any may be: readers of committed records get nothing after its begin."""
    for one in seen.transactions:
        if one.begun_ms is None or now - one.begun_ms / 1000 <= HANGING_SECONDS:
            continue
        sentence = (
            f"a transaction in topic {one.topic}, partition {one.partition}, has been open for "
            f"{seconds_in_words(now - one.begun_ms / 1000)}: readers of committed records get nothing from offset "
            f"{one.stable} on, although Kafka has records up to {one.end}"
        )
        evidence = {"topic": one.topic, "partition": one.partition, "last_stable_offset": one.stable, "high_watermark": one.end}
        yield Condition("hanging-transaction", "needs_person", sentence, "hanging-transaction", evidence)


class Topics(TargetKind):
    """Topics on the pipeline's broker, written in transactions with their ledger."""

    key = "to_topics"
    rules = (target_topic_refused, hanging_transaction)
    is_on_source_broker = True
    stands_alone = True
    not_compared = (
        "its rows were not compared, because Kafka has deleted messages of it or of its quarantine topic, or compacts one of "
        "them"
    )

    def open(self, one: ToTopicSpec, pipeline: PipelineSpec) -> TopicTarget:
        """Return a topic for who only looks."""
        return TopicTarget(one, pipeline.pipeline, pipeline.connection)

    def look(self, pipeline: PipelineSpec) -> WrittenTopics:
        """Return what the target topics are like; nothing where Kafka does not answer."""
        refusals: dict[str, str] = {}
        for one in pipeline.to_topics:
            try:
                self.open(one, pipeline).read_ledger()
            except _OF_KAFKA:
                return WrittenTopics()
            except LakeboundError as exc:
                refusals[one.id] = str(exc)
        names = (*(one.topic for one in pipeline.to_topics), ledger_topic(pipeline.pipeline))
        return WrittenTopics(refusals, tuple(one for name in names for one in open_transactions(pipeline.connection, name)))


def open_transactions(connection: ConnectionSpec, topic: str) -> Iterator[OpenTransaction]:
    """Yield the place of the oldest open transaction of each partition that has one; none where Kafka does not tell."""
    try:
        facts = KafkaFacts(connection, timeout_seconds=_TIMEOUT_SECONDS)
        # The ends first: what begins between the two questions must not look open.
        ends = facts.topics([topic], isolation="read_uncommitted")[topic].latest
        stable = facts.topics([topic])[topic].latest
    except LakeboundError:
        return
    for partition, end in ends.items():
        if stable.get(partition, end) < end:
            begun = _made_at(connection, topic, partition, stable[partition])
            yield OpenTransaction(topic, partition, stable[partition], end, begun)


def _made_at(connection: ConnectionSpec, topic: str, partition: int, offset: int) -> int | None:
    """Return the timestamp of the first message at or after an offset, committed or not."""
    config = {
        **consumer_config(connection),
        "group.id": f"lakebound-doctor-{uuid.uuid4().hex}",
        "enable.auto.commit": False,
        "isolation.level": "read_uncommitted",
        "log_level": 0,
    }
    consumer = make_consumer(config)
    try:
        consumer.assign([TopicPartition(topic, partition, offset)])
        message = consumer.poll(_READ_SECONDS)
        return None if message is None or message.error() else int(message.timestamp()[1])
    finally:
        consumer.close()


TARGET_KIND = Topics()
