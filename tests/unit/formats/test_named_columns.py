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
from lakebound.formats.versions import Version, schemas_of_file, schemas_of_subjects

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


GIVEN_A_DEFAULT = ("protobuf: a required field is gone", "protobuf: it has another name")
"""What an older version does not have, a newer one may have a default for; not the other way round."""


@pytest.mark.parametrize("misfit", MISFITS)
@pytest.mark.parametrize("is_newest", [True, False])
def test_a_version_that_does_not_fit_sends_its_records_alone_to_quarantine(misfit: str, is_newest: bool) -> None:
    schema, payload = MISFITS[misfit]
    fitting, fits = FITTING[schema.kind]
    if not is_newest and misfit in GIVEN_A_DEFAULT:
        rows, problems = decoded(read(schema, fitting), (11, payload), (12, fits))
        assert [row["id"] for row in rows] == [0, 7] and not problems
        return
    found = read(fitting, schema) if is_newest else read(schema, fitting)
    good, bad = (11, 12) if is_newest else (12, 11)
    assert found.known is not None and {one for one, _ in found.known.refused} == {bad}
    rows, problems = decoded(found, (good, fits), (bad, payload), (good, fits))
    assert rows == [ROW, ROW]
    assert {at: one.reason for at, one in problems.items()} == {1: "schema_does_not_fit"}


@pytest.mark.parametrize("kind", FITTING)
def test_a_decoder_that_cannot_be_made_is_a_problem_of_its_records_alone(kind: SchemaKind) -> None:
    made = []

    def decoder_of(writer: SchemaText, reader: SchemaText | None, record: str | None) -> Any:
        made.append(writer)
        raise UnreadableSchemaError("id", "it is gone")

    schema, payload = FITTING[kind]
    decoder = RegisteredDecoder(WANTED, KnownSchemas(((11, schema),), asks=False), decoder_of)
    for _ in range(2):
        found = decoder.decode(Records([None], [b"\0\0\0\0\x0b" + payload]))
        assert found.problems == {0: Problem("schema_does_not_fit", "schema 11 does not fit: id: it is gone")}
        assert [len(column) for column in found.columns.values()] == [0, 0]
    assert len(made) == 1


LEFT_OUT: Mapping[str, tuple[SchemaText, bytes, pa.Schema]] = {
    "avro: nanoseconds": (avro(id="long", city="string", at=NANOS), b"\x0e\x08Bern\x02", WANTED),
    "avro: too many digits": (
        avro(id="long", city="string", amount={"type": "bytes", "logicalType": "decimal", "precision": 50, "scale": 2}),
        b"\x0e\x08Bern\x02\x01",
        WANTED,
    ),
    "avro: always null": (avro(id="long", city="string", nothing="null"), b"\x0e\x08Bern", WANTED),
    "avro: names differ by case": (avro(id="long", city="string", ID="long"), b"\x0e\x08Bern\x02", WANTED),
    "protobuf: a message that contains itself": (
        protobuf("int64 id = 1", "string city = 2", "Order next = 3"),
        b"\0\x08\x07\x12\x04Bern\x1a\x02\x08\x01",
        WANTED,
    ),
    "protobuf: names differ by case": (
        protobuf("int64 id = 1", "string city = 2", "int64 ID = 3"),
        b"\0\x08\x07\x12\x04Bern\x18\x01",
        WANTED,
    ),
    "json_schema: an object that contains itself": (
        of_json(id=INTEGER, city=TEXT, next={"$ref": "#"}),
        b'{"id": 7, "city": "Bern", "next": {"id": 1}}',
        WANTED,
    ),
    "json_schema: several types": (
        of_json(id=INTEGER, city=TEXT, what={"type": ["string", "integer"]}),
        b'{"id": 7, "city": "Bern", "what": 1}',
        WANTED,
    ),
    "json_schema: names differ by case": (
        of_json(id=INTEGER, city=TEXT, ID=INTEGER, City=TEXT),
        b'{"id": 7, "city": "Bern", "ID": 1}',
        WANTED,
    ),
}


@pytest.mark.parametrize("left_out", LEFT_OUT)
@pytest.mark.parametrize("place", ["alone", "newest", "oldest", "in a file"])
def test_a_field_without_a_column_is_left_out_where_the_others_are_named(left_out: str, place: str) -> None:
    schema, payload, wanted = LEFT_OUT[left_out]
    fitting, fits = FITTING[schema.kind]
    if place == "in a file":
        found = schemas_of_file(schema, None, wanted)
        payload = payload[1:] if schema.kind == "protobuf" else payload
        made = SchemaFormat(found.columns, found.reader).decoder().decode(Records([None], [payload]))
        assert pa.table(dict(made.columns)).to_pylist() == [ROW] and not made.problems
        return
    found = read(*{"alone": [schema], "newest": [fitting, schema], "oldest": [schema, fitting]}[place])
    values = {"alone": [(11, payload)], "newest": [(11, fits), (12, payload)], "oldest": [(11, payload), (12, fits)]}[place]
    rows, problems = decoded(found, *values)
    assert rows == [ROW] * len(values) and not problems


@pytest.mark.parametrize(("kind", "digits"), [("BIGINT", NANOS), ("BINARY", None)])
def test_a_named_column_takes_what_has_none_by_itself(kind: str, digits: Any) -> None:
    logical = digits or {"type": "bytes", "logicalType": "decimal", "precision": 50, "scale": 2}
    column, payload, value = (pa.int64(), b"\x02", 1) if kind == "BIGINT" else (pa.binary(), b"\x02\x01", b"\x01")
    schema = avro(v=logical)
    found = read(schema, wanted=pa.schema([pa.field("v", column)]))
    assert decoded(found, (11, payload)) == ([{"v": value}], {})
    with pytest.raises(UnreadableSchemaError, match=f"give it as {kind} in `schema:`"):
        schemas_of_subjects(versions(schema), None, {}, {})


def test_a_field_that_is_not_named_may_change_its_type_in_each_version() -> None:
    kinds = ["int", "string", {"type": "array", "items": "int"}]
    payloads = [b"\x02", b"\x02x", b"\x02\x02\0"]
    found = read(*(avro(id="long", city="string", x=kind) for kind in kinds))
    rows, problems = decoded(found, *((at, b"\x0e\x08Bern" + one) for at, one in enumerate(payloads, 11)))
    assert rows == [ROW] * 3 and not problems


def test_an_older_version_without_a_column_is_read_with_the_default_of_a_newer_one() -> None:
    fields = [{"name": "city", "type": "string"}, {"name": "id", "type": "long", "default": 7}]
    newer = SchemaText("avro", json.dumps({"type": "record", "name": "Order", "fields": fields}))
    found = read(avro(city="string"), newer)
    assert found.reader == newer
    assert decoded(found, (11, b"\x08Bern"), (12, b"\x08Bern\x0e")) == ([ROW, ROW], {})


def test_where_no_version_has_the_columns_the_newest_is_named() -> None:
    with pytest.raises(UnreadableSchemaError, match=r"id: required.*subject orders-value"):
        read(avro(id="string", city="string"), avro(city="string"))
    with pytest.raises(UnreadableSchemaError, match="id: required"):
        schemas_of_file(avro(city="string"), None, WANTED)


def test_subjects_may_differ_in_what_is_not_named() -> None:
    subjects = {
        "a": [Version(1, (11,), avro(id="long", city="string", x="int"))],
        "b": [Version(1, (21,), avro(id="long", city="string", X="string"))],
    }
    found = schemas_of_subjects(subjects, None, {}, {}, asks=False, wanted=WANTED)
    assert decoded(found, (11, b"\x0e\x08Bern\x02"), (21, b"\x0e\x08Bern\x02x")) == ([ROW, ROW], {})


NUMBER = pa.schema([pa.field("at", pa.int64())])
AROUND: Mapping[str, tuple[Any, pa.DataType]] = {
    "at the top": (lambda kind: kind, pa.int64()),
    "nullable": (lambda kind: ["null", kind], pa.int64()),
    "in a list": (lambda kind: {"type": "array", "items": kind}, pa.list_(pa.int64())),
    "in a map": (lambda kind: {"type": "map", "values": kind}, pa.map_(pa.string(), pa.int64())),
    "in a record": (
        lambda kind: {"type": "record", "name": "In", "fields": [{"name": "x", "type": kind}]},
        pa.struct([("x", pa.int64())]),
    ),
    "in a union": (lambda kind: ["null", "string", kind], pa.struct([("string", pa.string()), ("long", pa.int64())])),
    "one of a union": (lambda kind: ["null", kind, "string"], pa.int64()),
}


@pytest.mark.parametrize("where", AROUND)
def test_a_column_of_numbers_never_has_times_of_two_units(where: str) -> None:
    around, column = AROUND[where]
    wanted, tried = pa.schema([pa.field("at", column)]), 0
    for older in ("millis", "micros", "nanos"):
        for newer in ("millis", "micros", "nanos"):
            first, second = (avro(at=around({"type": "long", "logicalType": f"timestamp-{unit}"})) for unit in (older, newer))
            found = read(first, second, wanted=wanted)
            assert found.known is not None
            refused = dict(found.known.refused)
            tried += 1
            if older == newer:
                assert not refused
                continue
            assert [*refused] == [12] and found.reader == first
            assert f"is in {newer}, but the column has values in {older} from an older version" in refused[12]
            assert refused[12].startswith("at")
    assert tried == 9


def test_a_number_of_which_no_unit_is_known_lands_as_it_is() -> None:
    found = read(avro(at="long"), avro(at=NANOS), avro(at="long"), wanted=NUMBER)
    assert found.known is not None and not found.known.refused
    moment = pa.schema([pa.field("at", pa.timestamp("us", tz="UTC"))])
    millis, micros = ({"type": "long", "logicalType": f"timestamp-{unit}"} for unit in ("millis", "micros"))
    rows, problems = decoded(read(avro(at=millis), avro(at=micros), wanted=moment), (11, b"\x02"), (12, b"\xd0\x0f"))
    assert rows[0] == rows[1] and not problems, "a column that knows its unit takes all of them"


def test_two_topics_never_give_a_column_of_numbers_times_of_two_units() -> None:
    micros, nanos = (avro(at={"type": "long", "logicalType": f"timestamp-{unit}"}) for unit in ("micros", "nanos"))
    both = {"a-value": [Version(1, (1,), micros)], "b-value": [Version(1, (2,), micros), Version(2, (3,), nanos)]}
    found = schemas_of_subjects(both, None, {}, {}, wanted=NUMBER)
    assert found.known is not None and [*dict(found.known.refused)] == [3]
    with pytest.raises(UnreadableSchemaError, match="is in nanos, but the column has values in micros"):
        schemas_of_subjects({**both, "b-value": [Version(1, (3,), nanos)]}, None, {}, {}, wanted=NUMBER)
