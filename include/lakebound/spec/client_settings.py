"""Settings of Kafka's own clients that a pipeline may change, by Kafka's names; and why others may not be changed. Pure."""

from __future__ import annotations

import re
from typing import Literal

from pydantic import Field, model_validator

from lakebound.frozen import Frozen

_NAME = r"^[A-Za-z0-9._-]{1,100}$"
_MIB = 1024 * 1024


class ClientSettings(Frozen):
    """Settings of the Kafka clients, by Kafka's own names.

    They reach every client that Lakebound makes for the pipeline: Spark's source (Java) and the driver's own (librdkafka).
    """

    client_id: str | None = Field(
        default=None, alias="client.id", pattern=_NAME, description="Name of the clients in the brokers' logs and quotas."
    )
    client_rack: str | None = Field(
        default=None,
        alias="client.rack",
        pattern=_NAME,
        description="Rack or zone of the clients. They can read from replicas in the same rack.",
    )
    client_dns_lookup: Literal["use_all_dns_ips", "resolve_canonical_bootstrap_servers_only"] | None = Field(
        default=None, alias="client.dns.lookup", description="How the brokers' names are looked up."
    )
    broker_address_family: Literal["any", "v4", "v6"] | None = Field(
        default=None,
        alias="broker.address.family",
        description="IP version of the driver's own clients. Java has no such setting.",
    )
    connections_max_idle_ms: int | None = Field(
        default=None,
        alias="connections.max.idle.ms",
        ge=10_000,
        le=86_400_000,
        description="An idle connection is closed after this time. If a firewall drops "
        "idle connections, choose a shorter time than the firewall.",
    )
    enable_metrics_push: bool | None = Field(
        default=None,
        alias="enable.metrics.push",
        description="Whether brokers may ask the clients for their metrics (KIP-714).",
    )
    fetch_max_bytes: int | None = Field(
        default=None, alias="fetch.max.bytes", ge=_MIB, le=1024 * _MIB, description="Maximum size of one answer to a reader."
    )
    fetch_max_wait_ms: int | None = Field(
        default=None,
        alias="fetch.max.wait.ms",
        ge=1,
        le=5_000,
        description="Maximum time that a broker waits for fetch.min.bytes before it answers a reader. Default: 50. With a "
        "larger value, records arrive later, and idle partitions need fewer requests.",
    )
    fetch_min_bytes: int | None = Field(
        default=None,
        alias="fetch.min.bytes",
        ge=1,
        le=100 * _MIB,
        description="Number of bytes that a broker collects before it answers a reader.",
    )
    max_partition_fetch_bytes: int | None = Field(
        default=None,
        alias="max.partition.fetch.bytes",
        ge=64 * 1024,
        le=256 * _MIB,
        description="Maximum size of the data of one partition in an answer to a reader.",
    )
    metadata_max_age_ms: int | None = Field(
        default=None,
        alias="metadata.max.age.ms",
        ge=1_000,
        le=3_600_000,
        description="The clients ask for the list of brokers again after this time.",
    )
    receive_buffer_bytes: int | None = Field(
        default=None, alias="receive.buffer.bytes", ge=4096, le=100_000_000, description="Size of the sockets' receive buffer."
    )
    send_buffer_bytes: int | None = Field(
        default=None, alias="send.buffer.bytes", ge=4096, le=100_000_000, description="Size of the sockets' send buffer."
    )
    reconnect_backoff_ms: int | None = Field(
        default=None, alias="reconnect.backoff.ms", ge=10, le=10_000, description="First pause before a client connects again."
    )
    reconnect_backoff_max_ms: int | None = Field(
        default=None,
        alias="reconnect.backoff.max.ms",
        ge=100,
        le=3_600_000,
        description="Longest pause before a client connects again.",
    )
    request_timeout_ms: int | None = Field(
        default=None,
        alias="request.timeout.ms",
        ge=10_000,
        le=300_000,
        description="How long a client waits for an answer. With a larger value, an outage is noticed later.",
    )
    retry_backoff_ms: int | None = Field(
        default=None, alias="retry.backoff.ms", ge=10, le=1_000, description="First pause before a request is sent again."
    )
    retry_backoff_max_ms: int | None = Field(
        default=None,
        alias="retry.backoff.max.ms",
        ge=100,
        le=300_000,
        description="Longest pause before a request is sent again.",
    )
    socket_connection_setup_timeout_ms: int | None = Field(
        default=None,
        alias="socket.connection.setup.timeout.ms",
        ge=1_000,
        le=300_000,
        description="How long a connection, TLS and login may take.",
    )
    socket_keepalive_enable: bool | None = Field(
        default=None,
        alias="socket.keepalive.enable",
        description="Whether the driver's own clients send TCP keep-alives. Java's always do.",
    )
    ssl_endpoint_identification_algorithm: Literal["https", "none"] | None = Field(
        default=None,
        alias="ssl.endpoint.identification.algorithm",
        description="With none, the name in a broker's certificate is not compared with the broker's address. Default: https.",
    )

    @model_validator(mode="after")
    def _longest_is_longer(self) -> ClientSettings:
        for name in ("reconnect.backoff", "retry.backoff"):
            chosen = self.chosen()
            first, longest = chosen.get(f"{name}.ms"), chosen.get(f"{name}.max.ms")
            if first and longest and int(first) > int(longest):
                raise ValueError(f"{name}.max.ms must not be less than {name}.ms")
        return self

    def chosen(self) -> dict[str, str]:
        """Return the settings that were made, by Kafka's names, as clients take them."""
        values = self.model_dump(by_alias=True, exclude_none=True)
        return {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in values.items()}


_NO_GROUP = "the readers join no consumer group, and the offsets are in the tables' ledgers"
_REASONS = (
    (r"isolation\.level", "Lakebound reads with read_committed; otherwise records of aborted transactions would land"),
    (r"(enable\.auto|auto\.commit|auto\.offset)\..*", f"{_NO_GROUP}; start_from says where a new pipeline begins"),
    (r"(group|session|heartbeat|partition\.assignment)\..*", _NO_GROUP),
    (r"(key|value)\.(de)?serializer.*", "Lakebound needs the bytes of a record; value says how they are decoded"),
    (r"max\.poll\..*", "limits.max_records_per_batch limits the size of a batch"),
    (r"bootstrap\.servers", "write it as connection.bootstrap_servers"),
    (r"security\.protocol", "it follows from connection.tls and connection.sasl"),
    (r".*\.class|.*\.classes|.*\.providers|.*\.reporters|plugin\..*", "it would load code into the application"),
    (r"sasl\..*", "write how to log in under connection.sasl"),
    (r"ssl\.(?!endpoint\.).*", "write it as connection.tls_ca_file, tls_certificate_file, tls_key_file or tls_key_password"),
    (r"(allow\.auto\.create|transactional|acks|linger|batch|compression|enable\.idempotence).*", "Lakebound only reads here"),
)


def refused_setting(name: str) -> str | None:
    """Return why a setting of Kafka's clients may not be made; None where it is not among those that are known to harm."""
    return next((reason for pattern, reason in _REASONS if re.fullmatch(pattern, name)), None)
