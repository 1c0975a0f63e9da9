"""From a topic with Confluent's serialisers to a pipeline that lands it: `lakebound new` asks the registry for the rest."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import yaml
from confluent_kafka import Producer
from confluent_kafka.schema_registry import Schema
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from tests.support.kafka.makers import TopicMaker
from tests.support.kafka.raw_headers import send_with_header
from tests.support.registry.server import SchemaRegistry
from tests.support.streams.command_line import answer, settings
from tests.support.streams.long_form import LONG_FORM

from lakebound.local.broker import Broker
from lakebound.settings import Settings

__all__ = ["settings"]
pytestmark = pytest.mark.integration

APPLICATIONS = Path(__file__).parents[2] / "spark_apps"
ORDER = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "amount", "type": {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    ],
}
MESSAGES = 'syntax = "proto3"; package shop; message Order { int64 id = 1; } message Paid { int64 id = 1; string by = 2; }'


@pytest.fixture
def home(settings: Settings, broker: Broker, schema_registry: SchemaRegistry, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Places of the test's own, with a registry that registries.yaml names."""
    monkeypatch.setenv("LAKEBOUND_KAFKA", broker.bootstrap_servers)
    (settings.pipelines / "orders.yaml").unlink()
    for application in APPLICATIONS.glob("*.py"):
        shutil.copy(application, settings.apps)
    (settings.apps / "transforms" / "__init__.py").touch()
    registries = {"registries": {"shop": {"url": schema_registry.url}, "away": {"url": "http://127.0.0.1:1"}}}
    (settings.pipelines.parent / "registries.yaml").write_text(yaml.safe_dump(registries))
    return settings


def send(broker: Broker, topic: str, *values: bytes | None, key: bytes = b"k") -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for value in values:
        producer.produce(topic, value, key=key)
    assert producer.flush(30) == 0


def proposal(settings: Settings, name: str, topic: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what `lakebound new` says, and the value of the YAML that it has written."""
    made = answer("new", name, "--from-topic", topic)
    assert answer("check", name, "--static")["ok"]
    return made, yaml.safe_load((settings.pipelines / f"{name}.yaml").read_text())["value"]


def test_avro_is_proposed_with_its_subject_and_lands_as_it_is_proposed(
    home: Settings, broker: Broker, topic: TopicMaker, schema_registry: SchemaRegistry
) -> None:
    name = topic("orders")
    write = AvroSerializer(schema_registry.client(), json.dumps(ORDER))
    context = SerializationContext(name, MessageField.VALUE)
    values = [write({"id": n, "amount": Decimal(n), "at": 1_767_225_600_000 + n}, context) for n in range(20)]
    send(broker, name, *values)
    # No client of Python reads the headers of such a record.
    send_with_header(broker.bootstrap_servers, name, 0, values[1], b"\xffname", b"content")
    made, value = proposal(home, "payments", name)
    assert value == {"format": "avro", "registry": "shop"}
    columns = [(one["name"], one["type"]) for one in made["columns"]]
    assert columns == [("id", "BIGINT"), ("amount", "DECIMAL(10,2)"), ("at", "TIMESTAMP")]
    if LONG_FORM:  # shortly: a version of the registry lands in test_registered_schemas.py
        tried = answer("try", "payments", "--from-beginning")
        assert [tried[key] for key in ("read", "landed", "bad", "problems")] == [21, 21, 0, []]
        assert "1.00" in [row["amount"] for row in tried["tables"]["delta:lake.payments"]["rows"]]
        assert f"avro of the subject {name}-value in the registry shop, version 1" in tried["schemas"][0]
        test = made["files"][-1]
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", test], capture_output=True, text=True, cwd=home.home.parent
        )
        assert "2 passed" in done.stdout, done.stdout


def test_subjects_by_the_record_and_one_of_several_messages_are_found(
    home: Settings, broker: Broker, topic: TopicMaker, schema_registry: SchemaRegistry
) -> None:
    by_record, messages, json_schema = topic("record"), topic("messages"), topic("json")
    record = f"Order{by_record.replace('-', '')[-8:]}"
    client = schema_registry.client()
    number = client.register_schema(f"shop.{record}", Schema(json.dumps({**ORDER, "name": record}), "AVRO"))
    send(broker, by_record, b"\0" + number.to_bytes(4, "big") + b"\x02\x02\x02\x02")
    _, value = proposal(home, "by_record", by_record)
    expected = {"format": "avro", "registry": "shop", "subject_strategy": "record_name", "record": f"shop.{record}"}
    assert value == expected

    number = client.register_schema(f"{messages}-value", Schema(MESSAGES, "PROTOBUF"))
    send(broker, messages, b"\0" + number.to_bytes(4, "big") + b"\x02\x02\x08\x01\x12\x01a")
    made, value = proposal(home, "messages", messages)
    assert value == {"format": "protobuf", "registry": "shop", "record": "shop.Paid"}
    assert [one["name"] for one in made["columns"]] == ["id", "by"]

    shape = json.dumps({"title": "Order", "type": "object", "properties": {"id": {"type": "integer"}}})
    write = JSONSerializer(shape, client)
    send(broker, json_schema, write({"id": 1}, SerializationContext(json_schema, MessageField.VALUE)))
    assert proposal(home, "json_orders", json_schema)[1] == {"format": "json_schema", "registry": "shop"}
