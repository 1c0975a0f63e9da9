"""What Kafka knows, asked from outside of Spark: topic ids, offsets and retention."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from confluent_kafka import IsolationLevel, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin import ConfigResource as _ConfigResource  # type: ignore[attr-defined]
from confluent_kafka.admin import OffsetSpec as _OffsetSpec  # type: ignore[attr-defined]

from lakebound.errors import BrokerUnavailableError, KafkaForbiddenError, KafkaLoginError, LakeboundError, TopicWithoutIdError
from lakebound.landing.kafka_clients import Troubles, make_admin
from lakebound.landing.kafka_errors import connection_error, told_error
from lakebound.landing.kafka_settings import client_config
from lakebound.ledger.marks import NextOffsets
from lakebound.ledger.topics import TopicFacts
from lakebound.spec.connection import ConnectionSpec

DEFAULT_TIMEOUT_SECONDS = 10.0

OffsetSpec: Any = _OffsetSpec  # the client has no types
ConfigResource: Any = _ConfigResource


NO_TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAA"
"""The id that stands for none: 16 bytes of zeros in base64. Brokers before Kafka 2.8 give every topic this one."""


@dataclass(frozen=True)
class WrittenSettings:
    """Settings of a topic that rows go to; Kafka's defaults where nothing is given.

    Attributes:
        largest_batch_bytes: Of a batch of records, and so of a record (``max.message.bytes``).
        is_compacted: Whether Kafka keeps the newest message of each key alone, and takes none without a key
            (``cleanup.policy``).
    """

    largest_batch_bytes: int = 1_048_588
    is_compacted: bool = False


@dataclass(frozen=True)
class _Client:
    """A client, and what it says of its connections."""

    admin: AdminClient
    troubles: Troubles


def _make_client(connection: ConnectionSpec) -> _Client:
    troubles = Troubles()
    return _Client(make_admin(client_config(connection), troubles), troubles)


class KafkaFacts:
    """Asks one broker; keeps its client, because making one costs a connection.

    After a refused login the next question is asked by a new client: its password or certificate may have been replaced.
    """

    def __init__(
        self,
        connection: ConnectionSpec,
        *,
        timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
        needs_topic_ids: bool = True,
    ) -> None:
        """Make the client.

        Args:
            connection: The broker, and how to log in.
            timeout_seconds: How long an answer may take.
            needs_topic_ids: Whether a topic without an id is refused.

        Raises:
            MissingSecretError: A secret is not where the connection says, or a file of TLS cannot be used.
            ForbiddenSecretError: A secret may not be read on this machine.
        """
        self._connection = connection
        self._timeout_seconds = timeout_seconds
        self._needs_topic_ids = needs_topic_ids
        self._client: _Client | None = _make_client(connection)

    def topic_ids(self, topics: Iterable[str]) -> dict[str, str]:
        """Return the id per topic.

        Raises:
            MissingTopicError: A topic is not there.
            TopicWithoutIdError: The broker is too old to give topics ids.
            KafkaRefusalError: Kafka refuses the login, or the user may not look at the topic.
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
            TopicWithoutIdError: The broker is too old to give topics ids.
            KafkaRefusalError: Kafka refuses the login, or the user may not look at the topic.
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
        client = self._own_client()
        futures = client.admin.describe_configs(list(resources), request_timeout=self._timeout_seconds)
        result: dict[str, tuple[int | None, int | None]] = {}
        for resource, future in futures.items():
            config = self._answer(client, future, resources[resource], "DESCRIBE_CONFIGS")
            deletes = "delete" in config["cleanup.policy"].value
            limits = [int(config[name].value) if deletes else -1 for name in ("retention.ms", "retention.bytes")]
            kept = [limit if limit >= 0 else None for limit in limits]
            result[resources[resource]] = (kept[0], kept[1])
        return result

    def written_settings(self, topics: Iterable[str]) -> dict[str, WrittenSettings]:
        """Return the settings of topics that rows go to; Kafka's defaults of a topic about which the user may not ask.

        Raises:
            MissingTopicError: A topic is not there.
            BrokerUnavailableError: Kafka did not answer in time.
        """
        resources = {ConfigResource(ConfigResource.Type.TOPIC, topic): topic for topic in topics}
        if not resources:
            return {}
        client = self._own_client()
        futures = client.admin.describe_configs(list(resources), request_timeout=self._timeout_seconds)
        found = dict.fromkeys(resources.values(), WrittenSettings())
        for resource, future in futures.items():
            with suppress(KafkaForbiddenError):
                config = self._answer(client, future, resources[resource], "DESCRIBE_CONFIGS")
                largest, policy = int(config["max.message.bytes"].value), config["cleanup.policy"].value
                found[resources[resource]] = WrittenSettings(largest, "compact" in policy)
        return found

    def _describe(self, topics: Iterable[str]) -> Mapping[str, Any]:
        names, client = list(topics), self._own_client()
        futures = client.admin.describe_topics(TopicCollection(names), request_timeout=self._timeout_seconds)
        found = {name: self._answer(client, futures[name], name) for name in names}
        for name, description in found.items():
            if self._needs_topic_ids and str(description.topic_id) in (NO_TOPIC_ID, "None"):
                raise TopicWithoutIdError(name, self._connection.bootstrap_servers)
        return found

    def _list(self, pairs: list[tuple[str, int]], spec: Any, level: IsolationLevel) -> dict[tuple[str, int], int]:
        asked = {TopicPartition(name, partition): spec for name, partition in pairs}
        if not asked:
            return {}
        client = self._own_client()
        futures = client.admin.list_offsets(asked, isolation_level=level, request_timeout=self._timeout_seconds)
        return {(tp.topic, tp.partition): self._answer(client, future, tp.topic).offset for tp, future in futures.items()}

    def _answer(self, client: _Client, future: Any, topic: str, operation: str = "DESCRIBE") -> Any:
        """Return the answer of a client, which must live until then."""
        try:
            return future.result(timeout=self._timeout_seconds + 1)
        except KafkaException as exc:
            error = told_error(self._connection, exc.args[0], client.troubles.told(client.admin), topic, operation)
            if isinstance(error, KafkaLoginError):
                self._client = None
            raise error from exc
        except TimeoutError as exc:
            reason, trouble = f"no answer within {self._timeout_seconds:.0f} s", client.troubles.told(client.admin)
            if trouble is not None:
                raise connection_error(self._connection, trouble, said=reason) from exc
            raise BrokerUnavailableError(self._connection.bootstrap_servers, reason) from exc

    def _own_client(self) -> _Client:
        """Return the client; after a refused login a new one, with the secrets and files as they are now.

        Raises:
            KafkaLoginError: They cannot be used now; they may be just being replaced.
        """
        client = self._client
        if client is None:
            try:
                client = self._client = _make_client(self._connection)
            except LakeboundError as exc:
                raise KafkaLoginError(self._connection.bootstrap_servers, str(exc), "that") from exc
        return client
