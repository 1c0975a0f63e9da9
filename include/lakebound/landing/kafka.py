"""What Kafka knows, asked from outside of Spark: topic ids and offsets; and client settings of a connection."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import ConfigResource as _ConfigResource  # type: ignore[attr-defined]
from confluent_kafka.admin import OffsetSpec as _OffsetSpec  # type: ignore[attr-defined]

from lakebound.errors import BrokerUnavailableError, MissingTopicError
from lakebound.landing.kafka_clients import make_admin
from lakebound.ledger.marks import NextOffsets
from lakebound.ledger.topics import TopicFacts
from lakebound.spec.connection import ConnectionSpec
from lakebound.spec.secrets import read_secret

DEFAULT_TIMEOUT_SECONDS = 10.0

OffsetSpec: Any = _OffsetSpec  # the client has no types
ConfigResource: Any = _ConfigResource


def client_config(connection: ConnectionSpec) -> dict[str, str]:
    """Return librdkafka settings of the connection. They hold the password: never log them."""
    config = {"bootstrap.servers": connection.bootstrap_servers, "security.protocol": connection.security_protocol}
    if connection.tls_ca_file:
        config["ssl.ca.location"] = connection.tls_ca_file
    if connection.sasl:
        config["sasl.mechanism"] = connection.sasl.mechanism
        config["sasl.username"] = connection.sasl.username
        config["sasl.password"] = read_secret(connection.sasl.password, "connection.sasl.password")
    return config


class KafkaFacts:
    """Asks one broker; keeps its client, because making one costs a connection."""

    def __init__(self, connection: ConnectionSpec, *, timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS) -> None:
        self._servers = connection.bootstrap_servers
        self._timeout_seconds = timeout_seconds
        self._admin = make_admin(client_config(connection))

    def topic_ids(self, topics: Iterable[str]) -> dict[str, str]:
        """Return the id per topic.

        Raises:
            MissingTopicError: A topic is not there.
            BrokerUnavailableError: Kafka did not answer in time.
        """
        return {topic: str(description.topic_id) for topic, description in self._describe(topics).items()}

    def topics(self, topics: Iterable[str], *, isolation: str = "read_committed") -> dict[str, TopicFacts]:
        """Return id, earliest and latest offsets per topic.

        Args:
            topics: Their names.
            isolation: ``read_committed`` or ``read_uncommitted``.

        Raises:
            MissingTopicError: A topic is not there.
            BrokerUnavailableError: Kafka did not answer in time.
        """
        described = self._describe(topics)
        pairs = [(name, p.id) for name, description in described.items() for p in description.partitions]
        level = IsolationLevel.READ_COMMITTED if isolation == "read_committed" else IsolationLevel.READ_UNCOMMITTED
        earliest = self._list(pairs, OffsetSpec.earliest(), level)
        latest = self._list(pairs, OffsetSpec.latest(), level)
        return {
            name: TopicFacts(
                topic_id=str(description.topic_id),
                earliest={p.id: earliest[name, p.id] for p in description.partitions},
                latest={p.id: latest[name, p.id] for p in description.partitions},
            )
            for name, description in described.items()
        }

    def offsets_at(self, topics: Iterable[str], timestamp_ms: int) -> NextOffsets:
        """Return per topic and partition the first offset whose record is not older; the end where all are older."""
        described = self._describe(topics)
        pairs = [(name, p.id) for name, description in described.items() for p in description.partitions]
        found = self._list(pairs, OffsetSpec.for_timestamp(timestamp_ms), IsolationLevel.READ_COMMITTED)
        ends = self._list(pairs, OffsetSpec.latest(), IsolationLevel.READ_COMMITTED)
        result: dict[str, dict[int, int]] = {}
        for name, partition in pairs:
            offset = found[name, partition]
            result.setdefault(name, {})[partition] = offset if offset >= 0 else ends[name, partition]
        return result

    def retention(self, topics: Iterable[str]) -> dict[str, tuple[int | None, int | None]]:
        """Return per topic (milliseconds, bytes per partition) after which Kafka deletes records; None: never by that measure.

        Raises:
            MissingTopicError: A topic is not there.
            BrokerUnavailableError: Kafka did not answer in time, or does not tell.
        """
        resources = {ConfigResource(ConfigResource.Type.TOPIC, topic): topic for topic in topics}
        if not resources:
            return {}
        futures = self._admin.describe_configs(list(resources), request_timeout=self._timeout_seconds)
        result: dict[str, tuple[int | None, int | None]] = {}
        for resource, future in futures.items():
            config = self._answer(future, resources[resource])
            deletes = "delete" in config["cleanup.policy"].value
            limits = [int(config[name].value) if deletes else -1 for name in ("retention.ms", "retention.bytes")]
            kept = [limit if limit >= 0 else None for limit in limits]
            result[resources[resource]] = (kept[0], kept[1])
        return result

    def _describe(self, topics: Iterable[str]) -> Mapping[str, Any]:
        names = list(topics)
        futures = self._admin.describe_topics(TopicCollection(names), request_timeout=self._timeout_seconds)
        return {name: self._answer(futures[name], name) for name in names}

    def _list(self, pairs: list[tuple[str, int]], spec: Any, level: IsolationLevel) -> dict[tuple[str, int], int]:
        asked = {TopicPartition(name, partition): spec for name, partition in pairs}
        if not asked:
            return {}
        futures = self._admin.list_offsets(asked, isolation_level=level, request_timeout=self._timeout_seconds)
        return {(tp.topic, tp.partition): self._answer(future, tp.topic).offset for tp, future in futures.items()}

    def _answer(self, future: Any, topic: str) -> Any:
        try:
            return future.result(timeout=self._timeout_seconds + 1)
        except KafkaException as exc:
            error = exc.args[0]
            if error.code() in (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC):
                raise MissingTopicError(topic, self._servers) from exc
            raise BrokerUnavailableError(self._servers, error.str()) from exc
        except TimeoutError as exc:
            raise BrokerUnavailableError(self._servers, f"no answer within {self._timeout_seconds:.0f} s") from exc
