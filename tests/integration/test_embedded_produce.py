"""What the producer's journal says is what Kafka holds."""

from __future__ import annotations

import hashlib
import threading
import time
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from tests.support.kafka.makers import BrokerMaker, TopicMaker, topic_maker
from tests.support.streams.long_form import only_in_long_form
from tests.support.waiting import wait_until

from lakebound.local.broker import Broker
from lakebound.local.produce import JOURNAL_HEADER, Feed, NotAcknowledgedError, produce
from lakebound.local.sample_records import BadKind

pytestmark = pytest.mark.integration


def test_the_journal_names_every_record_of_the_topics_once(broker: Broker, topic: TopicMaker, tmp_path: Path) -> None:
    orders, readings = topic("orders"), topic("readings")
    feeds = [
        Feed("orders", 0, topic=orders, count=2000, bad_list=tuple(BadKind)),
        Feed("sensor_readings", 0, topic=readings, count=1000, bad_share=0.05),
    ]

    produced = produce(client(broker), feeds, seconds=60, journal=tmp_path / "journal.csv")

    assert produced.acknowledged == {orders: 2000, readings: 1000}
    assert sum(produced.bad.values()) > len(BadKind)
    header, *lines = (tmp_path / "journal.csv").read_text().splitlines()
    assert header == JOURNAL_HEADER
    assert sorted(lines) == sorted(read(broker, orders, 2000) + read(broker, readings, 1000))


def test_a_second_run_appends_to_the_journal(broker: Broker, topic: TopicMaker, tmp_path: Path) -> None:
    feeds = [Feed("orders", 0, topic=topic("orders"), count=10)]

    for _ in range(2):
        produce(client(broker), feeds, seconds=30, journal=tmp_path / "journal.csv")

    lines = (tmp_path / "journal.csv").read_text().splitlines()
    assert len(lines) == 21
    assert len(set(lines)) == 21


def test_the_rate_is_kept(broker: Broker, topic: TopicMaker) -> None:
    said: list[str] = []

    produced = produce(client(broker), [Feed("orders", 500, topic=topic("orders"))], seconds=3, say=said.append)

    assert 1350 <= produced.total <= 1510
    assert "records acknowledged" in said[-1]


def test_stop_ends_it_early_with_everything_acknowledged(broker: Broker, topic: TopicMaker) -> None:
    stop = threading.Event()
    threading.Timer(1.0, stop.set).start()
    started = time.monotonic()

    produced = produce(client(broker), [Feed("orders", 100, topic=topic("orders"))], seconds=60, stop=stop)

    assert produced.total > 0
    assert time.monotonic() - started < 20


def test_records_for_a_topic_that_is_not_there_are_an_error(broker: Broker) -> None:
    config = client(broker) | {"topic.metadata.propagation.max.ms": "500"}

    with pytest.raises(NotAcknowledgedError, match="records were not acknowledged"):
        produce(config, [Feed("orders", 10, topic="nobody-made-this", count=3)], seconds=5)


@only_in_long_form  # shortly: test_a_record_acknowledged_before_a_crash_is_there_after_it in test_embedded_broker.py
def test_a_crash_of_the_broker_loses_and_doubles_nothing(new_broker: BrokerMaker, tmp_path: Path) -> None:
    broker = new_broker()
    name = topic_maker(broker.bootstrap_servers)("orders")

    def crash() -> None:
        broker.kill()
        broker.start()

    crasher = threading.Timer(2.0, crash)
    crasher.start()
    produced = produce(client(broker), [Feed("orders", 200, topic=name)], seconds=6, journal=tmp_path / "journal.csv")
    crasher.join()

    lines = (tmp_path / "journal.csv").read_text().splitlines()[1:]
    assert len(lines) == produced.total
    # Of a batch that is sent again, the client may tell another time than the broker has kept.
    assert sorted(map(without_time, lines)) == sorted(map(without_time, read(broker, name, produced.total)))


def without_time(line: str) -> str:
    return line.rpartition(",")[0]


def client(broker: Broker) -> dict[str, str]:
    return {"bootstrap.servers": broker.bootstrap_servers}


def read(broker: Broker, topic: str, count: int) -> list[str]:
    """Return what Kafka holds in the words of the journal; reads on for a while, so as to see doubled records too."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "judge", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(4)])
    lines: list[str] = []

    def is_quiet() -> bool:
        messages = consumer.consume(1000, timeout=1.0)
        for message in messages:
            value = message.value()
            digest = "null" if value is None else hashlib.sha256(value).hexdigest()
            place = f"{message.topic()},{message.partition()},{message.offset()}"
            lines.append(f"{place},{digest},{message.timestamp()[1]}")
        return len(lines) >= count and not messages

    try:
        wait_until(is_quiet, 60, f"{count} records of {topic}", poll_seconds=0)
    finally:
        consumer.close()
    return lines
