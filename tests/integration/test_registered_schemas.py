"""Topics whose records have schemas: all versions of a registry land without a restart, and what does not fit loses nothing."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.schema_registry import Schema, SchemaReference
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from tests.support.kafka.journal import Journal
from tests.support.kafka.makers import TopicMaker
from tests.support.kafka.producing import JournalingProducer
from tests.support.registry.front import front_of
from tests.support.registry.pipelines import registered
from tests.support.registry.said_answers import Said, answering
from tests.support.registry.server import SchemaRegistry
from tests.support.streams.applications import applications
from tests.support.streams.long_form import only_in_long_form
from tests.support.streams.pipelines import ANY_LANE, Lane, Pipeline, assert_exactly_once, make_pipeline
from tests.support.worlds.said_findings import read_findings

from lakebound.control.schemas_in_use import read_schemas_in_use, told_schemas
from lakebound.local.broker import Broker
from lakebound.tables.table import open_table

pytestmark = pytest.mark.integration

FIELDS = [{"name": "id", "type": "long"}, {"name": "city", "type": ["null", "string"], "default": None}]
NOTE = {"name": "note", "type": "string", "default": "none"}


@dataclass
class Writer:
    """Sends records as a producer with Confluent's serialiser does."""

    registry: SchemaRegistry
    producer: JournalingProducer
    topic: str

    def send(self, numbers: range, fields: Sequence[Mapping[str, Any]], row: Callable[[int], Mapping[str, Any]] | None) -> None:
        """Send records of a schema with these fields; ``row`` is what the tables get of each, None: they go to quarantine."""
        schema = json.dumps({"type": "record", "name": "Order", "namespace": "shop", "fields": list(fields)})
        serialise = AvroSerializer(self.registry.client(), schema)
        context = SerializationContext(self.topic, MessageField.VALUE)
        names = [field["name"] for field in fields]
        for number in numbers:
            value = {"id": number, "city": f"c{number}" if row else number, "note": f"n{number}"}
            content = serialise({name: value[name] for name in names}, context)
            self.producer.send(self.topic, content, rows=[dict(row(number))] if row else [])
        self.producer.flush()


def first_is_noted(pipeline: Pipeline) -> bool:
    """Whether the state says that the stream reads the first version of its subject."""
    record = read_schemas_in_use(pipeline.control)
    subject = f"subject {pipeline.spec.topics[0]}-value in the registry shop, version 1"
    return record is not None and any(subject in line for line in told_schemas(record.parts))


@pytest.mark.parametrize("lane", [pytest.param(ANY_LANE, marks=only_in_long_form), "cluster"])
def test_a_newer_version_lands_without_a_restart(
    broker: Broker, topic: TopicMaker, schema_registry: SchemaRegistry, tmp_path: Path, lane: Lane
) -> None:
    name, journal = topic("registered"), Journal()
    writer = Writer(schema_registry, JournalingProducer(broker.bootstrap_servers, journal), name)
    plain = make_pipeline(
        tmp_path, broker.bootstrap_servers, name, lane=lane, freshness="200ms", value={"format": "avro", "registry": "shop"}
    )
    pipeline = registered(plain, schema_registry.url, tmp_path)
    writer.send(range(200), FIELDS, lambda number: {"id": number, "city": f"c{number}", "note": None})
    with applications() as starter:
        application = starter.start(pipeline)
        application.wait_landed(journal.ends())
        application.wait_for(lambda: first_is_noted(pipeline), 60, "the state says what the stream reads with")
        writer.send(range(200, 400), [*FIELDS, NOTE], lambda number: {"id": number, "city": f"c{number}", "note": f"n{number}"})
        application.wait_landed(journal.ends())
        # An older producer goes on: by Avro's resolution the new field has its default.
        writer.send(range(400, 500), FIELDS, lambda number: {"id": number, "city": f"c{number}", "note": "none"})
        application.wait_landed(journal.ends())
        assert application.stop().verdict == "stopped"
    assert_exactly_once(pipeline, journal)


def test_a_version_that_does_not_fit_and_random_bytes_go_to_quarantine(
    broker: Broker, topic: TopicMaker, schema_registry: SchemaRegistry, tmp_path: Path
) -> None:
    name, journal = topic("registered"), Journal()
    producer = JournalingProducer(broker.bootstrap_servers, journal)
    writer = Writer(schema_registry, producer, name)
    schema_registry.ask("PUT", f"config/{name}-value", {"compatibility": "NONE"})
    plain = make_pipeline(
        tmp_path, broker.bootstrap_servers, name, lane=ANY_LANE, freshness="200ms", value={"format": "avro", "registry": "shop"}
    )
    pipeline = registered(plain, schema_registry.url, tmp_path)
    writer.send(range(100), FIELDS, lambda number: {"id": number, "city": f"c{number}"})
    with applications() as starter:
        application = starter.start(pipeline)
        application.wait_landed(journal.ends())
        # The tables hold text in the column city, and cannot hold numbers in it.
        writer.send(range(100, 150), [FIELDS[0], {"name": "city", "type": "long"}], None)
        for number in range(50):
            producer.send(name, b"\0" + (1_000_000 + number).to_bytes(4, "big") + b"abc")
            producer.send(name, b"{}")
        producer.flush()
        writer.send(range(150, 200), FIELDS, lambda number: {"id": number, "city": f"c{number}"})
        application.wait_landed(journal.ends())
        assert application.stop().verdict == "stopped"
    assert_exactly_once(pipeline, journal)
    (finding,) = [found for said in read_findings(pipeline.control) if said.source == "schema" for found in said.findings]
    assert "city" in finding.what
    reasons = set(pipeline.read(pipeline.spec.quarantine_table)["reason"].to_pylist())
    assert reasons == {"schema_does_not_fit", "no_schema_id"}


def test_a_registry_that_is_away_delays_new_schemas_alone_and_a_kill_loses_nothing(
    broker: Broker, topic: TopicMaker, schema_registry: SchemaRegistry, tmp_path: Path
) -> None:
    name, journal = topic("registered"), Journal()
    writer = Writer(schema_registry, JournalingProducer(broker.bootstrap_servers, journal), name)
    plain = make_pipeline(
        tmp_path, broker.bootstrap_servers, name, lane=ANY_LANE, freshness="200ms", value={"format": "avro", "registry": "shop"}
    )
    writer.send(range(100), FIELDS, lambda number: {"id": number, "city": f"c{number}", "note": None})
    with front_of(schema_registry) as front, applications() as starter:
        pipeline = registered(plain, front.url, tmp_path)
        first = starter.start(pipeline, own_jvm=True)
        first.wait_landed(journal.ends())
        front.is_away = True
        first.kill()
        # What was used is kept with the state: the next application starts without the registry.
        writer.send(range(100, 200), FIELDS, lambda number: {"id": number, "city": f"c{number}", "note": None})
        second = starter.start(pipeline)
        second.wait_landed(journal.ends())
        writer.send(range(200, 300), [*FIELDS, NOTE], lambda number: {"id": number, "city": f"c{number}", "note": f"n{number}"})
        second.wait_for(
            lambda: "no answer from the schema registry" in second.log.read_text(),
            60,
            "the registry is asked for the new schema",
        )
        front.is_away = False
        second.wait_landed(journal.ends())
        assert second.stop().verdict == "stopped"
    assert_exactly_once(pipeline, journal)


@pytest.mark.parametrize("known_by", [pytest.param("the state", marks=only_in_long_form), "the tables alone"])
def test_an_id_that_means_another_schema_now_is_no_longer_read(
    broker: Broker, topic: TopicMaker, schema_registry: SchemaRegistry, tmp_path: Path, known_by: str
) -> None:
    """A registry that was set up again counts from 1 anew: by chance the other schema could be read from the same bytes."""
    name, journal = topic("registered"), Journal()
    producer = JournalingProducer(broker.bootstrap_servers, journal)
    writer = Writer(schema_registry, producer, name)
    plain = make_pipeline(
        tmp_path, broker.bootstrap_servers, name, lane=ANY_LANE, freshness="200ms", value={"format": "avro", "registry": "shop"}
    )
    writer.send(range(100), FIELDS, lambda number: {"id": number, "city": f"c{number}"})
    ids = [schema_registry.ask("GET", f"subjects/{name}-value/versions/1")["id"]]
    other = json.dumps(
        {
            "type": "record",
            "name": "Order",
            "fields": [{"name": "id", "type": "long"}, {"name": "town", "type": FIELDS[1]["type"]}],
        }
    )

    def set_up_again(path: str) -> Said:
        known = path.split("?")[0]
        if known.endswith("/versions"):
            return Said(b"[1]")
        return Said(json.dumps({"subject": f"{name}-value", "version": 1, "id": ids[0], "schema": other}).encode())

    with applications() as starter:
        pipeline = registered(plain, schema_registry.url, tmp_path)
        first = starter.start(pipeline)
        first.wait_landed(journal.ends())
        assert first.stop().verdict == "stopped"
        for table in pipeline.spec.tables:
            entry = open_table(table, pipeline.places).read_ledger().entry
            assert entry is not None and [*entry.schemas["shop"]] == [str(ids[0])]
        if known_by == "the tables alone":
            shutil.rmtree(pipeline.control.folder / "schemas")
        with answering(set_up_again) as again:
            pipeline = registered(plain, again.url, tmp_path)
            if known_by == "the tables alone":  # Nobody has the older schema any more: nothing says which columns there are.
                outcome = starter.start(pipeline).ended()
                assert outcome.verdict == "refused" and "another schema" in outcome.reason, outcome
            else:
                second = starter.start(pipeline)
                writer.send(range(100, 120), FIELDS, lambda number: {"id": number, "city": f"c{number}"})
                second.wait_landed(journal.ends())
                assert second.stop().verdict == "stopped"
                held = pipeline.read(pipeline.spec.quarantine_table)
                assert held.num_rows == 20 and all("another schema" in one for one in held["error"].to_pylist())
    assert all("town" not in pipeline.read(table).column_names for table in pipeline.spec.tables)


PROTO = """
syntax = "proto3";
package shop;
import "parts/place.proto";
message Order { int64 id = 1; Place place = 2; }
"""
PLACE = """
syntax = "proto3";
package shop;
message Place { string city = 1; }
"""


def test_values_of_a_schema_file_land_by_executors_too(broker: Broker, topic: TopicMaker, tmp_path: Path) -> None:
    name, journal = topic("filed"), Journal()
    producer = JournalingProducer(broker.bootstrap_servers, journal)
    folder = tmp_path / "include" / "schemas" / "parts"
    folder.mkdir(parents=True)
    (folder.parent / "order.proto").write_text(PROTO)
    (folder / "place.proto").write_text(PLACE)
    value = {"format": "protobuf", "schema_file": "order.proto", "record": "shop.Order"}
    plain = make_pipeline(tmp_path, broker.bootstrap_servers, name, lane="cluster", freshness="200ms", value=value)
    pipeline = registered(plain, "http://127.0.0.1:1", tmp_path)
    for number in range(100):
        place = b"\x0a\x01" + str(number % 10).encode()
        content = b"\x08" + bytes([number]) + b"\x12" + bytes([len(place)]) + place
        producer.send(name, content, rows=[{"id": number, "place": {"city": str(number % 10)}}])
        producer.send(name, content[:-1])
    producer.flush()
    with applications() as starter:
        application = starter.start(pipeline)
        application.wait_landed(journal.ends())
        assert application.stop().verdict == "stopped"
    assert_exactly_once(pipeline, journal)


def test_json_with_a_json_schema_and_a_reference_follows_the_registry(
    broker: Broker, topic: TopicMaker, schema_registry: SchemaRegistry, tmp_path: Path
) -> None:
    name, journal = topic("registered"), Journal()
    producer, context = JournalingProducer(broker.bootstrap_servers, journal), SerializationContext(name, MessageField.VALUE)
    schema_registry.ask("PUT", f"config/{name}-value", {"compatibility": "NONE"})
    place = {"type": "object", "properties": {"city": {"type": "string"}, "zip": {"type": ["integer", "null"]}}}
    subject = schema_registry.subject("place")
    schema_registry.client().register_schema(subject, Schema(json.dumps(place), "JSON"))
    old = {"id": {"type": "integer"}, "place": {"$ref": "place.json"}, "at": {"type": "string", "format": "date"}}

    def send(numbers: range, properties: Mapping[str, Any], values: Mapping[str, Any], row: Mapping[str, Any] | None) -> None:
        """Send records of a schema with these properties; ``row`` is what the tables get of each, None: quarantine."""
        text = json.dumps({"title": "Order", "type": "object", "required": ["id"], "properties": properties})
        schema = Schema(text, "JSON", [SchemaReference("place.json", subject, 1)])
        serialise = JSONSerializer(schema, schema_registry.client(), conf={"validate": False})
        for number in numbers:
            rows = [{"id": number, **row}] if row is not None else []
            producer.send(name, serialise({"id": number, **values}, context), rows=rows)
        producer.flush()

    plain = make_pipeline(
        tmp_path,
        broker.bootstrap_servers,
        name,
        lane=ANY_LANE,
        freshness="200ms",
        value={"format": "json_schema", "registry": "shop"},
    )
    pipeline = registered(plain, schema_registry.url, tmp_path)
    first = {"place": {"city": "Zürich", "zip": None}, "at": "2024-02-29"}
    landed = {"place": first["place"], "at": date(2024, 2, 29), "note": None}
    send(range(100), old, first, landed)
    with applications() as starter:
        application = starter.start(pipeline)
        application.wait_landed(journal.ends())
        send(range(100, 200), {**old, "note": {"type": "string"}}, {"note": "n"}, {"place": None, "at": None, "note": "n"})
        application.wait_landed(journal.ends())
        send(range(200, 250), old, first, landed)
        send(range(250, 260), old, {"place": {"city": "Bern", "zip": "3000"}}, None)
        # What the tables have as a date, this schema has as an array.
        send(range(260, 270), {**old, "at": {"type": "array", "items": {"type": "string"}}}, {"at": []}, None)
        application.wait_landed(journal.ends())
        assert application.stop().verdict == "stopped"
    assert_exactly_once(pipeline, journal)
    reasons = pipeline.read(pipeline.spec.quarantine_table)["reason"].to_pylist()
    assert sorted(reasons) == ["does_not_fit"] * 10 + ["schema_does_not_fit"] * 10
