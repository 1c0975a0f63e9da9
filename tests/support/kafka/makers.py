"""What makes topics on a broker, and brokers; the fixtures ``topic`` and ``new_broker`` are such makers."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Protocol

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from lakebound.local.broker import Broker
from lakebound.local.broker_config import SaslUser
from lakebound.local.stack import wait_led
from tests.support.waiting import HANGS_SECONDS


class TopicMaker(Protocol):
    """Creates a topic with a name of its own on the shared broker and returns the name."""

    def __call__(self, prefix: str = "topic", partitions: int = 4, config: Mapping[str, str] | None = None) -> str: ...


class BrokerMaker(Protocol):
    """Starts a broker that belongs to one test alone, for tests that kill it or need a password."""

    def __call__(self, sasl: SaslUser | None = None) -> Broker: ...


def topic_maker(bootstrap_servers: str) -> TopicMaker:
    """Return a maker of topics on any broker."""

    def make(prefix: str = "topic", partitions: int = 4, config: Mapping[str, str] | None = None) -> str:
        name = f"{prefix}-{uuid.uuid4().hex[:10]}"
        new = NewTopic(name, num_partitions=partitions, replication_factor=1, config=dict(config or {}))
        client = AdminClient({"bootstrap.servers": bootstrap_servers})
        for created in client.create_topics([new]).values():
            created.result(timeout=HANGS_SECONDS)
        wait_led(client, {name: partitions})
        return name

    return make
