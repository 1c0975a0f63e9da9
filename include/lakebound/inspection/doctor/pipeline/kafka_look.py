"""Asks Kafka what a diagnosis needs: topics, their offsets, waiting records, and retention. Reads only."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping, Sequence

from confluent_kafka import Consumer, KafkaException, TopicPartition

from lakebound.errors import BrokerUnavailableError, KafkaForbiddenError, LakeboundError, MissingSecretError, MissingTopicError
from lakebound.inspection.doctor.pipeline.facts import KafkaLook, TopicRetention, Waiting
from lakebound.landing.kafka import KafkaFacts
from lakebound.landing.kafka_clients import make_consumer
from lakebound.landing.kafka_settings import consumer_config
from lakebound.ledger.marks import NextOffsets
from lakebound.ledger.topics import TopicFacts
from lakebound.spec.pipeline import PipelineSpec

TIMEOUT_SECONDS = 5.0
_RATE_SECONDS = 600.0
_READ_SECONDS = 3.0


def look_at_kafka(spec: PipelineSpec) -> KafkaLook:
    """Return what the broker says of the pipeline's topics."""
    try:
        broker = KafkaFacts(spec.connection, timeout_seconds=TIMEOUT_SECONDS)
        return KafkaLook(topics={topic: facts for name in spec.topics for topic, facts in _one(broker, name).items()})
    except BrokerUnavailableError as exc:
        return KafkaLook(problem="unavailable", sentence=str(exc))
    except MissingSecretError as exc:
        return KafkaLook(problem="missing_secret", sentence=str(exc))
    except (LakeboundError, KafkaException, ValueError) as exc:
        return KafkaLook(problem="refused", sentence=str(exc))


def look_at_waiting(spec: PipelineSpec, look: KafkaLook, marks: NextOffsets, now: float) -> KafkaLook:
    """Return the facts with the age of waiting records and the retention; without an answer in time they stay unknown.

    Args:
        spec: The pipeline; its connection is used.
        look: What ``look_at_kafka`` returned; returned as it is if the broker could not be asked.
        marks: Next offset to land, by topic and partition.
        now: Epoch seconds; the rate of new records is that of the ten minutes before.
    """
    places = waiting_places(look, marks)
    if look.problem is not None:
        return look
    unread: list[str] = []
    waiting: dict[tuple[str, int], Waiting] = {}
    retention: dict[str, TopicRetention] = {}
    topics = [topic for topic, facts in look.topics.items() if facts is not None]
    try:
        broker = KafkaFacts(spec.connection, timeout_seconds=TIMEOUT_SECONDS)
        try:
            retention = {topic: TopicRetention(*kept) for topic, kept in broker.retention(topics).items()}
        except KafkaForbiddenError as exc:
            unread.append(f"how long Kafka keeps records is not known: {exc}")
        before = broker.offsets_at(topics, int((now - _RATE_SECONDS) * 1000)) if places else {}
        times = _timestamps(spec, places) if places else {}
        for topic, partition in places:
            facts = look.topics[topic]
            produced = (facts.latest[partition] if facts else 0) - before.get(topic, {}).get(partition, 0)
            waiting[topic, partition] = Waiting(times.get((topic, partition)), max(0, produced) / _RATE_SECONDS)
    except (LakeboundError, KafkaException) as exc:
        unread.append(f"the timestamps of the records that wait in Kafka could not be read: {exc}")
    return KafkaLook(
        topics=look.topics,
        problem=look.problem,
        sentence=look.sentence,
        waiting=waiting,
        retention=retention,
        unread=tuple(unread),
    )


def waiting_places(look: KafkaLook, marks: NextOffsets) -> dict[tuple[str, int], int]:
    """Return the first waiting offset of each partition in which records wait that Kafka still has."""
    return {
        (topic, partition): max(mark, facts.earliest[partition])
        for topic, partitions in marks.items()
        if (facts := look.topics.get(topic)) is not None
        for partition, mark in partitions.items()
        if partition in facts.latest and max(mark, facts.earliest[partition]) < facts.latest[partition]
    }


def _one(broker: KafkaFacts, topic: str) -> Mapping[str, TopicFacts | None]:
    try:
        return broker.topics([topic])
    except MissingTopicError:
        return {topic: None}


def _timestamps(spec: PipelineSpec, places: Mapping[tuple[str, int], int]) -> dict[tuple[str, int], int]:
    """Return the timestamp of the first readable record at or after each place; joins no group and commits no offset."""
    consumer = make_consumer(
        {
            **consumer_config(spec.connection),
            "group.id": f"lakebound-doctor-{uuid.uuid4().hex}",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "fetch.message.max.bytes": 64 * 1024,
            "log_level": "0",
        }
    )
    try:
        left = [TopicPartition(topic, partition, offset) for (topic, partition), offset in places.items()]
        consumer.assign(left)
        return _first_of_each(consumer, left)
    finally:
        consumer.close()


def _first_of_each(consumer: Consumer, wanted: Sequence[TopicPartition]) -> dict[tuple[str, int], int]:
    found: dict[tuple[str, int], int] = {}
    deadline = time.monotonic() + _READ_SECONDS
    while len(found) < len(wanted) and time.monotonic() < deadline:
        message = consumer.poll(0.2)
        if message is None or message.error():
            continue
        place = (str(message.topic()), int(message.partition() or 0))
        if place not in found:
            found[place] = int(message.timestamp()[1])
            consumer.incremental_unassign([TopicPartition(*place)])
    return found
