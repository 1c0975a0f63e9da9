"""Right YAML of a pipeline in which nearly every field is used, and what kind of text each field takes."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any, Literal

import yaml

from lakebound.settings import Settings
from lakebound.spec.load import load_pipelines

Rule = Literal["certificate", "secret file", "secret variable", "server", "address", "code", "setting", "shape", "text"]
RULES: dict[str, Rule] = {
    "connection.bootstrap_servers": "server",
    "connection.tls_ca_file": "certificate",
    "connection.tls_certificate_file": "certificate",
    "connection.tls_key_file": "secret file",
    "connection.sasl.token_url": "address",
    "connection.sasl.token_ca_file": "certificate",
    "reference.postgres.host": "server",
    "reference.postgres.tls_ca_file": "certificate",
    "to_stores.postgres.host": "server",
    "to_stores.postgres.tls_ca_file": "certificate",
    "to_stores.redis.host": "server",
    "to_stores.redis.tls_ca_file": "certificate",
    "spark.conf": "setting",
    "spark.profile": "shape",
    "transform": "code",
    **{
        f"{login}.{kind}": "secret file" if kind == "file" else "secret variable"
        for login in (
            "connection.tls_key_password",
            "connection.sasl.password",
            "connection.sasl.client_secret",
            "reference.postgres.password",
            "to_stores.postgres.password",
            "to_stores.redis.password",
        )
        for kind in ("file", "env")
    },
    # Only the names that the field is for: a hostile one is refused.
    **dict.fromkeys(
        (
            *("pipeline", "topics", "freshness", "warehouse", "real_time.epoch", "real_time.tables"),
            *(
                "real_time.quarantine_topic",
                "reference",
                "reference.name",
                "reference.refresh",
                "to_stores.name",
                "to_stores.key",
            ),
            *("tables.name", "quarantine.name", "to_topics.topic", "spark.driver_memory", "spark.executor_memory"),
            *("to_stores.counters.windows", "to_stores.counters.sums", "to_stores.delete_if", "complete_hours.grace"),
            *("state.event_time", "state.watermark", "state.max_ahead"),
            *("connection.client.client.id", "connection.client.client.rack", "connection.sasl.extensions"),
            *("maintenance.readers.table", "value.registry", "value.schema_file", "key.registry", "key.schema_file"),
        ),
        "shape",
    ),
    # Shown, compared, or given to a server or a parser as a value: reading the YAML opens nothing by it. Where reference data
    # may lie is asked when it is opened, which properties a table may have by the check of properties.
    **dict.fromkeys(
        (
            *("reference.postgres.database", "reference.postgres.username", "to_stores.postgres.database"),
            *("to_stores.postgres.username", "reference.schema", "maintenance.readers.name"),
            *(
                "description",
                "schedule",
                "value.schema",
                "value.json_schema",
                "value.ignored_fields",
                "value.subject",
                *("key.as", "key.columns", "key.schema", "key.json_schema", "headers.as", "headers.name"),
                *("value.record", "key.record", "key.subject"),
                "approvers",
                "owners",
                "to_topics.key",
            ),
            *("connection.sasl.username", "connection.sasl.client_id", "connection.sasl.scope", "to_stores.redis.username"),
            *("reference.path", "reference.query", "reference.columns", "reference.key", "to_stores.columns"),
            *("to_stores.counters.time", "tables.partition_by", "tables.properties", "quarantine.partition_by"),
            *("quarantine.properties", "complete_hours.column", "maintenance.readers.checkpoint"),
            *("maintenance.compaction.sort_by", "maintenance.compaction.zorder_by"),
        ),
        "text",
    ),
}

_FILE = {"file": "kafka"}
_POSTGRES = {
    "host": "kafka",
    "port": 9092,
    "database": "shop",
    "username": "ada",
    "password": _FILE,
    "sslmode": "verify-full",
    "tls_ca_file": "ca.pem",
}
_TABLE = {"name": "sales.orders", "partition_by": ["at"], "properties": {"a": "b"}}
_SASL = {"mechanism": "PLAIN", "username": "a", "password": _FILE}
_TOKENS = {
    "mechanism": "OAUTHBEARER",
    "token_url": "https://idp.example.com/token",
    "client_id": "a",
    "client_secret": _FILE,
    "scope": "s",
    "token_ca_file": "ca.pem",
    "extensions": {"a": "b"},
}
WHOLE: dict[str, Any] = {
    "pipeline": "orders",
    "description": "d",
    "topics": ["orders"],
    "connection": {
        "bootstrap_servers": "kafka:9092",
        "tls": True,
        "tls_ca_file": "ca.pem",
        "tls_certificate_file": "a.pem",
        "tls_key_file": "a.key",
        "tls_key_password": _FILE,
        "sasl": _SASL,
        "client": {"client.id": "a", "client.rack": "b"},
    },
    "value": {"format": "json", "schema": "a STRING, at TIMESTAMP, b BOOLEAN, n BIGINT"},
    "freshness": "1s",
    "schedule": "@hourly",
    "real_time": {"epoch": "5s", "tables": "1s", "quarantine_topic": "bad"},
    "transform": "transforms.orders.clean",
    "reference": {
        "shop": {"format": "postgres", "name": "a", "key": ["a"], "columns": ["a"], "refresh": "5m", "postgres": _POSTGRES},
        "asked": {"format": "postgres", "query": "SELECT 1 AS a", "key": ["a"], "postgres": _POSTGRES},
        "rates": {"format": "csv", "path": "rates.csv", "schema": "a STRING", "key": ["a"]},
    },
    "tables": [{"format": "delta", **_TABLE}],
    "to_topics": [{"topic": "clean", "key": "a"}],
    "to_stores": [
        {"name": "cards", "key": "a", "postgres": _POSTGRES, "columns": ["n"], "delete_if": "b"},
        {
            "name": "velocity",
            "key": "a",
            "redis": {
                "host": "kafka",
                "port": 9092,
                "username": "ada",
                "password": _FILE,
                "tls": True,
                "tls_ca_file": "ca.pem",
            },
            "counters": {"time": "at", "windows": {"1m": "5s"}, "sums": ["n"]},
        },
    ],
    "quarantine": {"format": "delta", "name": "bad.orders", "properties": {"a": "b"}},
    "warehouse": "default",
    "maintenance": {
        "compaction": {"zorder_by": ["a"]},
        "readers": [{"name": "r", "table": "sales.orders", "checkpoint": "/srv/reader"}],
    },
    "complete_hours": {"column": "at", "grace": "5m"},
    "spark": {"driver_memory": "1g", "executor_memory": "1g", "conf": {"spark.task.cpus": "1"}, "profile": "small"},
    "approvers": ["ada"],
    "owners": ["team"],
}
_NEEDED = ("pipeline", "topics", "connection", "value", "freshness", "transform", "tables")
INSTALLATION = """\
spark_profiles: {small: {max_cores: 2}}
secrets:
  files: {kafka: ["kafka:9092", "idp.example.com:443"], a.key: ["kafka:9092"]}
"""


def problems_of(settings: Settings, body: dict[str, Any]) -> list[str]:
    """Return what is wrong with a pipeline's file that says this."""
    (settings.pipelines.parent / "installation.yaml").write_text(INSTALLATION)
    (settings.pipelines / "orders.yaml").write_text(yaml.dump(body, Dumper=yaml.CSafeDumper))
    return load_pipelines(settings).problems


def bodies() -> Iterator[dict[str, Any]]:
    """Yield right YAML, in which nearly every field is used."""
    yield copy.deepcopy(WHOLE)
    yield copy.deepcopy({**WHOLE, "connection": {**WHOLE["connection"], "sasl": _TOKENS}})
    small = {key: WHOLE[key] for key in ("pipeline", "topics", "connection", "freshness", "tables")}
    small["headers"] = [{"name": "trace-id", "as": "trace_id", "type": "STRING"}]
    whole_key, its_fields = {"format": "string", "as": "order_key"}, {"format": "json", "schema": "a STRING", "columns": ["a"]}
    registered = {"format": "avro", "registry": "shop", "subject": "orders", "record": "a.Order"}
    of_a_file = {"format": "protobuf", "schema_file": "order.proto", "record": "a.Order"}
    key_of_a_file = {"format": "avro", "schema_file": "key.avsc", "as": "order_key"}
    yield copy.deepcopy({**small, "key": whole_key, "value": registered})
    yield copy.deepcopy({**small, "key": its_fields, "value": of_a_file})
    yield copy.deepcopy({**small, "key": {**registered, "columns": ["a"]}, "value": of_a_file})
    yield copy.deepcopy({**small, "key": key_of_a_file, "value": of_a_file})
    of_windows = {"event_time": "at", "watermark": "10m", "max_ahead": "1h"}
    yield copy.deepcopy({**small, "value": WHOLE["value"], "transform": WHOLE["transform"], "state": of_windows})


def parts_for(field: str) -> Iterator[dict[str, Any]]:
    """Yield of the right YAML what a field stands in, which is right as well: the whole takes three times as long to read."""
    part = field.split(".")[0]
    for body in bodies():
        if part != "connection":
            body["connection"] = {"bootstrap_servers": body["connection"]["bootstrap_servers"]}
        yield {key: body[key] for key in body if key in (*_NEEDED, part)}


def with_value(field: str, value: Any) -> Iterator[dict[str, Any]]:
    """Yield right YAML with this value in each place of the field; a server keeps its secret, and so goes elsewhere."""
    is_found = False
    if field.endswith(".env"):
        field, value = field.removesuffix(".env"), {"env": value}
    for body in parts_for(field):
        for place, key in _places(body, field.split(".")):
            before = place[key]
            if isinstance(before, list) and not isinstance(value, list):
                place[key] = [value]
            elif isinstance(before, dict) and not isinstance(value, dict):
                place[key] = {value: next(iter(before.values()))}
            else:
                place[key] = f"kafka:9092,{value}:9092" if key == "bootstrap_servers" else value
            yield copy.deepcopy(body)
            place[key] = before
            is_found = True
        if is_found:
            return


def _places(node: Any, keys: list[str]) -> Iterator[tuple[Any, Any]]:
    """Yield where the field is; names of references and lists are passed through, and Kafka's names have dots in them."""
    if isinstance(node, list):
        for one in node:
            yield from _places(one, keys)
    elif isinstance(node, dict):
        for taken in (1, 2):
            key, rest = ".".join(keys[:taken]), keys[taken:]
            if key in node and not rest:
                yield node, key
            elif key in node:
                yield from _places(node[key], rest)
                if isinstance(node[key], dict) and rest[0] not in node[key]:
                    for one in node[key].values():
                        yield from _places(one, rest)
