"""An error of Kafka's is a refusal of the range, whatever it is about: Spark then reads the range, and says what is wrong."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import KafkaError

from lakebound.landing import direct_read
from lakebound.landing.direct_read import DirectReader, DirectReadRefusedError
from lakebound.ledger.entry import Offsets, TopicOffsets
from lakebound.spec.connection import ConnectionSpec

WANTED: Offsets = {"orders": TopicOffsets(topic_id="id", partitions={0: ((0, 10),)})}


class Failure:
    """A message that is an error, of a partition or of none."""

    def __init__(self, code: int, topic: str | None, partition: int) -> None:
        self._error, self._topic, self._partition = KafkaError(code), topic, partition

    def error(self) -> KafkaError:
        return self._error

    def topic(self) -> str | None:
        return self._topic

    def partition(self) -> int:
        return self._partition

    def offset(self) -> int:
        return -1001


class Consumer:
    """Answers with one message."""

    answer: Failure
    closed = 0

    def __init__(self, config: dict[str, Any]) -> None:
        """Connects to nothing."""

    def assign(self, partitions: object) -> None:
        """Reads nothing."""

    def consume(self, count: int, timeout: float) -> list[Failure]:
        return [self.answer]

    def close(self) -> None:
        Consumer.closed += 1


@pytest.mark.parametrize(
    ("failure", "said"),
    [
        (Failure(KafkaError.GROUP_AUTHORIZATION_FAILED, None, 0), "DESCRIBE on group lakebound-orders-direct; grant that ACL"),
        (Failure(KafkaError._ALL_BROKERS_DOWN, None, -1), "_ALL_BROKERS_DOWN"),
        (Failure(KafkaError.TOPIC_AUTHORIZATION_FAILED, "orders", 0), "READ on topic orders; grant that ACL"),
        (Failure(KafkaError._AUTO_OFFSET_RESET, "orders", 0), "_AUTO_OFFSET_RESET"),
        (Failure(KafkaError.UNKNOWN_TOPIC_OR_PART, "another", 3), "UNKNOWN_TOPIC_OR_PART"),
    ],
)
def test_an_error_refuses_the_range(failure: Failure, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Consumer, "answer", failure, raising=False)
    monkeypatch.setattr(direct_read, "make_consumer", Consumer)
    closed = Consumer.closed
    reader = DirectReader(ConnectionSpec(bootstrap_servers="nowhere:9092"), "orders")
    with pytest.raises(DirectReadRefusedError, match=said):
        list(reader.read(WANTED, 1.0))
    assert Consumer.closed == closed + 1, "what it was doing is over"
