"""An independent reader of committed messages, and a hand that copies one. It imports nothing of lakebound."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition


@dataclass(frozen=True)
class ReadMessage:
    """A message as a consumer gets it."""

    partition: int
    key: bytes | None
    value: bytes
    source: str


def read_committed(bootstrap_servers: str, topic: str) -> list[ReadMessage]:
    """Return every message that a consumer with ``read_committed`` gets, up to the end of each partition."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "group.id": "independent",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    try:
        partitions = consumer.list_topics(topic, 10).topics[topic].partitions
        # Of everything that is there: after a commit its markers come partition by partition, and only then are rows visible.
        ends = {partition: high_watermark(bootstrap_servers, topic, partition) for partition in partitions}
        consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
        found: list[ReadMessage] = []
        at_end: set[int] = set()
        while len(at_end) < len(partitions):
            message = consumer.poll(30)
            assert message is not None, "no message and no end of a partition for 30 s"
            error = message.error()
            if error is None:
                headers = dict(message.headers() or [])
                found.append(
                    ReadMessage(message.partition(), message.key(), message.value(), headers["lakebound_source"].decode())
                )
            else:
                assert error.code() == KafkaError._PARTITION_EOF, error
                if message.offset() >= ends[message.partition()]:
                    at_end.add(message.partition())
        return found
    finally:
        consumer.close()


def high_watermark(bootstrap_servers: str, topic: str, partition: int) -> int:
    """Return the end of a partition, open transactions included."""
    consumer = Consumer({"bootstrap.servers": bootstrap_servers, "group.id": "ends", "isolation.level": "read_uncommitted"})
    try:
        return int(consumer.get_watermark_offsets(TopicPartition(topic, partition), 30)[1])
    finally:
        consumer.close()


def assert_once(messages: list[ReadMessage], sources: set[str]) -> None:
    """Check that each source position is there exactly once, and nothing else."""
    counted = Counter(message.source for message in messages)
    assert {source: times for source, times in counted.items() if times > 1} == {}
    assert set(counted) == sources, f"{len(sources - set(counted))} lacking, {len(set(counted) - sources)} too many"


def send_again(servers: str, topic: str, message: ReadMessage) -> None:
    """Send a message once more, as somebody who is not Lakebound might."""
    producer = Producer({"bootstrap.servers": servers})
    producer.produce(topic, message.value, message.key, headers=[("lakebound_source", message.source)])
    assert producer.flush(30) == 0
