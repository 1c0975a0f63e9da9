"""Invented records in Avro, as Confluent's serialiser writes them: the schema is registered with the first one."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

from lakebound.errors import LakeboundError
from lakebound.first_line import first_line
from lakebound.spec.registry import RegistrySpec
from lakebound.spec.secret_bindings import REGISTRIES
from lakebound.spec.secrets import read_operators_secret

Encode = Callable[[Mapping[str, Any]], bytes]


class AvroProduceError(LakeboundError):
    """Records cannot be sent in Avro."""

    def __init__(self, problem: str) -> None:
        super().__init__(f"records cannot be sent in Avro: {problem}")


def avro_encoder(name: str, registry: RegistrySpec, schema: str, topic: str) -> Encode:
    """Return what writes records of a topic in Avro; nothing is asked of the registry before the first one.

    Args:
        name: Of the registry in registries.yaml.
        registry: How it is reached: without a login, or by user and password.
        schema: Avro schema of the records; a field that they do not have has its default.
        topic: The subject is ``TOPIC-value``.

    Raises:
        AvroProduceError: The schema cannot be read, the registry has another login, or the serialiser is not installed.
        MissingSecretError: The password is not where the file says.
    """
    try:
        from confluent_kafka.schema_registry import SchemaRegistryClient
        from confluent_kafka.schema_registry.avro import AvroSerializer
        from confluent_kafka.serialization import MessageField, SerializationContext
    except ImportError as exc:
        raise AvroProduceError(f"{exc}; install confluent-kafka with its serialiser: confluent-kafka[avro]") from exc
    try:
        parsed = json.loads(schema)
        serialise = AvroSerializer(SchemaRegistryClient(_client_settings(name, registry)), schema)
    except LakeboundError:
        raise
    except Exception as exc:
        raise AvroProduceError(f"the schema: {first_line(exc)}") from exc
    context = SerializationContext(topic, MessageField.VALUE)

    def encode(record: Mapping[str, Any]) -> bytes:
        try:
            value: bytes = serialise(as_avro(parsed, record), context)
        except Exception as exc:
            raise AvroProduceError(f"registry {name}: {first_line(exc)}") from exc
        return value

    return encode


def as_avro(schema: Any, value: Any) -> Any:
    """Return a value of JSON as the serialiser takes it: decimals and times are texts and numbers in JSON.

    Args:
        schema: Its type, as the JSON of an Avro schema.
        value: The value.
    """
    if value is None or not isinstance(schema, dict):
        return value
    if schema["type"] == "record":
        return {
            field["name"]: as_avro(_inner(field), value[field["name"]]) for field in schema["fields"] if field["name"] in value
        }
    if schema["type"] == "array":
        return [as_avro(schema["items"], one) for one in value]
    logical = schema.get("logicalType")
    if logical == "decimal":
        return Decimal(str(value)).quantize(Decimal(1).scaleb(-schema.get("scale", 0)))
    return datetime.fromisoformat(value) if logical in ("timestamp-millis", "timestamp-micros") else value


def _inner(field: Mapping[str, Any]) -> Any:
    """Return the type of a field; of a union with null the other one."""
    kind = field["type"]
    return next((one for one in kind if one != "null"), kind) if isinstance(kind, list) else kind


def _client_settings(name: str, registry: RegistrySpec) -> dict[str, str | int | float]:
    if registry.token is not None or registry.tls_certificate_file is not None:
        raise AvroProduceError(f"registry {name}: only user and password are used for sending, not a token or a certificate")
    found: dict[str, str | int | float] = {"url": registry.url, "timeout": registry.request_timeout_seconds, "max.retries": 1}
    if registry.tls_ca_file is not None:
        found["ssl.ca.location"] = registry.tls_ca_file
    if registry.username is not None and registry.password is not None:
        password = read_operators_secret(registry.password, f"registries.{name}.password", REGISTRIES)
        found["basic.auth.user.info"] = f"{registry.username}:{password}"
    return found
