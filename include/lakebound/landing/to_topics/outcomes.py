"""What an error of the transactional client means for the commit that met it. Pure."""

from __future__ import annotations

from confluent_kafka import KafkaError

from lakebound.errors import CommitRefusedError, KafkaForbiddenError, LakeboundError, TopicCommitError
from lakebound.landing.kafka_errors import told_error, who
from lakebound.spec.connection import ConnectionSpec

FENCED = frozenset(
    {
        KafkaError._FENCED,
        KafkaError.PRODUCER_FENCED,
        KafkaError.INVALID_PRODUCER_EPOCH,
        KafkaError.INVALID_PRODUCER_ID_MAPPING,
        KafkaError.UNKNOWN_PRODUCER_ID,
    }
)
"""A later producer of the same transactional id has begun, or Kafka has forgotten this one, which was idle for days."""
_TOO_LARGE = (KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.RECORD_LIST_TOO_LARGE)
_UPGRADE = "Lakebound needs brokers with transactions: upgrade them, or use another cluster"
_PERMANENT = {
    KafkaError.INVALID_RECORD: "a compacted topic (cleanup.policy) takes no message without a key: name a 'key' in to_topics "
    "whose column is never null. If it has one, ask the operators of Kafka what the brokers check",
    KafkaError.INVALID_TIMESTAMP: "messages have the time at which they are sent: compare the clocks of this machine and the "
    "brokers, and look at message.timestamp.before.max.ms and message.timestamp.after.max.ms of the topic",
    # As ``producer.TRANSACTION_SECONDS``.
    KafkaError.INVALID_TRANSACTION_TIMEOUT: "set transaction.max.timeout.ms of the brokers to 120000 or more (by default it is "
    "900000)",
    KafkaError.POLICY_VIOLATION: "ask the operators of Kafka which policy of the brokers this is",
    KafkaError.TOPIC_EXCEPTION: "nobody may write to such a topic: name another one in to_topics",
    KafkaError.UNSUPPORTED_COMPRESSION_TYPE: "messages are compressed by lz4: let the brokers take it",
    KafkaError.UNSUPPORTED_FOR_MESSAGE_FORMAT: "set message.format.version of the topic to 0.11 or later",
    KafkaError.UNSUPPORTED_VERSION: _UPGRADE,
    KafkaError._UNSUPPORTED_FEATURE: _UPGRADE,
}
"""What to do about errors that would come again, however often it is tried."""


def transaction_error(connection: ConnectionSpec, error: KafkaError, target: str, topic: str, tx_id: str) -> LakeboundError:
    """Return the error of Lakebound's that a failed step of a transaction is.

    Whatever it is, the outcome of the transaction is for the ledger to say: this only tells whether to wait and try again.

    Args:
        connection: The broker.
        error: What the client says.
        target: Id of the target.
        topic: Name of the target topic.
        tx_id: Transactional id of the producer.
    """
    code = error.code()
    if code in FENCED:
        return CommitRefusedError(target, f"Kafka has given the transactional id {tx_id} to a later producer")
    if code == KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED:
        return KafkaForbiddenError(connection.bootstrap_servers, who(connection), f"WRITE on transactional id {tx_id}")
    if code in _TOO_LARGE:
        return TopicCommitError(target, error.str())
    if code in _PERMANENT:
        return TopicCommitError(target, f"{error.str()}; {_PERMANENT[code]}")
    return told_error(connection, error, None, topic, "WRITE")
