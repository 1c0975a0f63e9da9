"""Columns that a pipeline names beside its registry: a version without them hides no other one, and ends no query."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest

from lakebound.formats.contract import Problem, Records
from lakebound.formats.kinds import SchemaFormat
from lakebound.formats.registered import RegisteredDecoder
from lakebound.formats.schemas import KnownSchemas, ReadSchemas, SchemaKind, SchemaText, UnreadableSchemaError
from lakebound.formats.versions import Version, schemas_of_subjects

WANTED = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("city", pa.string())])
SUBJECT = "orders-value"


def avro(**types: Any) -> SchemaText:
    fields = [{"name": name, "type": kind} for name, kind in types.items()]
    return SchemaText("avro", json.dumps({"type": "record", "name": "Order", "fields": fields}))


def protobuf(*fields: str) -> SchemaText:
    return SchemaText("protobuf", f'syntax = "proto3"; message Order {{ {"; ".join(fields)}; }}')


def of_json(**properties: Any) -> SchemaText:
    return SchemaText("json_schema", json.dumps({"type": "object", "properties": properties}))


INTEGER, TEXT = {"type": "integer"}, {"type": "string"}
NANOS = {"type": "long", "logicalType": "timestamp-nanos"}
FITTING: Mapping[SchemaKind, tuple[SchemaText, bytes]] = {
    "avro": (avro(id="long", city="string"), b"\x0e\x08Bern"),
    "protobuf": (protobuf("int64 id = 1", "string city = 2"), b"\0\x08\x07\x12\x04Bern"),
    "json_schema": (of_json(id=INTEGER, city=TEXT), b'{"id": 7, "city": "Bern"}'),
}
ROW = {"id": 7, "city": "Bern"}


def versions(*schemas: SchemaText) -> dict[str, list[Version]]:
    return {SUBJECT: [Version(number, (number + 10,), schema) for number, schema in enumerate(schemas, 1)]}


def read(*schemas: SchemaText, wanted: pa.Schema = WANTED) -> ReadSchemas:
    return schemas_of_subjects(versions(*schemas), None, {}, {}, asks=False, wanted=wanted)


def decoded(found: ReadSchemas, *values: tuple[int, bytes]) -> tuple[list[dict[str, Any]], Mapping[int, Problem]]:
    form = SchemaFormat(found.columns, found.reader, known=found.known)
    framed = [b"\0" + number.to_bytes(4, "big") + payload for number, payload in values]
    made = form.decoder().decode(Records([None] * len(framed), framed))
    return pa.table(dict(made.columns), schema=form.columns).to_pylist(), made.problems


MISFITS: Mapping[str, tuple[SchemaText, bytes]] = {
    "avro: a required field is gone": (avro(city="string"), b"\x08Bern"),
    "avro: it has another name": (avro(uid="long", city="string"), b"\x0e\x08Bern"),
    "avro: it has another type": (avro(id="string", city="string"), b"\x02a\x08Bern"),
    "avro: it is a record": (
        avro(id={"type": "record", "name": "Id", "fields": [{"name": "n", "type": "long"}]}, city="string"),
        b"\x0e\x08Bern",
    ),
    "avro: the record contains itself": (avro(id="long", next=["null", "Order"]), b"\x0e\0"),
    "avro: too many digits": (
        avro(id={"type": "bytes", "logicalType": "decimal", "precision": 50, "scale": 0}, city="string"),
        b"\x02\x07\x08Bern",
    ),
    "protobuf: a required field is gone": (protobuf("string city = 2"), b"\0\x12\x04Bern"),
    "protobuf: it has another name": (protobuf("int64 uid = 1", "string city = 2"), b"\0\x08\x07"),
    "protobuf: it has another type": (protobuf("string id = 1", "string city = 2"), b"\0\x0a\x01a"),
    "protobuf: it is the message itself": (protobuf("Order id = 1", "string city = 2"), b"\0\x0a\0"),
    "protobuf: it is repeated": (protobuf("repeated int64 id = 1", "string city = 2"), b"\0\x0a\x01\x07"),
    "json_schema: it is an array": (of_json(id={"type": "array", "items": INTEGER}, city=TEXT), b'{"id": [7]}'),
    "json_schema: it is the object itself": (of_json(id={"$ref": "#"}, city=TEXT), b'{"id": {}}'),
    "json_schema: its name has another case": (of_json(ID=INTEGER, city=TEXT), b'{"ID": 7}'),
}


@pytest.mark.parametrize("misfit", MISFITS)
@pytest.mark.parametrize("is_newest", [True, False])
def test_a_version_that_does_not_fit_sends_its_records_alone_to_quarantine(misfit: str, is_newest: bool) -> None:
    schema, payload = MISFITS[misfit]
    fitting, fits = FITTING[schema.kind]
    found = read(fitting, schema) if is_newest else read(schema, fitting)
    good, bad = (11, 12) if is_newest else (12, 11)
    assert found.known is not None and {one for one, _ in found.known.refused} == {bad}
    rows, problems = decoded(found, (good, fits), (bad, payload), (good, fits))
    assert rows == [ROW, ROW]
    assert {at: one.reason for at, one in problems.items()} == {1: "schema_does_not_fit"}


@pytest.mark.parametrize("kind", FITTING)
def test_a_decoder_that_cannot_be_made_is_a_problem_of_its_records_alone(kind: SchemaKind) -> None:
    made = []

    def decoder_of(writer: SchemaText, reader: SchemaText | None) -> Any:
        made.append(writer)
        raise UnreadableSchemaError("id", "it is gone")

    schema, payload = FITTING[kind]
    decoder = RegisteredDecoder(WANTED, KnownSchemas(((11, schema),), asks=False), decoder_of)
    for _ in range(2):
        found = decoder.decode(Records([None], [b"\0\0\0\0\x0b" + payload]))
        assert found.problems == {0: Problem("schema_does_not_fit", "schema 11 does not fit: id: it is gone")}
        assert [len(column) for column in found.columns.values()] == [0, 0]
    assert len(made) == 1
