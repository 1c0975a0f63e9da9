"""Creates topics on the broker of a connection."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.cimpl import NewTopic

from lakebound.errors import KafkaForbiddenError, LakeboundError
from lakebound.landing.kafka import DEFAULT_TIMEOUT_SECONDS, KafkaFacts
from lakebound.landing.kafka_clients import Troubles, make_admin
from lakebound.landing.kafka_errors import connection_error, who
from lakebound.landing.kafka_settings import client_config
from lakebound.spec.connection import ConnectionSpec

_LED_SECONDS = 30.0
_POLL_SECONDS = 0.1
_NO_ANSWER = (KafkaError._TIMED_OUT, KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError.REQUEST_TIMED_OUT)


class TopicNotCreatedError(LakeboundError):
    """The broker refused to create a topic."""

    def __init__(self, topic: str, servers: str, reason: str) -> None:
        super().__init__(f"topic {topic!r} was not created on the broker at {servers}: {reason}")


@dataclass(frozen=True)
class MadeTopic:
    """A topic that is on the broker now.

    Attributes:
        topic: Its name.
        partitions: How many it has.
        is_new: Whether it was not there before.
    """

    topic: str
    partitions: int
    is_new: bool


def create_topics(
    connection: ConnectionSpec, topics: Sequence[str], *, partitions: int | None = None, replication: int | None = None
) -> list[MadeTopic]:
    """Create those of the topics that are not there; return all of them when each can be written to.

    Args:
        connection: The broker, and how to log in.
        topics: Their names.
        partitions: Of a new topic; None: the broker's default.
        replication: Copies of each partition of a new topic; None: the broker's default.

    Raises:
        TopicNotCreatedError: The broker refused one; those before it may have been created.
        KafkaForbiddenError: The user may not create the topic.
        KafkaRefusalError: Kafka refuses the login.
        BrokerUnavailableError: Kafka did not answer in time.
    """
    servers = connection.bootstrap_servers
    troubles = Troubles()
    client = make_admin(client_config(connection), troubles)
    wanted = [NewTopic(name, num_partitions=partitions or -1, replication_factor=replication or -1) for name in topics]
    asked = client.create_topics(wanted, operation_timeout=DEFAULT_TIMEOUT_SECONDS, request_timeout=DEFAULT_TIMEOUT_SECONDS)
    new: set[str] = set()
    for name, created in asked.items():
        try:
            created.result(timeout=DEFAULT_TIMEOUT_SECONDS + 1)
            new.add(name)
        except KafkaException as exc:
            error = exc.args[0]
            if error.code() in _NO_ANSWER:
                raise connection_error(connection, troubles.told(client) or error, said=error.str()) from exc
            if error.code() in (KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED):
                raise KafkaForbiddenError(servers, who(connection), f"CREATE on topic {name}") from exc
            if error.code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise TopicNotCreatedError(name, servers, error.str()) from exc
    found = _when_led(KafkaFacts(connection), topics)
    return [MadeTopic(name, found[name], name in new) for name in topics]


def _when_led(facts: KafkaFacts, topics: Sequence[str]) -> dict[str, int]:
    """Return the number of partitions per topic when the leader of each partition answers: before, producers lose records."""
    deadline = time.monotonic() + _LED_SECONDS
    while True:
        try:
            return {name: len(known.latest) for name, known in facts.topics(topics).items()}
        except LakeboundError:
            if time.monotonic() > deadline:
                raise
            time.sleep(_POLL_SECONDS)
