"""The ledger topic of a pipeline: compacted, of one partition, a record per commit, keyed by the target's id."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.cimpl import NewTopic

from lakebound.errors import BrokerUnavailableError, LakeboundError, MissingTopicError
from lakebound.landing.kafka import DEFAULT_TIMEOUT_SECONDS, KafkaFacts
from lakebound.landing.kafka_clients import make_admin, make_consumer
from lakebound.landing.kafka_errors import told_error
from lakebound.landing.kafka_settings import client_config, consumer_config
from lakebound.landing.to_topics.ledger_record import LedgerRecord, decode_record
from lakebound.landing.to_topics.stable import settled_ends
from lakebound.spec.connection import ConnectionSpec
from lakebound.spec.to_topics import ledger_topic
from lakebound.tables.entries import MAX_ENTRY_BYTES

_FIRST_PIECE = 100
"""Offsets that are read first, from the end: two per commit, the record's and its transaction marker's."""
_GROWTH = 10
_PATIENCE_SECONDS = 30.0
_POLL_SECONDS = 0.05
_SETTINGS = {
    "cleanup.policy": "compact",
    # Kafka compacts closed segments only: those of the default size would keep the records of months.
    "segment.bytes": str(16 * 1024 * 1024),
    "min.cleanable.dirty.ratio": "0.1",
    "max.message.bytes": str(MAX_ENTRY_BYTES),
}


class LedgerTopic:
    """Reads and makes the ledger topic of one pipeline. Not for several threads at once."""

    def __init__(self, connection: ConnectionSpec, pipeline: str) -> None:
        """Connect to nothing yet.

        Args:
            connection: The broker.
            pipeline: Whose ledger it is.
        """
        self.name = ledger_topic(pipeline)
        self._connection = connection
        self._group = f"lakebound-{pipeline}-ledger"
        self._facts: KafkaFacts | None = None

    @property
    def facts(self) -> KafkaFacts:
        """Asks the broker."""
        if self._facts is None:
            self._facts = KafkaFacts(self._connection)
        return self._facts

    def end(self) -> int | None:
        """Return the first offset after the records that a reader of committed records sees now; None without the topic."""
        return self._latest()

    def settled_end(self) -> int | None:
        """Return the end of all that is there now, once none of it can change any more; None without the topic.

        Raises:
            OpenTransactionError: A transaction does not end.
        """
        try:
            return settled_ends(self.facts, self.name)[0]
        except MissingTopicError:
            return None

    def newest_first(self, target: str, end: int) -> Iterator[LedgerRecord]:
        """Yield the records of a target before an offset, newest first, as far back as compaction has left them.

        Raises:
            BadEntryError: One of them cannot be read.
            BrokerUnavailableError: Kafka does not give them.
        """
        first = self.facts.topics([self.name])[self.name].earliest[0]
        key, piece = target.encode(), _FIRST_PIECE
        while end > first:
            start = max(first, end - piece)
            found = [message for message in self._read(start, end) if message.key() == key]
            for message in reversed(found):
                yield decode_record(message.value(), message.offset(), message.timestamp()[1], f"{self.name}, {target}")
            end, piece = start, piece * _GROWTH

    def make(self) -> None:
        """Make the topic where it is not there, and wait until it can be written to.

        Raises:
            KafkaForbiddenError: The user may not create it.
            BrokerUnavailableError: Kafka did not answer in time.
        """
        if self.end() is not None:
            return
        admin = make_admin(client_config(self._connection))
        wanted = NewTopic(self.name, num_partitions=1, replication_factor=-1, config=_SETTINGS)
        try:
            made = admin.create_topics([wanted], request_timeout=DEFAULT_TIMEOUT_SECONDS)
            made[self.name].result(DEFAULT_TIMEOUT_SECONDS + 1)
        except KafkaException as exc:
            if exc.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise told_error(self._connection, exc.args[0], None, self.name, "CREATE") from exc
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while True:  # just after it was made, its partition has no leader yet
            try:
                if self._latest() is not None:
                    return
                reason: LakeboundError = MissingTopicError(self.name, self._connection.bootstrap_servers)
            except BrokerUnavailableError as exc:
                reason = exc
            if time.monotonic() > deadline:
                raise reason
            time.sleep(_POLL_SECONDS)

    def _latest(self) -> int | None:
        try:
            return self.facts.topics([self.name])[self.name].latest[0]
        except MissingTopicError:
            return None

    def _read(self, start: int, end: int) -> list[Any]:
        """Return the committed messages from ``start`` up to ``end``, which is no later than the end of those."""
        consumer = make_consumer(self._config())
        try:
            consumer.assign([TopicPartition(self.name, 0, start)])
            messages: list[Any] = []
            position, deadline = start, time.monotonic() + _PATIENCE_SECONDS
            while position < end:
                message: Any = consumer.poll(_POLL_SECONDS)
                error = None if message is None else message.error()
                if message is not None and error is None:
                    messages.append(message)
                    position = message.offset() + 1
                elif error is not None and error.code() == KafkaError._PARTITION_EOF:
                    position = message.offset()
                elif error is not None and not error.retriable():
                    raise told_error(self._connection, error, None, self.name, "READ")
                if time.monotonic() > deadline:
                    reason = f"topic {self.name} was not read up to offset {end} within {_PATIENCE_SECONDS:.0f} s"
                    raise BrokerUnavailableError(self._connection.bootstrap_servers, reason)
            return [message for message in messages if message.offset() < end]
        finally:
            consumer.close()

    def _config(self) -> dict[str, Any]:
        return {
            **consumer_config(self._connection),
            # Assigned by hand and never committed: the id only names the reader.
            "group.id": self._group,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 10,
            "log_level": 0,
        }
