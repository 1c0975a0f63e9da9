"""The driver's own consumer gives exactly the records of a range, or refuses it: against a real broker."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from tests.conftest import TopicMaker

from lakebound.direct_read import DirectReader, DirectReadRefusedError, Records
from lakebound.embedded.broker import Broker
from lakebound.ledger import Offsets, TopicOffsets
from lakebound.spec import ConnectionSpec

pytestmark = pytest.mark.integration

MAX_BYTES = 1_000_000


@pytest.fixture
def reader(broker: Broker) -> Iterator[DirectReader]:
    made = DirectReader(ConnectionSpec(bootstrap_servers=broker.bootstrap_servers), "orders", MAX_BYTES)
    yield made
    made.close()


def produce(broker: Broker, topic: str, count: int, partition: int = 0, first: int = 0, width: int = 0) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for number in range(first, first + count):
        producer.produce(topic, f"{partition}-{number}".encode().ljust(width), key=b"k", partition=partition)
    assert producer.flush(30) == 0


def produce_in_transactions(broker: Broker, topic: str, *, ends: list[bool]) -> None:
    """Produce ten records in each transaction, which is committed or aborted; each leaves a marker as one more offset."""
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": f"{topic}-writer"})
    producer.init_transactions(30)
    for number, is_committed in enumerate(ends):
        producer.begin_transaction()
        for index in range(10):
            producer.produce(topic, f"{number}-{index}".encode(), partition=0)
        assert producer.flush(30) == 0
        producer.commit_transaction(30) if is_committed else producer.abort_transaction(30)


def wanted(topic: str, *ranges: tuple[int, int], partitions: int = 1) -> Offsets:
    return {topic: TopicOffsets(topic_id="id", partitions=dict.fromkeys(range(partitions), ranges))}


def places(records: Records) -> list[tuple[int, int]]:
    return list(zip(records.partitions, records.offsets, strict=True))


def test_ranges_that_follow_each_other_are_read_once(topic: TopicMaker, broker: Broker, reader: DirectReader) -> None:
    name = topic("direct", 2)
    began_ms = time.time() * 1000
    for partition in (0, 1):
        produce(broker, name, 100, partition)
    read = [reader.read(wanted(name, (start, start + 25), partitions=2), 10) for start in range(0, 100, 25)]
    assert [place for records in read for place in places(records)] == [
        (partition, offset) for start in range(0, 100, 25) for partition in (0, 1) for offset in range(start, start + 25)
    ]
    first = read[0]
    assert (first.values[:2], first.keys[0], first.topics[0]) == ([b"0-0", b"0-1"], b"k", name)
    assert all(began_ms - 1 <= stamp <= time.time() * 1000 for stamp in first.timestamps_ms)


def test_a_range_is_read_again_and_one_further_on_is_found(topic: TopicMaker, broker: Broker, reader: DirectReader) -> None:
    name = topic("direct", 1)
    produce(broker, name, 100)
    for start, end in ((0, 50), (10, 30), (80, 90), (30, 40), (40, 100), (99, 100)):
        assert places(reader.read(wanted(name, (start, end)), 10)) == [(0, offset) for offset in range(start, end)]


def test_records_that_come_later_are_waited_for(topic: TopicMaker, broker: Broker, reader: DirectReader) -> None:
    name = topic("direct", 1)
    produce(broker, name, 10)
    reader.read(wanted(name, (0, 10)), 10)
    with pytest.raises(DirectReadRefusedError, match="in time"):
        reader.read(wanted(name, (10, 20)), 0.5)
    produce(broker, name, 10, first=10)
    assert len(reader.read(wanted(name, (10, 20)), 10)) == 10


def test_markers_and_aborted_records_are_no_records(topic: TopicMaker, broker: Broker, reader: DirectReader) -> None:
    name = topic("direct", 1)
    produce_in_transactions(broker, name, ends=[True, False, True])
    # 33 offsets: thirty records and three markers; the last offset is a marker, so that no message ends the range.
    whole = reader.read(wanted(name, (0, 33)), 10)
    assert [offset for _, offset in places(whole)] == [*range(10), *range(22, 32)]
    parts = [reader.read(wanted(name, part), 10) for part in ((0, 10), (10, 11), (11, 22), (22, 33))]
    assert [len(part) for part in parts] == [10, 0, 0, 10]


def test_what_kafka_has_deleted_is_refused(topic: TopicMaker, broker: Broker, reader: DirectReader) -> None:
    name = topic("direct", 1)
    produce(broker, name, 50)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    for future in admin.delete_records([TopicPartition(name, 0, 20)]).values():
        future.result(30)
    with pytest.raises(DirectReadRefusedError):
        reader.read(wanted(name, (0, 50)), 10)
    assert len(reader.read(wanted(name, (20, 50)), 10)) == 30


def test_more_than_one_range_of_a_partition_is_refused(topic: TopicMaker, broker: Broker, reader: DirectReader) -> None:
    name = topic("direct", 1)
    produce(broker, name, 10)
    with pytest.raises(DirectReadRefusedError, match="more than one range"):
        reader.read(wanted(name, (0, 2), (5, 7)), 10)


def test_records_that_are_much_wider_than_before_are_refused(topic: TopicMaker, broker: Broker, reader: DirectReader) -> None:
    name = topic("direct", 1)
    produce(broker, name, 10, width=300_000)
    with pytest.raises(DirectReadRefusedError, match="more than 1,000,000 bytes"):
        reader.read(wanted(name, (0, 10)), 10)
    assert len(reader.read(wanted(name, (0, 2)), 10)) == 2


def test_a_broker_that_is_not_there_is_refused_in_time() -> None:
    reader = DirectReader(ConnectionSpec(bootstrap_servers="127.0.0.1:1"), "orders", MAX_BYTES)
    began = time.monotonic()
    with pytest.raises(DirectReadRefusedError):
        reader.read(wanted("orders", (0, 1)), 0.5)
    assert time.monotonic() - began < 10
