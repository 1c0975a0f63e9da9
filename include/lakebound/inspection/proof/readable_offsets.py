"""Which offsets a read_committed consumer gets from Kafka: what transaction markers, aborts and compaction leave."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from lakebound.errors import BrokerUnavailableError, KafkaForbiddenError
from lakebound.inspection.proof.facts import Readable
from lakebound.landing.kafka_clients import make_consumer
from lakebound.landing.kafka_errors import connection_error, who
from lakebound.landing.kafka_settings import consumer_config
from lakebound.ledger.intervals import Interval
from lakebound.spec.connection import ConnectionSpec

_BATCH = 10_000
_BATCH_SECONDS = 0.1
_SILENCE_SECONDS = 30.0
_SETTINGS: Mapping[str, str | int | bool] = {
    # Partitions are assigned by hand and nothing is ever committed: the group exists in name only.
    "group.id": "lakebound-prove",
    "isolation.level": "read_committed",
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "enable.partition.eof": True,
    "auto.offset.reset": "earliest",
    "check.crcs": False,
    "log_level": 0,
}


@dataclass
class _Reading:
    """One partition on its way from the first to the end offset."""

    end: int
    offsets: list[int] = field(default_factory=list)
    is_done: bool = False

    def take(self, offset: int) -> None:
        if offset < self.end:
            self.offsets.append(offset)
        self.is_done = offset >= self.end - 1


def read_offsets(connection: ConnectionSpec, wanted: Mapping[tuple[str, int], Interval]) -> Readable:
    """Return the readable offsets, sorted, per topic and partition.

    Args:
        connection: The broker.
        wanted: Per topic and partition the first offset and the one after the last. What Kafka has deleted of it is left out.

    Raises:
        KafkaRefusalError: Kafka refuses the login, or the user may not read the topic.
        BrokerUnavailableError: Kafka did not answer for 30 s.
    """
    readings = {place: _Reading(end) for place, (start, end) in wanted.items() if start < end}
    if readings:
        consumer = make_consumer({**consumer_config(connection), **_SETTINGS})
        try:
            consumer.assign([TopicPartition(*place, wanted[place][0]) for place in readings])
            _read(consumer, readings, connection)
        finally:
            consumer.close()
    return {place: np.array(reading.offsets, dtype=np.int64) for place, reading in readings.items()}


def _read(consumer: Consumer, readings: Mapping[tuple[str, int], _Reading], connection: ConnectionSpec) -> None:
    open_places = set(readings)
    heard, reason = time.monotonic(), "it sent nothing"
    while open_places:
        for message in consumer.consume(_BATCH, timeout=_BATCH_SECONDS):
            error = message.error()
            if error is not None and error.code() != KafkaError._PARTITION_EOF:
                reason = error.str()
                _raise_when_hopeless(error, message.topic() or "", connection)
                continue
            heard = time.monotonic()
            _take(consumer, message, readings, open_places)
        if time.monotonic() - heard > _SILENCE_SECONDS:
            silence = f"{reason}, for {_SILENCE_SECONDS:.0f} s while offsets were read"
            raise BrokerUnavailableError(connection.bootstrap_servers, silence)


def _take(
    consumer: Consumer, message: Message, readings: Mapping[tuple[str, int], _Reading], open_places: set[tuple[str, int]]
) -> None:
    place = (message.topic() or "", message.partition() or 0)
    if place not in open_places:
        return
    reading = readings[place]
    if message.error() is not None:
        reading.is_done = True
    else:
        reading.take(message.offset() or 0)
    if reading.is_done:
        open_places.remove(place)
        consumer.incremental_unassign([TopicPartition(*place)])


def _raise_when_hopeless(error: KafkaError, topic: str, connection: ConnectionSpec) -> None:
    if error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
        operation = f"READ on topic {topic}"
        raise KafkaForbiddenError(connection.bootstrap_servers, who(connection), operation) from KafkaException(error)
    if error.fatal() or error.code() == KafkaError._AUTHENTICATION:
        raise connection_error(connection, error) from KafkaException(error)
