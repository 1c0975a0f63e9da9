"""Looks at the target topics: whether a start would refuse one, and which transactions are open in them. Reads only."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

from confluent_kafka import TopicPartition

from lakebound.errors import BrokerUnavailableError, KafkaRefusalError, LakeboundError, MissingSecretError
from lakebound.inspection.doctor.pipeline.facts import OpenTransaction, WrittenTopics
from lakebound.landing.kafka import KafkaFacts
from lakebound.landing.kafka_clients import make_consumer
from lakebound.landing.kafka_settings import consumer_config
from lakebound.landing.to_topics.target import TopicTarget
from lakebound.spec.connection import ConnectionSpec
from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.to_topics import ledger_topic

_TIMEOUT_SECONDS = 5.0
_READ_SECONDS = 3.0
_OF_KAFKA = (BrokerUnavailableError, KafkaRefusalError, MissingSecretError)
"""Errors of which the rules about the source topics tell: it is the same broker."""


def look_at_written(spec: PipelineSpec) -> WrittenTopics:
    """Return what the target topics are like; nothing where Kafka does not answer."""
    refusals: dict[str, str] = {}
    for one in spec.to_topics:
        try:
            TopicTarget(one, spec.pipeline, spec.connection).read_ledger()
        except _OF_KAFKA:
            return WrittenTopics()
        except LakeboundError as exc:
            refusals[one.id] = str(exc)
    names = [*(one.topic for one in spec.to_topics), ledger_topic(spec.pipeline)] if spec.to_topics else []
    return WrittenTopics(refusals, tuple(one for name in names for one in open_transactions(spec.connection, name)))


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
