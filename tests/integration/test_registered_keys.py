"""Topics whose keys have schemas: what Confluent's serialiser writes lands in each lane, through new versions and a kill.

The short form leaves out the kill, which test_registered_schemas.py has, and the lanes: there executors read values with a
registry.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from tests.support.kafka.journal import Journal
from tests.support.kafka.makers import TopicMaker
from tests.support.kafka.producing import JournalingProducer
from tests.support.registry.pipelines import registered
from tests.support.registry.server import SchemaRegistry
from tests.support.streams.applications import applications
from tests.support.streams.long_form import only_in_long_form
from tests.support.streams.pipelines import ANY_LANE, LANES, Lane, assert_exactly_once, make_pipeline

from lakebound.local.broker import Broker

pytestmark = pytest.mark.integration

ID = {"name": "id", "type": "long"}
REGION = {"name": "region", "type": "string", "default": "none"}
CITY = {"name": "city", "type": ["null", "string"], "default": None}
Serialise = Callable[[Any], bytes]
Row = Mapping[str, Any]


def record(name: str, *fields: Mapping[str, Any]) -> str:
    return json.dumps({"type": "record", "name": name, "namespace": "shop", "fields": [*fields]})


def serialiser(registry: SchemaRegistry, topic: str, field: MessageField, schema: str) -> Serialise:
    """Return what writes keys or values as a producer does; the subject is TOPIC-key or TOPIC-value."""
    write, context = AvroSerializer(registry.client(), schema), SerializationContext(topic, field)

    def serialise(value: Any) -> bytes:
        content = write(value, context)
        assert isinstance(content, bytes)
        return content

    return serialise


@only_in_long_form
@pytest.mark.parametrize("lane", ["direct", *LANES])
def test_keys_of_newer_versions_land_through_a_kill_and_bad_ones_go_to_quarantine(
    broker: Broker, topic: TopicMaker, schema_registry: SchemaRegistry, tmp_path: Path, lane: Lane
) -> None:
    name, journal = topic("keyed"), Journal()
    producer = JournalingProducer(broker.bootstrap_servers, journal)
    value, key = {"format": "json", "schema": "v INT"}, {"format": "avro", "registry": "shop"}
    plain = make_pipeline(tmp_path, broker.bootstrap_servers, name, lane=lane, freshness="200ms", value=value, key=key)
    pipeline = registered(plain, schema_registry.url, tmp_path)
    old = serialiser(schema_registry, name, MessageField.KEY, record("Key", ID))

    def send(numbers: range, serialise: Serialise, made: Callable[[int], Row], landed: Callable[[int], Row]) -> None:
        for number in numbers:
            row = {"key": dict(landed(number)), "v": number}
            producer.send(name, json.dumps({"v": number}).encode(), key=serialise(made(number)), rows=[row])
        producer.flush()

    send(range(100), old, lambda number: {"id": number}, lambda number: {"id": number, "region": None})
    with applications() as starter:
        application = starter.start(pipeline, own_jvm=True)
        application.wait_landed(journal.ends())
        new = serialiser(schema_registry, name, MessageField.KEY, record("Key", ID, REGION))
        send(range(100, 200), new, lambda number: {"id": number, "region": "eu"}, lambda number: {"id": number, "region": "eu"})
        application.kill()
        application = starter.start(pipeline)
        # An older producer goes on: by Avro's resolution the new field has its default.
        application.wait_landed(journal.ends())
        send(range(200, 250), old, lambda number: {"id": number}, lambda number: {"id": number, "region": "none"})
        producer.send(name, b'{"v": 1}', key=None, rows=[{"key": None, "v": 1}])
        for bad in (b"plain", b"", b"\0\0\x0f\xff\xff\x02", new({"id": 1, "region": "eu"})[:-1]):
            producer.send(name, b'{"v": 2}', key=bad)
        producer.flush()
        application.wait_landed(journal.ends())
        assert application.stop().verdict == "stopped"
    assert_exactly_once(pipeline, journal)
    bad_rows = pipeline.read(pipeline.spec.quarantine_table).to_pylist()
    reasons = [row["reason"] for row in sorted(bad_rows, key=lambda row: row["_kafka"]["offset"])]
    assert sorted(reasons) == sorted(["no_schema_id", "no_schema_id", "schema_does_not_fit", "malformed_avro"])
    assert all(row["error"].startswith("key: ") for row in bad_rows)


def test_keys_without_fields_land_beside_values_of_a_registry_and_both_follow_it(
    broker: Broker, topic: TopicMaker, schema_registry: SchemaRegistry, tmp_path: Path
) -> None:
    """The names of key and value have versions of their own; the key's is the column itself."""
    name, journal = topic("keyed"), Journal()
    producer = JournalingProducer(broker.bootstrap_servers, journal)
    source = {"format": "avro", "registry": "shop"}
    plain = make_pipeline(
        tmp_path,
        broker.bootstrap_servers,
        name,
        lane=ANY_LANE,
        freshness="200ms",
        value=source,
        key={**source, "as": "order_id"},
    )
    pipeline = registered(plain, schema_registry.url, tmp_path)
    schema_registry.ask("PUT", f"config/{name}-key", {"compatibility": "NONE"})
    text = serialiser(schema_registry, name, MessageField.KEY, '"string"')
    value = serialiser(schema_registry, name, MessageField.VALUE, record("Order", ID))
    wider = record("Order", ID, CITY)

    def send(numbers: range, key: Serialise, value: Serialise, row: Callable[[int], Row] | None) -> None:
        for number in numbers:
            fields = {"id": number, "city": "Bern"}
            content = value({one: fields[one] for one in (fields if value is not old_value else ["id"])})
            made = key(f"k{number}" if key is text else number)
            producer.send(name, content, key=made, rows=[dict(row(number))] if row else [])
        producer.flush()

    old_value = value
    send(range(50), text, value, lambda number: {"order_id": f"k{number}", "id": number, "city": None})
    with applications() as starter:
        application = starter.start(pipeline)
        application.wait_landed(journal.ends())
        value = serialiser(schema_registry, name, MessageField.VALUE, wider)
        send(range(50, 100), text, value, lambda number: {"order_id": f"k{number}", "id": number, "city": "Bern"})
        application.wait_landed(journal.ends())
        # The tables hold text in the column of the key, and cannot hold numbers in it.
        number_key = serialiser(schema_registry, name, MessageField.KEY, '"long"')
        send(range(100, 120), number_key, value, None)
        send(range(120, 150), text, value, lambda number: {"order_id": f"k{number}", "id": number, "city": "Bern"})
        application.wait_landed(journal.ends())
        assert application.stop().verdict == "stopped"
    assert_exactly_once(pipeline, journal)
    reasons = set(pipeline.read(pipeline.spec.quarantine_table)["reason"].to_pylist())
    assert reasons == {"schema_does_not_fit"}
