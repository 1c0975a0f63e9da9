"""The driver's own consumer gives exactly the records of a range, or refuses it: against a real broker."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import fields

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from tests.support.kafka.makers import TopicMaker
from tests.support.waiting import HANGS_SECONDS, STRETCH, wait_until

from lakebound.landing import direct_read
from lakebound.landing.direct_read import DirectReader, DirectReadRefusedError, RecordColumns
from lakebound.ledger.entry import Offsets, TopicOffsets
from lakebound.ledger.topics import PartitionId
from lakebound.local.broker import Broker
from lakebound.spec.connection import ConnectionSpec

pytestmark = pytest.mark.integration


@pytest.fixture
def reader(broker: Broker) -> Iterator[DirectReader]:
    made = DirectReader(ConnectionSpec(bootstrap_servers=broker.bootstrap_servers), "orders")
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


def read(reader: DirectReader, wanted: Offsets, patience_seconds: float = 10.0) -> RecordColumns:
    """Read a range, whose slices are put together."""
    whole = RecordColumns()
    for records in reader.read(wanted, patience_seconds):
        for field in fields(RecordColumns):
            getattr(whole, field.name).extend(getattr(records, field.name))
    return whole


def places(records: RecordColumns) -> list[tuple[int, int]]:
    return list(zip(records.partitions, records.offsets, strict=True))


def test_ranges_that_follow_each_other_are_read_once(topic: TopicMaker, broker: Broker, reader: DirectReader) -> None:
    name = topic("direct", 2)
    began_ms = time.time() * 1000
    for partition in (0, 1):
        produce(broker, name, 100, partition)
    parts = [read(reader, wanted(name, (start, start + 25), partitions=2)) for start in range(0, 100, 25)]
    assert [place for records in parts for place in places(records)] == [
        (partition, offset) for start in range(0, 100, 25) for partition in (0, 1) for offset in range(start, start + 25)
    ]
    first = parts[0]
    assert (first.values[:2], first.keys[0], first.topics[0]) == ([b"0-0", b"0-1"], b"k", name)
    assert all(began_ms - 1 <= stamp <= time.time() * 1000 for stamp in first.timestamps_ms)


def test_a_range_is_read_again_and_one_further_on_is_found(topic: TopicMaker, broker: Broker, reader: DirectReader) -> None:
    name = topic("direct", 1)
    produce(broker, name, 100)
    for start, end in ((0, 50), (10, 30), (80, 90), (30, 40), (40, 100), (99, 100)):
        assert places(read(reader, wanted(name, (start, end)))) == [(0, offset) for offset in range(start, end)]


def test_records_that_come_later_are_waited_for(topic: TopicMaker, broker: Broker, reader: DirectReader) -> None:
    name = topic("direct", 1)
    produce(broker, name, 10)
    read(reader, wanted(name, (0, 10)))
    with pytest.raises(DirectReadRefusedError, match="in time"):
        read(reader, wanted(name, (10, 20)), 0.5)
    produce(broker, name, 10, first=10)
    assert len(read(reader, wanted(name, (10, 20)))) == 10


def test_markers_and_aborted_records_are_no_records(topic: TopicMaker, broker: Broker, reader: DirectReader) -> None:
    name = topic("direct", 1)
    produce_in_transactions(broker, name, ends=[True, False, True])
    # 33 offsets: thirty records and three markers; the last offset is a marker, so that no message ends the range.
    whole = read(reader, wanted(name, (0, 33)))
    assert [offset for _, offset in places(whole)] == [*range(10), *range(22, 32)]
    parts = [read(reader, wanted(name, part)) for part in ((0, 10), (10, 11), (11, 22), (22, 33))]
    assert [len(part) for part in parts] == [10, 0, 0, 10]


def test_what_has_come_is_told_partition_by_partition(topic: TopicMaker, broker: Broker, reader: DirectReader) -> None:
    name = topic("direct", 2)
    produce_in_transactions(broker, name, ends=[True, False])
    starts = {(name, 0): 0, (name, 1): 0}
    wait_until(
        lambda: reader.arrived(starts, 0.1) == {(name, 0): 22, (name, 1): 0}, 20, "ten records, ten aborted, two markers"
    )
    assert places(read(reader, wanted(name, (0, 22)))) == [(0, offset) for offset in range(10)]

    # What is held is not waited for.
    wait_until(lambda: reader.arrived({(name, 0): 5}, 0.1) == {(name, 0): 22}, 20, "the same once more")
    began = time.monotonic()
    assert reader.arrived({(name, 0): 5}, 60) == {(name, 0): 22}
    assert time.monotonic() - began < 30

    # A partition of which nothing was read yet is looked at as well, and the first record ends the wait.
    began = time.monotonic()
    later = threading.Timer(0.5, produce, (broker, name, 3, 1))
    later.start()
    found = wait_until(lambda: came(reader.arrived({(name, 0): 22, (name, 1): 0}, 60), (name, 1)), 60, "the three records")
    later.join()
    assert time.monotonic() - began < 30
    assert places(read(reader, {name: TopicOffsets(topic_id="id", partitions={1: ((0, found[name, 1]),)})}))[0] == (1, 0)


def came(found: dict[PartitionId, int], place: PartitionId) -> dict[PartitionId, int]:
    """Return it where something of the partition has come; an end of a partition ends the wait, too."""
    return found if found[place] else {}


def test_what_cannot_be_looked_for_is_refused(topic: TopicMaker, broker: Broker, reader: DirectReader) -> None:
    name = topic("direct", 1)
    produce(broker, name, 1)
    with pytest.raises(DirectReadRefusedError):
        for _ in range(100):
            reader.arrived({(name, 0): 50}, 0.2)


def test_what_kafka_has_deleted_is_refused(topic: TopicMaker, broker: Broker, reader: DirectReader) -> None:
    name = topic("direct", 1)
    produce(broker, name, 50)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    for future in admin.delete_records([TopicPartition(name, 0, 20)]).values():
        future.result(HANGS_SECONDS)
    with pytest.raises(DirectReadRefusedError):
        read(reader, wanted(name, (0, 50)))
    assert len(read(reader, wanted(name, (20, 50)))) == 30


def test_more_than_one_range_of_a_partition_is_refused(topic: TopicMaker, broker: Broker, reader: DirectReader) -> None:
    name = topic("direct", 1)
    produce(broker, name, 10)
    with pytest.raises(DirectReadRefusedError, match="more than one range"):
        read(reader, wanted(name, (0, 2), (5, 7)))


def test_a_large_range_comes_in_slices_and_each_record_once(
    topic: TopicMaker, broker: Broker, reader: DirectReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = topic("direct", 2)
    for partition in (0, 1):
        produce(broker, name, 500, partition)
    monkeypatch.setattr(direct_read, "SLICE_RECORDS", 100)
    monkeypatch.setattr(direct_read, "_AT_ONCE", 30)
    slices = list(reader.read(wanted(name, (0, 400), partitions=2)))
    assert len(slices) > 3
    assert max(len(records) for records in slices) < 200
    found = [place for records in slices for place in places(records)]
    assert sorted(found) == [(partition, offset) for partition in (0, 1) for offset in range(400)]
    for partition in (0, 1):
        offsets = [offset for number, offset in found if number == partition]
        assert offsets == sorted(offsets)
    assert len(read(reader, wanted(name, (400, 500), partitions=2))) == 200


def test_a_wide_range_comes_in_slices(
    topic: TopicMaker, broker: Broker, reader: DirectReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = topic("direct", 1)
    produce(broker, name, 40, width=50_000)
    monkeypatch.setattr(direct_read, "SLICE_BYTES", 500_000)
    monkeypatch.setattr(direct_read, "_AT_ONCE", 5)
    slices = list(reader.read(wanted(name, (0, 40))))
    assert [place for records in slices for place in places(records)] == [(0, offset) for offset in range(40)]
    assert len(slices) == 4


def test_a_partition_that_is_far_ahead_is_read_again_from_there(
    topic: TopicMaker, broker: Broker, reader: DirectReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = topic("direct", 2)
    produce(broker, name, 200, 0, width=1_000)
    produce(broker, name, 10, 1)
    monkeypatch.setattr(direct_read, "_MOST_AHEAD_BYTES", 20_000)
    both = {name: TopicOffsets(topic_id="id", partitions={0: ((0, 10),), 1: ((0, 10),)})}
    assert len(read(reader, both)) == 20
    held = reader._partitions[name, 0]
    assert held.is_cut_off or len(held.offsets) * 1_000 <= 20_000
    for start in range(10, 200, 38):
        further = read(reader, wanted(name, (start, start + 38)))
        assert places(further) == [(0, offset) for offset in range(start, start + 38)]


def test_the_records_of_another_partition_do_not_count_as_progress(
    topic: TopicMaker, broker: Broker, reader: DirectReader
) -> None:
    name = topic("direct", 2)
    produce(broker, name, 10, 0)
    stop = threading.Event()

    def produce_on() -> None:
        first = 10
        while not stop.wait(0.05):
            produce(broker, name, 1, 0, first)
            first += 1

    producing = threading.Thread(target=produce_on)
    producing.start()
    try:
        began = time.monotonic()
        with pytest.raises(DirectReadRefusedError, match="in time"):
            read(reader, wanted(name, (0, 10), partitions=2), 1.0)
        assert time.monotonic() - began < 10 * STRETCH
    finally:
        stop.set()
        producing.join()


def test_a_broker_that_is_not_there_is_refused_in_time() -> None:
    reader = DirectReader(ConnectionSpec(bootstrap_servers="127.0.0.1:1"), "orders")
    began = time.monotonic()
    with pytest.raises(DirectReadRefusedError):
        read(reader, wanted("orders", (0, 1)), 0.5)
    assert time.monotonic() - began < 10 * STRETCH
