"""A field whose name changed by upper and lower case alone: what was sent lands in its column, or its record has a reason."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Callable
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from tests.support.formats.protobuf import message_class

from lakebound.formats.contract import Records
from lakebound.formats.kinds import SchemaFormat, schema_reader
from lakebound.formats.schemas import SchemaKind, SchemaText, UnreadableSchemaError
from lakebound.formats.versions import Version, schemas_of_subjects

PLACES = ("top", "record", "list", "map", "union", "list of maps")
"""Of the field that changes."""
PROTO_PLACES = ("top", "record", "list", "map", "oneof")
SENT = 5


def avro(place: str, field: dict[str, Any]) -> str:
    inner = {"type": "record", "name": "In", "fields": [field]}
    around: dict[str, Any] = {
        "record": inner,
        "list": {"type": "array", "items": inner},
        "map": {"type": "map", "values": inner},
        "union": ["null", "string", inner],
        "list of maps": {"type": "array", "items": {"type": "map", "values": inner}},
    }
    fields = [field] if place == "top" else [{"name": "at", "type": around[place]}]
    return json.dumps({"type": "record", "name": "T", "fields": fields})


def avro_payload(place: str, name: str, text: str) -> bytes:
    inner = {name: SENT}
    around: dict[str, Any] = {
        "record": inner,
        "list": [inner],
        "map": {"k": inner},
        "union": inner,
        "list of maps": [{"k": inner}],
    }
    content = io.BytesIO()
    value = inner if place == "top" else {"at": around[place]}
    fastavro.schemaless_writer(content, fastavro.parse_schema(json.loads(text)), value)
    return content.getvalue()


def proto(place: str, name: str, kind: str = "int64") -> str:
    around = {"record": "In at = 1;", "list": "repeated In at = 1;", "map": "map<string, In> at = 1;"}
    field = f"oneof one {{ string text = 8; {kind} {name} = 9; }}" if place == "oneof" else f"{kind} {name} = 9;"
    inside = around.get(place, field)
    return f'syntax = "proto3"; message T {{ {inside} message In {{ {field} }} }}'


def proto_payload(place: str, name: str, text: str) -> bytes:
    inner = {name: SENT}
    around: dict[str, Any] = {"record": inner, "list": [inner], "map": {"k": inner}}
    made: Any = message_class(text, "T")(**({"at": around[place]} if place in around else inner))
    return b"\0" + bytes(made.SerializeToString())


def landed(kind: SchemaKind, texts: list[str], payloads: list[bytes], columns: pa.Schema | None = None) -> list[Any]:
    """Return what becomes of a record of each version: its row, or the reason why it has none."""
    versions = [Version(number, (number,), SchemaText(kind, text)) for number, text in enumerate(texts, 1)]
    found = schemas_of_subjects({"s": versions}, None, {}, {})
    form = SchemaFormat(columns or found.columns, found.reader, known=found.known)
    framed = [b"\0" + number.to_bytes(4, "big") + payload for number, payload in enumerate(payloads, 1)]
    made = form.decoder().decode(Records([None] * len(framed), framed))
    rows = iter(pa.table(dict(made.columns)).to_pylist())
    return [made.problems[at].reason if at in made.problems else next(rows) for at in range(len(framed))]


def by_case(draw: random.Random, name: str) -> str:
    return "".join(draw.choice((one.lower(), one.upper())) for one in name)


def has_sent(row: Any) -> bool:
    return f": {SENT}}}" in repr(row)


DEFAULTS: list[Callable[[str], dict[str, Any]]] = [
    lambda name: {"name": name, "type": "long", "default": 0},
    lambda name: {"name": name, "type": ["null", "long"], "default": None},
    lambda name: {"name": name, "type": ["long", "null"], "default": 7},
]


@pytest.mark.parametrize("place", PLACES)
def test_no_default_takes_the_place_of_what_was_sent_in_avro(place: str) -> None:
    draw, refused, landings = random.Random(place), 0, 0
    for _ in range(8):
        names = [by_case(draw, "userId") for _ in range(3)]
        texts = [avro(place, draw.choice(DEFAULTS)(name)) for name in names]
        payloads = [avro_payload(place, name, text) for name, text in zip(names, texts, strict=True)]
        for row, name in zip(landed("avro", texts, payloads), names, strict=True):
            if name == names[-1]:
                assert has_sent(row)
                landings += 1
            else:
                assert row == "schema_does_not_fit" or (place == "union" and row == "does_not_fit")
                refused += 1
    assert refused > 8 and landings >= 8


@pytest.mark.parametrize("place", PROTO_PLACES)
def test_no_default_takes_the_place_of_what_was_sent_in_protobuf(place: str) -> None:
    draw, refused, landings = random.Random(place), 0, 0
    for _ in range(5):
        names = [by_case(draw, "userid") for _ in range(3)]
        kind = "int64" if place == "oneof" else draw.choice(("int64", "optional int64"))
        texts = [proto(place, name, kind) for name in names]
        payloads = [proto_payload(place, name, text) for name, text in zip(names, texts, strict=True)]
        for row, name in zip(landed("protobuf", texts, payloads), names, strict=True):
            assert has_sent(row) if name == names[-1] else row == "schema_does_not_fit"
            landings, refused = landings + (name == names[-1]), refused + (name != names[-1])
    assert refused > 5 and landings >= 5


@pytest.mark.parametrize("place", PLACES)
def test_an_alias_says_that_names_by_case_are_one(place: str) -> None:
    old = avro(place, {"name": "userId", "type": "long"})
    new = avro(place, {"name": "userID", "type": "long", "default": 0, "aliases": ["userId"]})
    rows = landed("avro", [old, new], [avro_payload(place, "userId", old), avro_payload(place, "userID", new)])
    assert rows[0] == rows[1] and has_sent(rows[0])


def test_a_field_that_is_gone_keeps_its_column_by_its_newest_name() -> None:
    gone = json.dumps({"type": "record", "name": "T", "fields": [{"name": "id", "type": "long", "default": 1}]})
    texts = [avro("top", DEFAULTS[0]("userId")), avro("top", DEFAULTS[0]("userID")), gone]
    payloads = [avro_payload("top", "userId", texts[0]), avro_payload("top", "userID", texts[1]), b"\x06"]
    assert landed("avro", texts, payloads) == ["schema_does_not_fit", {"id": 1, "userID": SENT}, {"id": 3, "userID": None}]


def test_names_that_differ_by_more_than_case_are_two_columns() -> None:
    texts = [avro("top", DEFAULTS[0](name)) for name in ("stra\u00dfe", "strasse")]
    payloads = [b"\x0a", b"\x0c"]
    assert landed("avro", texts, payloads) == [{"strasse": 0, "stra\u00dfe": 5}, {"strasse": 6, "stra\u00dfe": None}]


COLUMNS = pa.schema([("userid", pa.int64())])
STRUCT = pa.schema([("at", pa.struct(COLUMNS))])
MEMBER = pa.schema([("at", pa.struct([("string", pa.string()), ("in", pa.struct([("userId", pa.int64())]))]))])


@pytest.mark.parametrize(
    ("kind", "text", "columns", "path"),
    [
        ("avro", avro("top", {"name": "userId", "type": "long"}), COLUMNS, "userid"),
        ("avro", avro("record", {"name": "userId", "type": "long"}), STRUCT, "at.userid"),
        ("protobuf", proto("top", "userId"), COLUMNS, "userid"),
        ("protobuf", proto("record", "userId"), STRUCT, "at.userid"),
    ],
)
def test_a_column_of_the_project_that_has_another_case_is_refused(
    kind: SchemaKind, text: str, columns: pa.Schema, path: str
) -> None:
    schema = SchemaText(kind, text)
    with pytest.raises(UnreadableSchemaError, match="upper and lower case") as found:
        SchemaFormat(columns, schema).decoder()
    assert found.value.path == path and "userId" in found.value.reason


def test_a_column_of_the_project_that_has_the_alias_of_a_field_in_another_case_is_refused() -> None:
    writer = SchemaText("avro", avro("top", {"name": "uid", "type": "long"}))
    reader = SchemaText("avro", avro("top", {"name": "userId", "type": "long", "aliases": ["uid"]}))
    with pytest.raises(UnreadableSchemaError, match="userId"):
        schema_reader("avro").payload_decoder(writer, reader, COLUMNS, None, is_framed=False)


def test_a_type_of_a_union_by_another_case_is_refused() -> None:
    """Its fields would be looked for in the struct of all types, and none be found."""
    text = avro("union", {"name": "userId", "type": "long"})
    schema = SchemaText("avro", text)
    found = SchemaFormat(MEMBER, schema).decoder().decode(Records([None] * 2, [avro_payload("union", "userId", text), b"\x00"]))
    assert {at: one.reason for at, one in found.problems.items()} == {0: "does_not_fit"}
    assert found.columns["at"].to_pylist() == [None]
