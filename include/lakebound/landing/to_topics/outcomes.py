"""What an error of the transactional client means for the commit that met it. Pure."""

from __future__ import annotations

from confluent_kafka import KafkaError

from lakebound.errors import CommitRefusedError, KafkaForbiddenError, LakeboundError
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


class TopicCommitError(LakeboundError):
    """A transaction failed for a reason that would come again."""

    def __init__(self, target: str, reason: str) -> None:
        super().__init__(f"{target}: the transaction did not take place: {reason}")


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
    return told_error(connection, error, None, topic, "WRITE")
