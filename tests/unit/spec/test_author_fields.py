"""Every field of a pipeline's YAML that takes text has a rule, and an author with bad intentions gets nothing by any of them.

A new field without a rule fails the first test. `docs/security.md` says what the rules mean.
"""

from __future__ import annotations

import copy
import os
import sys
import typing
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import get_ident
from typing import Any, Literal

import pytest
import yaml
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from pydantic import BaseModel
from tests.support.streams.pipeline_files import settings

from lakebound.settings import Settings
from lakebound.spec.load import load_pipelines
from lakebound.spec.pipeline import PipelineSpec

__all__ = ["settings"]
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
            *("connection.client.client.id", "connection.client.client.rack", "connection.sasl.extensions"),
            "maintenance.readers.table",
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
ELSEWHERE = ["/etc/shadow", "/dev/zero", "/proc/self/environ", "../../../etc/passwd", "x/../../x"]
NOT_PLAIN = ["../x", "a b;c", "a\nb", "$(id)"]
HOSTILE: dict[Rule, list[Any]] = {
    "certificate": ELSEWHERE,
    "secret file": [
        *ELSEWHERE,
        "loose",
        "payments/db",
        "channels/hook",
        "warehouses/key",
        "AIRFLOW_CONN_OPS",
        "orders/../kafka/x",
    ],
    "secret variable": ["PATH", "AWS_SECRET_ACCESS_KEY", "AIRFLOW__CORE__FERNET_KEY", "LAKEBOUND_SECRET_OTHER", "a b"],
    "server": ["evil.test", "10.0.0.1", "kafka.evil.test", "/var/run/postgresql", "169.254.169.254"],
    "address": [
        "http://169.254.169.254/latest",
        "https://evil.test/token",
        "file:///etc/passwd",
        "https://idp.example.com:444/",
    ],
    "code": ["os.system", "transforms.os.path.join.x y", "subprocess", "transforms.", "transforms/../x", "__import__('os').x"],
    "setting": [
        {name: "anything"}
        for name in (
            "spark.jars",
            "spark.driver.resource.gpu.discoveryScript",
            "spark.python.daemon.module",
            "spark.executorEnv.LD_PRELOAD",
            "spark.hadoop.fs.s3a.endpoint",
            "spark.sql.shuffle.partitions",
        )
    ],
    "shape": NOT_PLAIN,
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
INSTALLATION = """\
spark_profiles: {small: {max_cores: 2}}
secrets:
  files: {kafka: ["kafka:9092", "idp.example.com:443"], a.key: ["kafka:9092"]}
"""


def test_every_field_that_takes_text_has_a_rule() -> None:
    assert {*_text_fields(PipelineSpec)} == RULES.keys()


@pytest.mark.parametrize("field", sorted(name for name, rule in RULES.items() if rule != "text"))
def test_what_is_hostile_is_refused(settings: Settings, field: str) -> None:
    tried = 0
    for hostile in HOSTILE[RULES[field]]:
        for body in _with(field, hostile):
            with _nothing_is_opened(settings.pipelines):
                problems = _problems(settings, body)
            tried += 1
            assert problems, f"{field}: {hostile!r} was taken"
    if not tried:
        assert field in UNREACHED, f"no YAML of this test has {field}"


UNREACHED = ("maintenance.compaction.sort_by",)


@pytest.mark.parametrize("field", sorted(name for name, rule in RULES.items() if rule == "text"))
def test_text_opens_nothing_on_this_machine(settings: Settings, field: str) -> None:
    for hostile in ("/dev/zero", "../../../etc/passwd", "__import__('os')", "http://169.254.169.254/latest"):
        for body in _with(field, hostile):
            with _nothing_is_opened(settings.pipelines):
                _problems(settings, body)


@hypothesis_settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=10)
@given(
    field=st.sampled_from(sorted(RULES)), value=st.one_of(st.text(), st.sampled_from(ELSEWHERE), st.integers(), st.booleans())
)
def test_no_text_in_any_field_opens_anything_or_breaks_the_reader(settings: Settings, field: str, value: Any) -> None:
    for body in _with(field, value):
        with _nothing_is_opened(settings.pipelines):
            _problems(settings, body)


def test_the_yaml_of_these_tests_is_right(settings: Settings) -> None:
    assert [_problems(settings, body) for body in _bodies()] == [[], []]


def _problems(settings: Settings, body: dict[str, Any]) -> list[str]:
    (settings.pipelines.parent / "installation.yaml").write_text(INSTALLATION)
    (settings.pipelines / "orders.yaml").write_text(yaml.safe_dump(body))
    return load_pipelines(settings).problems


def _bodies() -> Iterator[dict[str, Any]]:
    yield copy.deepcopy(WHOLE)
    yield copy.deepcopy({**WHOLE, "connection": {**WHOLE["connection"], "sasl": _TOKENS}})


def _with(field: str, value: Any) -> Iterator[dict[str, Any]]:
    """Yield the right YAML with this value in each place of the field; a server keeps its secret, and so goes elsewhere."""
    is_found = False
    if field.endswith(".env"):
        field, value = field.removesuffix(".env"), {"env": value}
    for body in _bodies():
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


def _text_fields(model: type[BaseModel], keys: tuple[str, ...] = ()) -> Iterator[str]:
    for name, field in model.model_fields.items():
        own = (*keys, field.alias or name)
        for inner in _models(field.annotation):
            yield from _text_fields(inner, own)
        if _takes_text(field.annotation):
            yield ".".join(own)


def _models(kind: Any) -> Iterator[type[BaseModel]]:
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        yield kind
    for argument in typing.get_args(kind):
        yield from _models(argument)


def _takes_text(kind: Any) -> bool:
    if isinstance(kind, type) and not typing.get_args(kind):
        return issubclass(kind, str | os.PathLike) or kind is object
    return kind is Any or (typing.get_origin(kind) is not Literal and any(map(_takes_text, typing.get_args(kind))))


_WATCHED: list[tuple[int, Path, list[str]]] = []


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    for thread, folder, seen in _WATCHED:
        if thread != get_ident():
            continue  # threads that earlier tests have left may do what they like
        if event == "open" and isinstance(arguments[0], str) and not _may_be_open(arguments[0], folder):
            seen.append(f"open {arguments[0]}")
        elif event in ("socket.connect", "socket.getaddrinfo", "subprocess.Popen", "os.system", "os.exec"):
            seen.append(event)


def _may_be_open(file: str, folder: Path) -> bool:
    code = (sys.prefix, sys.base_prefix, str(Path(__file__).parents[3] / "include"))
    return file.startswith((str(folder.parent), *code)) or file.endswith((".py", ".pyc"))


sys.addaudithook(_hook)


@contextmanager
def _nothing_is_opened(folder: Path) -> Iterator[None]:
    """Inside the block, no file outside of the test's folder is opened, and nothing is connected to or started."""
    watched: tuple[int, Path, list[str]] = (get_ident(), folder, [])
    _WATCHED.append(watched)
    try:
        yield
    finally:
        _WATCHED.remove(watched)
    assert watched[2] == []
