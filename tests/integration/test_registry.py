"""A real schema registry, written to by Confluent's own serialisers: what our client reads, and what survives which loss."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.schema_registry import Schema, SchemaReference
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import api_pb2, descriptor_pb2, type_pb2
from tests.support.registry.front import Front, front_of
from tests.support.registry.server import SchemaRegistry
from tests.support.streams.long_form import only_in_long_form

from lakebound.control.folder import ControlFolder
from lakebound.errors import RegistryAnswerError, RegistryLoginError, RegistryUnavailableError
from lakebound.formats.contract import Decoded, Records
from lakebound.formats.framing import schema_of
from lakebound.formats.kinds import KnownSchemas, SchemaFormat, schema_reader
from lakebound.formats.schemas import SchemaId, SchemaText
from lakebound.formats.versions import Version
from lakebound.landing.registry_subjects import RegistrySubjects
from lakebound.registry.client import RegistryClient, UnusableSchemaError
from lakebound.registry.finder import SchemaFinder
from lakebound.registry.finding import Found
from lakebound.spec.registry import RegistrySpec

pytestmark = pytest.mark.integration
ORDER = {"type": "record", "name": "Order", "namespace": "shop", "fields": [{"name": "id", "type": "long"}]}
WIDER = {**ORDER, "fields": [*ORDER["fields"], {"name": "note", "type": "string", "default": ""}]}


@pytest.fixture
def front(schema_registry: SchemaRegistry) -> Iterator[Front]:
    with front_of(schema_registry) as made:
        yield made


@pytest.fixture
def control(tmp_path: Path) -> ControlFolder:
    return ControlFolder(tmp_path, "orders", None)


def client_of(url: str, **more: Any) -> RegistryClient:
    return RegistryClient("company", RegistrySpec.model_validate({"url": url, "request_timeout_seconds": 60, **more}))


def finder_of(url: str, **more: Any) -> SchemaFinder:
    return SchemaFinder(client_of(url, **more))


def subjects_of(url: str, control: ControlFolder) -> RegistrySubjects:
    return RegistrySubjects("company", RegistrySpec.model_validate({"url": url, "request_timeout_seconds": 60}), control)


def used(subjects: RegistrySubjects, subject: str) -> Mapping[str, Sequence[Version]]:
    """Return versions, as a pipeline whose tables follow them uses them."""
    versions = subjects.versions([subject])
    subjects.keep(versions)
    return versions


def registered(registry: SchemaRegistry, subject: str, schema: object) -> int:
    return int(registry.ask("POST", f"subjects/{subject}/versions", {"schema": json.dumps(schema)})["id"])


def context(subject: str) -> SerializationContext:
    return SerializationContext(subject.removesuffix("-value"), MessageField.VALUE)


def id_in(value: bytes | None) -> SchemaId:
    framed = schema_of(value or b"")
    assert framed is not None
    return framed[0]


def test_what_each_serialiser_writes_names_a_schema_that_is_found(schema_registry: SchemaRegistry) -> None:
    client = client_of(schema_registry.url)
    subject = schema_registry.subject("avro")
    value = AvroSerializer(schema_registry.client(), json.dumps(ORDER))({"id": 7}, context(subject))
    found = client.schema(id_in(value))
    assert found is not None and found.kind == "avro" and json.loads(found.text) == ORDER

    subject = schema_registry.subject("json")
    shape = {"title": "Order", "type": "object", "properties": {"id": {"type": "integer"}}}
    value = JSONSerializer(json.dumps(shape), schema_registry.client())({"id": 7}, context(subject))
    found = client.schema(id_in(value))
    assert found is not None and found.kind == "json_schema" and json.loads(found.text) == shape


def test_what_a_protobuf_message_imports_comes_with_it(schema_registry: SchemaRegistry) -> None:
    # Two files of Google's own, of which one imports others; the serialiser registers them as references.
    subject = schema_registry.subject("protobuf")
    write = ProtobufSerializer(
        type_pb2.Type, schema_registry.client(), {"use.deprecated.format": False, "skip.known.types": False}
    )
    value = write(type_pb2.Type(name="a"), context(subject))
    found = client_of(schema_registry.url).schema(id_in(value))
    assert found is not None and found.kind == "protobuf"
    names = {one.name for one in found.references}
    assert names == {one.name for one in type_pb2.DESCRIPTOR.dependencies} and names
    for one in found.references:
        assert one.schema.kind == "protobuf" and one.schema.text
    assert descriptor_pb2.DESCRIPTOR.name not in names


def decoded(found: Found, values: list[bytes | None], reader: SchemaText, record: str | None = None) -> Decoded:
    """Return what a decoder makes of values, with the schemas that were found of what they name."""
    columns = schema_reader(reader.kind).columns_of(reader, record)
    known = KnownSchemas(tuple(found.schemas.items()), tuple(found.refused.items()))
    return SchemaFormat(columns, reader, record, known).decoder().decode(Records([None] * len(values), values))


def test_records_of_two_versions_and_of_none_are_decoded_side_by_side(schema_registry: SchemaRegistry) -> None:
    subject = schema_registry.subject("mixed")
    narrow, wide = (AvroSerializer(schema_registry.client(), json.dumps(schema)) for schema in (ORDER, WIDER))
    values = [narrow({"id": 1}, context(subject)), wide({"id": 2, "note": "é"}, context(subject))] * 3
    values += [b"\x00\xff\xff\xff\xff\x02", b"\x03\x00" + bytes(17), None]
    found = finder_of(schema_registry.url).find({id_in(value) for value in values[:-2]}, 60)
    latest = client_of(schema_registry.url).version(subject)
    assert latest is not None and latest.version == 2
    result = decoded(found, values, latest.schema)
    assert result.columns["id"].to_pylist() == [1, 2] * 3 and result.columns["note"].to_pylist() == ["", "é"] * 3
    details = [result.problems[at].detail for at in (6, 7)]
    assert "has no schema with this id" in details[0] and "AWS Glue's serialisers" in details[1]
    assert set(result.problems) == {6, 7, 8}


def test_a_nested_protobuf_message_is_decoded_with_all_that_it_imports(schema_registry: SchemaRegistry) -> None:
    subject = schema_registry.subject("protobuf")
    kind = api_pb2.Method  # the second message of its file
    write = ProtobufSerializer(kind, schema_registry.client(), {"use.deprecated.format": False, "skip.known.types": False})
    values = [write(kind(name=name, request_streaming=True), context(subject)) for name in ("a", "é")]
    found = finder_of(schema_registry.url).find([id_in(values[0])], 60)
    reader = found.schemas[id_in(values[0])]
    result = decoded(found, values, reader, "google.protobuf.Method")
    assert result.problems == {} and result.columns["name"].to_pylist() == ["a", "é"]
    assert result.columns["request_streaming"].to_pylist() == [True, True]


def test_references_are_resolved_by_those_of_avro_too(schema_registry: SchemaRegistry) -> None:
    inner, outer = schema_registry.subject("inner"), schema_registry.subject("outer")
    confluent = schema_registry.client()
    confluent.register_schema(inner, Schema(json.dumps(ORDER), "AVRO"))
    uses = {"type": "record", "name": "Cart", "namespace": "shop", "fields": [{"name": "order", "type": "shop.Order"}]}
    number = confluent.register_schema(outer, Schema(json.dumps(uses), "AVRO", [SchemaReference("shop.Order", inner, 1)]))
    for found in (client_of(schema_registry.url).schema(number), client_of(schema_registry.url).version(outer).schema):  # type: ignore[union-attr]
        assert found is not None and [one.name for one in found.references] == ["shop.Order"]
        assert json.loads(found.references[0].schema.text) == ORDER


def test_versions_deleted_ones_and_the_compatibility_mode_are_told(schema_registry: SchemaRegistry) -> None:
    subject, client = schema_registry.subject(), client_of(schema_registry.url)
    assert client.versions(subject) == [] and client.version(subject) is None
    first, second = registered(schema_registry, subject, ORDER), registered(schema_registry, subject, WIDER)
    assert client.versions(subject) == [1, 2]
    latest = client.version(subject)
    assert latest is not None and (latest.version, latest.id) == (2, second) and json.loads(latest.schema.text) == WIDER
    schema_registry.ask("PUT", f"config/{subject}", {"compatibility": "FULL"})
    assert client.compatibility(subject) == "FULL" and client.compatibility(schema_registry.subject()) == "NONE"

    schema_registry.ask("DELETE", f"subjects/{subject}/versions/1")
    assert client.versions(subject) == [2] and client.versions(subject, deleted=True) == [1, 2]
    assert client.version(subject, 1) is None
    deleted = client.version(subject, 1, deleted=True)
    assert deleted is not None and deleted.id == first and json.loads(deleted.schema.text) == ORDER
    assert client.schema(first) is not None


def test_a_schema_that_is_deleted_for_good_is_read_on(schema_registry: SchemaRegistry, control: ControlFolder) -> None:
    subject = schema_registry.subject()
    number = registered(schema_registry, subject, {**ORDER, "name": "Deleted"})
    kept = used(subjects_of(schema_registry.url, control), subject)
    assert [one.ids for one in kept[subject]] == [(number,)]
    schema_registry.ask("DELETE", f"subjects/{subject}")
    schema_registry.ask("DELETE", f"subjects/{subject}?permanent=true")
    (again,) = subjects_of(schema_registry.url, control).versions([subject])[subject]
    assert (again.ids, again.schema, again.problem) == ((number,), kept[subject][0].schema, None)


def test_guids_are_not_known_to_this_registry(schema_registry: SchemaRegistry) -> None:
    with pytest.raises(UnusableSchemaError, match="cannot be asked for GUIDs"):
        client_of(schema_registry.url).schema("8d7c1f60-6f3a-4a0e-9a6e-0f3a5a2b1c4d")


def test_random_ids_and_a_new_one_are_told_apart(schema_registry: SchemaRegistry) -> None:
    number = registered(schema_registry, schema_registry.subject(), {**ORDER, "name": "Random"})
    random = [one * 104_729 % 2**32 for one in range(20_000, 20_060)]
    found = finder_of(schema_registry.url).find([*random, number, 0], 90)
    assert list(found.schemas) == [number] and found.away is None
    assert set(found.refused) == {*random, 0} and "Apicurio's serialisers" in found.refused[0]


def test_a_registry_that_is_slow_or_away_is_waited_for_and_known_ids_go_on(front: Front, control: ControlFolder) -> None:
    subject = front.registry.subject()
    known = registered(front.registry, subject, {**ORDER, "name": "Known"})
    new = registered(front.registry, front.registry.subject(), {**ORDER, "name": "New"})
    assert [one.ids for one in used(subjects_of(front.url, control), subject)[subject]] == [(known,)]
    front.is_away = True
    assert [one.ids for one in subjects_of(front.url, control).versions([subject])[subject]] == [(known,)]
    finder = finder_of(front.url)
    found = finder.find([new], 60)
    assert (found.schemas, found.refused) == ({}, {}) and isinstance(found.away, RegistryUnavailableError)
    front.is_away, front.delay_seconds = False, 5.0
    found = finder.find([new], 0.3)
    assert (found.schemas, found.refused) == ({}, {}) and found.away is not None
    front.delay_seconds = 0.0
    found = finder.find([known, new], 60)
    assert set(found.schemas) == {known, new} and found.away is None


def test_a_wrong_password_is_a_refusal_and_a_right_one_is_taken_at_once(front: Front, monkeypatch: pytest.MonkeyPatch) -> None:
    front.login = "ada:right"
    number = registered(front.registry, front.registry.subject(), {**ORDER, "name": "Login"})
    monkeypatch.setenv("LAKEBOUND_SECRET_REGISTRY", "hunter2")
    finder = finder_of(front.url, username="ada", password={"env": "LAKEBOUND_SECRET_REGISTRY"})
    with pytest.raises(RegistryLoginError, match="status 401: Unauthorized; check username and password") as caught:
        finder.find([number], 60)
    assert "hunter2" not in str(caught.value) and not caught.value.passes
    monkeypatch.setenv("LAKEBOUND_SECRET_REGISTRY", "right")
    assert number in finder.find([number], 60).schemas


def test_an_address_beside_the_api_is_no_registry(schema_registry: SchemaRegistry) -> None:
    for url in (schema_registry.url.replace("/apis/ccompat/v7", ""), f"{schema_registry.url}/more"):
        with pytest.raises(RegistryAnswerError, match="has not Confluent's API"):
            client_of(url).schema(1)


@only_in_long_form  # shortly: tests/unit/landing/test_kept_subjects.py, and a stream in test_registered_schemas.py
def test_ids_that_a_new_store_gives_to_other_schemas_are_noticed(front: Front, control: ControlFolder, tmp_path: Path) -> None:
    subject = front.registry.subject()
    number = registered(front.registry, subject, {**ORDER, "name": "Before"})
    (before,) = used(subjects_of(front.url, control), subject)[subject]
    restarted = SchemaRegistry(tmp_path)
    try:
        restarted.wait_ready()
        front.registry = restarted
        (gone,) = subjects_of(front.url, control).versions([subject])[subject]
        assert (gone.ids, gone.schema) == ((number,), before.schema), "an empty registry takes nothing away"
        for name in range(1, number):
            assert registered(restarted, restarted.subject(), {**ORDER, "name": f"After{name}"}) < number
        assert registered(restarted, subject, {**ORDER, "name": "After"}) == number
        kept, reused = subjects_of(front.url, control).versions([subject])[subject]
        assert (kept.ids, kept.schema) == ((), before.schema), "it still gives the columns, and no record is read with it"
        assert reused.problem is not None and "has another schema by the id" in reused.problem
    finally:
        restarted.stop()
