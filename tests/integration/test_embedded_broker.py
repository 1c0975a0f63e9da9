"""The embedded broker: starts, survives a crash with its data, keeps strangers out."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from tests.support.kafka.brokers import ShortLivedBroker
from tests.support.kafka.makers import TopicMaker, topic_maker
from tests.support.waiting import wait_until

from lakebound.control import processes
from lakebound.errors import LakeboundError, ServiceError
from lakebound.local.broker import Broker
from lakebound.local.broker_config import SaslUser

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory, jars: Path) -> Iterator[Broker]:
    """A broker that the tests of this module use one after the other: it is asked for a password, crashes, and is stopped."""
    made = ShortLivedBroker(tmp_path_factory.mktemp("own"), jars, sasl=SaslUser("lake", "pw-" + uuid.uuid4().hex))
    try:
        made.start()
        yield made
    finally:
        made.stop()


def test_a_topic_of_the_shared_broker_has_the_partitions_asked_for(broker: Broker, topic: TopicMaker) -> None:
    name = topic("orders", partitions=3)

    client = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    found = client.list_topics(name, timeout=30)

    assert len(found.topics[name].partitions) == 3


def test_the_sasl_listener_wants_the_password_and_keeps_it_to_itself(own: Broker) -> None:
    broker, user = own, own.sasl
    assert user is not None

    assert _sasl_client(broker, user).list_topics(timeout=30).brokers
    with pytest.raises(KafkaException):
        _sasl_client(broker, SaslUser("lake", "wrong")).list_topics(timeout=3)

    holders = [file for file in broker.folder.rglob("*") if file.is_file() and user.password in file.read_text("latin1")]
    assert holders == [broker.folder / "server.properties"]
    assert holders[0].stat().st_mode & 0o077 == 0
    assert broker.record is not None
    assert user.password not in " ".join(psutil.Process(broker.record.pid).cmdline())


def test_a_record_acknowledged_before_a_crash_is_there_after_it(own: Broker) -> None:
    broker = own
    address = broker.bootstrap_servers
    name = topic_maker(address)("crash", partitions=1)
    _produce(address, name, [b"before"])

    broker.kill()
    assert not broker.is_running
    broker.start()

    assert broker.bootstrap_servers == address
    _produce(address, name, [b"after"])
    assert _consume(address, name, count=2) == [b"before", b"after"]


def test_stop_leaves_no_process_and_a_second_object_sees_that(own: Broker) -> None:
    broker = own
    record = broker.record
    assert record is not None

    Broker(broker.folder, broker.jars).stop()

    assert not psutil.pid_exists(record.pid)
    assert processes.members(record) == []
    assert not broker.is_running


def test_a_topic_is_not_created_by_asking_for_it(broker: Broker) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "message.timeout.ms": 1500})
    failures: list[object] = []

    producer.produce(f"nobody-made-{uuid.uuid4().hex}", b"x", on_delivery=lambda error, _: failures.append(error))
    producer.flush(10)

    assert len(failures) == 1
    assert failures[0] is not None


def test_a_taken_port_is_refused(broker: Broker, tmp_path: Path) -> None:
    second = Broker(tmp_path / "second", broker.jars, port=broker.ports.plaintext)

    with pytest.raises(ServiceError, match=f"port {broker.ports.plaintext} is used by another program"):
        second.start()


def test_a_broker_that_ends_while_starting_says_why(broker: Broker, tmp_path: Path) -> None:
    mistaken = Broker(tmp_path / "mistaken", broker.jars, heap_megabytes=-1)

    with pytest.raises(ServiceError, match=r"(?s)ended before it was ready.*Invalid maximum heap size"):
        mistaken.start()


def test_jars_that_are_not_there_are_named(tmp_path: Path) -> None:
    with pytest.raises(LakeboundError, match="make jars"):
        Broker(tmp_path / "broker", tmp_path / "nothing").start()


def _produce(address: str, topic: str, values: list[bytes]) -> None:
    producer = Producer({"bootstrap.servers": address, "acks": "all"})
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(30) == 0


def _consume(address: str, topic: str, count: int) -> list[bytes]:
    consumer = Consumer({"bootstrap.servers": address, "group.id": "reader", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, 0, 0)])
    values: list[bytes] = []

    def enough() -> bool:
        message = consumer.poll(0.5)
        if message is not None and message.error() is None:
            values.append(message.value() or b"")
        return len(values) >= count

    try:
        wait_until(enough, 30, f"{count} records", poll_seconds=0)
    finally:
        consumer.close()
    return values


def _sasl_client(broker: Broker, user: SaslUser) -> AdminClient:
    return AdminClient(
        {
            "bootstrap.servers": f"127.0.0.1:{broker.ports.sasl}",
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": user.username,
            "sasl.password": user.password,
        }
    )
