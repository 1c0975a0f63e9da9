"""The one producer of a pipeline's target topics. Kafka fences every older one by the transactional id.

All target topics of a pipeline share it, so that nothing but its own transaction can hold back a reader of the ledger topic.
Whatever a transaction ends with but success, the producer is given up: librdkafka lacks KIP-890, by which a broker would refuse
a message of the failed transaction that comes late. The next one has a later epoch, which makes Kafka refuse such messages.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from confluent_kafka import KafkaException

from lakebound import faults
from lakebound.errors import BrokerUnavailableError, CommitRefusedError, TopicCommitError
from lakebound.landing.kafka_clients import make_producer
from lakebound.landing.kafka_settings import client_config
from lakebound.landing.to_topics.messages import SOURCE_HEADER, RowMessage
from lakebound.landing.to_topics.outcomes import transaction_error
from lakebound.spec.connection import ConnectionSpec
from lakebound.spec.to_topics import ledger_topic, transactional_id
from lakebound.tables.entries import MAX_ENTRY_BYTES

TRANSACTION_SECONDS = 120.0
"""How long a transaction may be open; then Kafka's coordinator aborts it. So long does a dead application hold readers back at
most, if no other one starts; the rows of the largest batches take some 10 s."""
_STEP_SECONDS = 30.0
_WAIT_FOR_ROOM_SECONDS = 0.1
_QUEUED_KILOBYTES = 65_536
_BATCH_BYTES = 1_000_000

MakeProducer = Callable[[Mapping[str, Any]], Any]


class LedgerMessage(NamedTuple):
    """The record that a transaction ends with."""

    key: bytes
    value: bytes


def producer_config(connection: ConnectionSpec, pipeline: str, largest_batches: Collection[int]) -> dict[str, Any]:
    """Return librdkafka's settings of the producer.

    Args:
        connection: The broker.
        pipeline: Whose targets it writes.
        largest_batches: Bytes that a batch of each target topic may have.
    """
    return {
        **client_config(connection),
        "transactional.id": transactional_id(pipeline),
        "transaction.timeout.ms": round(TRANSACTION_SECONDS * 1000),
        # As Kafka's Java client chooses partitions: keys stay in theirs, whichever client a lane writes with.
        "partitioner": "murmur2_random",
        "compression.type": "lz4",
        # Kafka judges a batch by the limit of its topic: the smallest limit is for batches, the largest for a single message.
        "message.max.bytes": max(*largest_batches, MAX_ENTRY_BYTES),
        "batch.size": min(*largest_batches, _BATCH_BYTES),
        "queue.buffering.max.kbytes": _QUEUED_KILOBYTES,
        # The flush before each commit sends what waits; without a backlog nothing is gained by waiting.
        "linger.ms": 5,
        # A transaction is a chain of small requests: 15 instead of 18 ms on one machine.
        "socket.nagle.disable": True,
        "log_level": 0,
    }


class TopicProducer:
    """Makes transactions, one at a time, for several targets whose threads share it."""

    def __init__(
        self,
        connection: ConnectionSpec,
        pipeline: str,
        check_lease: Callable[[], None],
        largest_batches: Collection[int],
        make: MakeProducer = make_producer,
    ) -> None:
        """Connect to nothing yet.

        Args:
            connection: The broker.
            pipeline: Whose targets it writes.
            check_lease: Raises LeaseLostError when the lease is gone.
            largest_batches: Bytes that a batch of each target topic may have.
            make: Makes the client.
        """
        self._connection = connection
        self._pipeline = pipeline
        self._check_lease = check_lease
        self._largest_batches = largest_batches
        self._make = make
        self._client: Any = None
        self._generation = 0
        self.lock = threading.RLock()
        """Held during a transaction. Who holds it may read the ledger topic to its end."""

    def ready(self) -> int:
        """Return the number of the producer; makes one where there is none, and so ends what was open of those before.

        The lease is asked first: an application that has lost it must not fence the one that has it.

        Raises:
            LeaseLostError: The lease is gone.
            CommitRefusedError: Another producer began in the same moment.
            KafkaForbiddenError: The user may not use the transactional id.
            BrokerUnavailableError: Kafka did not answer in time.
        """
        with self.lock:
            if self._client is None:
                self._check_lease()
                client = self._make(producer_config(self._connection, self._pipeline, self._largest_batches))
                try:
                    client.init_transactions(_STEP_SECONDS)
                except KafkaException as exc:
                    raise self._error(exc, self._pipeline, ledger_topic(self._pipeline)) from exc
                self._client = client
                self._generation += 1
            return self._generation

    def commit(self, generation: int, target: str, topic: str, rows: Iterable[RowMessage], record: LedgerMessage) -> int:
        """Send rows and their ledger record in one transaction: the record's offset.

        Args:
            generation: Number of the producer with which the target's ledger was read.
            target: Id of the target, for messages.
            topic: That gets the rows.
            rows: Are taken while they are sent.
            record: For the ledger topic.

        Raises:
            CommitRefusedError: The producer is another one by now, or has been fenced: read the ledger again.
            TopicCommitError: Kafka refuses a message.
            BrokerUnavailableError: Kafka did not answer in time; the outcome is unknown until the ledger is read again.
            KafkaForbiddenError: The user may not write to a topic.
        """
        with self.lock:
            if self._client is None or generation != self._generation:
                raise CommitRefusedError(target, "the producer was replaced after another transaction failed")
            try:
                return self._transact(topic, rows, record)
            except KafkaException as exc:
                self.give_up()
                raise self._error(exc, target, topic) from exc
            except BaseException:
                self.give_up()
                raise

    def poll(self) -> None:
        """Serve what the client has to say while nothing is sent."""
        if self.lock.acquire(blocking=False):
            try:
                if self._client is not None:
                    self._client.poll(0)
            finally:
                self.lock.release()

    def give_up(self) -> None:
        """Part with the client without another word to Kafka; the next one ends what is open of it."""
        with self.lock:
            client, self._client = self._client, None
            if client is not None:
                with suppress(KafkaException):
                    client.purge()

    def _transact(self, topic: str, rows: Iterable[RowMessage], record: LedgerMessage) -> int:
        client = self._client
        placed: list[int] = []

        def note(error: Any, message: Any) -> None:
            if error is None:
                placed.append(message.offset())

        client.begin_transaction()
        faults.reach("topic_begun")
        for row in rows:
            self._send(topic, value=row.value, key=row.key, headers=[(SOURCE_HEADER, row.source)])
        faults.reach("topic_rows_sent")
        self._send(ledger_topic(self._pipeline), value=record.value, key=record.key, partition=0, on_delivery=note)
        waiting = client.flush(_STEP_SECONDS)
        if waiting:
            reason = f"{waiting} messages were not acknowledged within {_STEP_SECONDS:.0f} s"
            raise BrokerUnavailableError(self._connection.bootstrap_servers, reason)
        faults.reach("topic_delivered")
        client.commit_transaction(_STEP_SECONDS)
        if not placed:  # a commit without the record would be a fault of the client's
            raise TopicCommitError(topic, "the ledger record was not acknowledged")
        return placed[0]

    def _send(self, topic: str, **message: Any) -> None:
        while True:
            try:
                self._client.produce(topic, **message)
            except BufferError:
                self._client.poll(_WAIT_FOR_ROOM_SECONDS)
            else:
                return

    def _error(self, exc: KafkaException, target: str, topic: str) -> Exception:
        return transaction_error(self._connection, exc.args[0], target, topic, transactional_id(self._pipeline))
