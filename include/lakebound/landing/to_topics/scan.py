"""Which rows a target topic holds, by the position of the source record that each message carries."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from confluent_kafka import KafkaError, TopicPartition

from lakebound.errors import BrokerUnavailableError
from lakebound.landing.direct_read import readable_headers
from lakebound.landing.kafka import KafkaFacts
from lakebound.landing.kafka_clients import make_consumer
from lakebound.landing.kafka_errors import told_error
from lakebound.landing.kafka_settings import consumer_config
from lakebound.landing.to_topics.messages import SOURCE_HEADER
from lakebound.landing.to_topics.stable import settled_ends
from lakebound.spec.connection import ConnectionSpec
from lakebound.tables.table import KAFKA_TYPE

_AT_ONCE = 10_000
_WAIT_SECONDS = 0.1
_SILENCE_SECONDS = 30.0
_PARTS = 4

Source = tuple[str | None, int | None, int | None, int | None]
"""Topic, partition, offset and ordinal; nothing where a message does not tell."""


def scan_sources(connection: ConnectionSpec, topic: str, topic_ids: Mapping[str, str]) -> pa.Table | None:
    """Return the origin of every committed message, as ``Table.scan_kafka`` does; None where Kafka has deleted some, or may.

    Args:
        connection: The broker.
        topic: The target topic.
        topic_ids: Kafka's ids of the source topics, by name: a message does not tell it.

    Raises:
        OpenTransactionError: A transaction does not end.
        BrokerUnavailableError: Kafka does not give the messages.
    """
    facts = KafkaFacts(connection)
    ends = settled_ends(facts, topic)
    # Of a compacted topic the older messages of a key go, which is no loss of rows.
    is_compacted = facts.written_settings([topic])[topic].is_compacted
    if is_compacted or any(facts.topics([topic])[topic].earliest.values()):
        return None
    return _read(connection, topic, ends, topic_ids)


def source_of(headers: Any) -> Source:
    """Return the source position in a message's headers."""
    value = dict(headers or ()).get(SOURCE_HEADER)
    parts = value.decode(errors="replace").split("/") if isinstance(value, bytes) else []
    if len(parts) != _PARTS or not all(part.isascii() and part.isdecimal() for part in parts[1:]):
        return None, None, None, None
    return parts[0], int(parts[1]), int(parts[2]), int(parts[3])


class _Sources:
    """Source positions in Arrow's columns, which grow: the messages themselves would fill the memory."""

    def __init__(self, topic_ids: Mapping[str, str]) -> None:
        self._topic_ids = topic_ids
        self._waiting: list[Source] = []
        self._tables: list[pa.Table] = []

    def add(self, source: Source) -> None:
        """Take one more."""
        self._waiting.append(source)
        if len(self._waiting) >= _AT_ONCE:
            self._tables.append(self._turned())

    def table(self) -> pa.Table:
        """Return all."""
        return pa.concat_tables([*self._tables, self._turned()])

    def _turned(self) -> pa.Table:
        sources, self._waiting = self._waiting, []
        columns = [[source[part] for source in sources] for part in range(_PARTS)]
        ids = [self._topic_ids.get(source[0]) if source[0] is not None else None for source in sources]
        found = {
            "topic": pa.array(columns[0], pa.string()),
            "topic_id": pa.array(ids, pa.string()),
            "partition": pa.array(columns[1], pa.int32()),
            "offset": pa.array(columns[2], pa.int64()),
            "timestamp": pa.nulls(len(sources), pa.timestamp("us", tz="UTC")),
            "ordinal": pa.array(columns[3], pa.int32()),
        }
        return pa.table(found, schema=pa.schema(list(KAFKA_TYPE)))


def _read(connection: ConnectionSpec, topic: str, ends: Mapping[int, int], topic_ids: Mapping[str, str]) -> pa.Table:
    consumer = make_consumer(
        {
            **consumer_config(connection),
            # Assigned by hand and never committed: the id only names the reader.
            "group.id": "lakebound-prove",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "log_level": 0,
        }
    )
    try:
        positions = {partition: 0 for partition, end in ends.items() if end}
        consumer.assign([TopicPartition(topic, partition, 0) for partition in positions])
        sources = _Sources(topic_ids)
        heard = time.monotonic()
        while any(position < ends[partition] for partition, position in positions.items()):
            for message in consumer.consume(_AT_ONCE, _WAIT_SECONDS):
                given: Any = message
                error = given.error()
                if error is None:
                    positions[given.partition()] = given.offset() + 1
                    if given.offset() < ends[given.partition()]:
                        sources.add(source_of(readable_headers(given)))
                elif error.code() == KafkaError._PARTITION_EOF:
                    positions[given.partition()] = given.offset()
                elif not error.retriable():
                    raise told_error(connection, error, None, topic, "READ")
                heard = time.monotonic()
            if time.monotonic() - heard > _SILENCE_SECONDS:
                reason = f"topic {topic} was not read to its end: no message for {_SILENCE_SECONDS:.0f} s"
                raise BrokerUnavailableError(connection.bootstrap_servers, reason)
        return sources.table()
    finally:
        consumer.close()
