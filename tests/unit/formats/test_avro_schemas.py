"""Avro schemas: their columns, what is refused with the name of the part, names and references."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakebound.formats.avro import mapping, schema_reader
from lakebound.formats.avro.leaves import column_name
from lakebound.formats.schemas import Reference, SchemaText, UnreadableSchemaError

PAGE = Path(__file__).parents[3] / "docs/formats/avro.md"


def columns(schema: Any, *references: Any, record: str | None = None) -> pa.Schema:
    own = tuple(Reference(one["name"], SchemaText("avro", json.dumps(one))) for one in references)
    return schema_reader.columns_of(SchemaText("avro", json.dumps(schema), own), record)


def record(kind: Any, name: str = "T") -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": "a", "type": "int"}, {"name": "v", "type": kind}]}


def logical(name: str, kind: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "logicalType": name, **more}


def levels(number: int) -> Any:
    kind: Any = "int"
    for _ in range(number):
        kind = {"type": "array", "items": kind}
    return kind


def doubling(number: int) -> Any:
    """Return a schema that is small, and has two to the power of a number of parts."""
    kind: Any = {"type": "record", "name": "R0", "fields": [{"name": "x", "type": "int"}]}
    for level in range(1, number):
        fields = [{"name": "a", "type": kind}, {"name": "b", "type": f"R{level - 1}"}]
        kind = {"type": "record", "name": f"R{level}", "fields": fields}
    return kind


REFUSED: list[tuple[Any, str, str]] = [
    (record(["null", "T"]), "v", "the type T contains itself"),
    (record({"type": "array", "items": record("T", "U")}), "v.element.v", "the type T contains itself"),
    (record(logical("timestamp-nanos", "long")), "v", "timestamp-nanos has no column: tables have microseconds"),
    (
        record({"type": "map", "values": logical("local-timestamp-nanos", "long")}),
        "v.value",
        "local-timestamp-nanos has no column",
    ),
    (record(logical("big-decimal", "bytes")), "v", "big-decimal has no column"),
    (record(logical("decimal", "bytes", precision=39)), "v", "decimal(39,0) has no column: tables have at most 38 digits"),
    (
        record({**logical("decimal", "fixed", precision=40, scale=3), "name": "F", "size": 20}),
        "v",
        "decimal(40,3) has no column",
    ),
    (record("null"), "v", "a field that is always null has no column"),
    (record({"type": "record", "name": "E", "fields": []}), "v", "a record without fields has no column"),
    ({"type": "record", "name": "E", "fields": []}, "", "a record without fields has no column"),
    (
        {"type": "record", "name": "E", "fields": [{"name": n, "type": "int"} for n in ("a", "A")]},
        "A",
        "differs from a by upper",
    ),
    (record([record("int", "Case"), record("int", "x.CASE")]), "v.CASE", "differs from Case by upper and lower case only"),
    (record([record("int", "x.Same"), record("int", "y.Same")]), "v.Same", "the union has two types of this name"),
    (record(["int", "int"]), "v", "a union has another union in it, or int twice"),
    (record(["int", ["null", "string"]]), "v", "a union has another union in it"),
    (record(["null"]), "v", "a union has no type beside null"),
    (record([]), "v", "a union has no type beside null"),
    (record("nobody"), "v", "'nobody' is not a type"),
    (record(5), "v", "5 is not a type"),
    (record({"type": "array"}), "v", "has no 'items'"),
    (record({"type": "enum", "name": "E", "symbols": []}), "v", "the enum E has no symbols"),
    (record({"type": "enum", "name": "E", "symbols": ["A"], "default": "B"}), "v", "the enum E has the default"),
    (record({"type": "fixed", "name": "F", "size": 0}), "v", "the size of F is 0"),
    (record({"type": "fixed", "name": "F", "size": 1 << 40}), "v", "the size of F is"),
    (record(record("int")), "v", "the type T is defined twice"),
    ({"type": "record", "name": "T", "fields": [{"name": "a", "type": "int"}] * 2}, "a", "two fields of this name"),
    ({"type": "record", "fields": []}, "", "has no 'name'"),
    ({"type": "record", "name": "T"}, "", "has no 'fields'"),
    (record(levels(150)), "v" + ".element" * 100, "more than 100 types lie inside of each other"),
    (doubling(18), ".".join(["a"] * 3), "the schema has more than 20,000 parts"),
]


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: f"{case[1]}: {case[2]}"[:70])
def test_what_has_no_column_is_named(case: tuple[Any, str, str]) -> None:
    schema, path, reason = case
    with pytest.raises(UnreadableSchemaError) as caught:
        columns(schema)
    assert reason in caught.value.reason
    assert caught.value.path == path or "parts" in reason


HALF = "\ud800"
"""Of a surrogate pair: JSON may have it, UTF-8 does not."""
WITH_HALF: list[Any] = [
    record("int", HALF),
    record("int", f"a.{HALF}"),
    {**record("int"), "namespace": HALF},
    {**record("int"), "aliases": [HALF]},
    {**record("int"), "fields": [{"name": HALF, "type": "int"}]},
    {**record("int"), "fields": [{"name": "a", "type": "int", "aliases": [HALF]}]},
    record({"type": "enum", "name": "E", "symbols": ["A", HALF]}),
    record({"type": "enum", "name": HALF, "symbols": ["A"]}),
    record({"type": "fixed", "name": HALF, "size": 1}),
    record(["int", record("int", HALF)]),
    record({"type": "map", "values": record("int", HALF)}),
    record(HALF),
    record({"type": HALF}),
]


@pytest.mark.parametrize("schema", WITH_HALF)
def test_a_name_that_has_no_utf_8_is_refused_in_words_that_have(schema: Any) -> None:
    with pytest.raises(UnreadableSchemaError) as caught:
        columns(schema)
    assert str(caught.value).encode()


def test_a_default_that_has_no_utf_8_is_refused_in_words_that_have() -> None:
    old, kinds = SchemaText("avro", json.dumps(record("int"))), {"string": HALF, "map": {HALF: 1}}
    for kind, default in kinds.items():
        field = {"name": "new", "type": {"type": kind, "values": "int"}, "default": default}
        new = SchemaText("avro", json.dumps({"type": "record", "name": "T", "fields": [field]}))
        with pytest.raises(UnreadableSchemaError) as caught:
            schema_reader.payload_decoder(old, new, schema_reader.columns_of(new, None), None, is_framed=False)
        assert str(caught.value).encode() and "default" in str(caught.value)


def test_a_description_that_has_no_utf_8_does_not_matter() -> None:
    assert columns({**record("int"), "doc": HALF}) == columns(record("int"))


@pytest.mark.parametrize("text", ["", "{", "int", "[" * 100_000, '{"type": "record"', "\ud800"])
def test_a_text_that_is_no_schema_is_refused(text: str) -> None:
    with pytest.raises(UnreadableSchemaError):
        schema_reader.columns_of(SchemaText("avro", text), None)


def test_a_part_that_has_no_column_may_be_left_out() -> None:
    schema = SchemaText("avro", json.dumps(record(logical("timestamp-nanos", "long"))))
    needed = pa.schema([pa.field("a", pa.int32())])
    found = schema_reader.payload_decoder(schema, schema, needed, None, is_framed=False).decode([b"\x02\x02", b"\x04"])
    assert found.columns["a"].to_pylist() == [1] and [*found.problems] == [1]


def test_bytes_alone_in_a_frame_are_refused() -> None:
    schema = SchemaText("avro", '"bytes"')
    needed = schema_reader.columns_of(schema, None)
    assert (
        schema_reader.payload_decoder(schema, schema, needed, None, is_framed=False)
        .decode([b"\x02a"])
        .columns["value"][0]
        .as_py()
        == b"a"
    )
    with pytest.raises(UnreadableSchemaError):
        schema_reader.payload_decoder(schema, schema, needed, None, is_framed=True)


def test_names_are_found_by_their_namespace() -> None:
    inner = {"type": "record", "name": "Address", "namespace": "shop.people", "fields": [{"name": "city", "type": "string"}]}
    schema = {
        "type": "record",
        "name": "shop.Order",
        "fields": [
            {"name": "to", "type": inner},
            {"name": "from", "type": ["null", "shop.people.Address"]},
            {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["A"]}},
            {"name": "before", "type": ["null", "State"]},
            {"name": "then", "type": ["null", "shop.State"]},
        ],
    }
    address = pa.struct([pa.field("city", pa.string())])
    want = [("to", address, False), ("from", address, True), ("state", pa.string(), False), ("before", pa.string(), True)]
    assert columns(schema) == pa.schema([pa.field(*one) for one in [*want, ("then", pa.string(), True)]])


def test_references_are_read_before() -> None:
    city = {"type": "record", "name": "geo.City", "fields": [{"name": "name", "type": "string"}]}
    person = {"type": "record", "name": "people.Person", "fields": [{"name": "city", "type": "geo.City"}]}
    order = {
        "type": "record",
        "name": "Order",
        "fields": [{"name": "by", "type": "people.Person"}, {"name": "at", "type": "geo.City"}],
    }
    towns = pa.struct([pa.field("name", pa.string())])
    want = pa.schema([pa.field("by", pa.struct([pa.field("city", towns)]), False), pa.field("at", towns, False)])
    assert columns(order, city, person) == want
    nested = Reference(
        "people.Person", SchemaText("avro", json.dumps(person), (Reference("geo.City", SchemaText("avro", json.dumps(city))),))
    )
    twice = SchemaText("avro", json.dumps(order), (nested, Reference("geo.City", SchemaText("avro", json.dumps(city)))))
    assert schema_reader.columns_of(twice, None) == want, "one that two others refer to"
    with pytest.raises(UnreadableSchemaError):
        columns(order, person)


def test_a_logical_type_that_does_not_go_with_its_type_does_not_count() -> None:
    """So Avro says."""
    cases = [
        (logical("date", "long"), pa.int64()),
        (logical("uuid", "bytes"), pa.binary()),
        (logical("decimal", "bytes"), pa.binary()),
        (logical("decimal", "bytes", precision=2, scale=3), pa.binary()),
        ({**logical("decimal", "fixed", precision=5), "name": "F", "size": 2}, pa.binary()),
        ({**logical("duration", "fixed"), "name": "F", "size": 11}, pa.binary()),
        (logical("nobody", "int"), pa.int32()),
        (logical("decimal", "bytes", precision=10**9), None),
    ]
    for kind, want in cases:
        if want is None:
            with pytest.raises(UnreadableSchemaError):
                columns(record(kind))
        else:
            assert columns(record(kind)).field("v").type == want


def test_of_a_union_of_records_the_named_one_has_the_columns() -> None:
    union = ["null", record("int", "shop.A"), record("string", "shop.B")]
    assert columns(union, record="shop.A").field("v").type == pa.int32()
    assert columns(union, record="shop.B").field("v").type == pa.string()
    with pytest.raises(UnreadableSchemaError) as caught:
        columns(union, record="B")
    assert "it has shop.A, shop.B" in caught.value.reason
    with pytest.raises(UnreadableSchemaError) as caught:
        columns(union)
    assert "shop.A, shop.B" in caught.value.reason and "`record:`" in caught.value.reason


def page_rows() -> dict[str, str]:
    lines = [line.split("|") for line in PAGE.read_text().split("##")[1].splitlines() if line.startswith("| `")]
    return {cells[1].strip().strip("`"): cells[2].strip() for cells in lines}


def carried(name: str) -> Any:
    """Return a type with a logical type that has one column."""
    if name in ("duration", "uuid"):
        return {**logical(name, "fixed"), "name": "F", "size": 12 if name == "duration" else 16}
    return logical(name, "int" if name in ("date", "time-millis") else "long")


def shown(kind: pa.DataType) -> str:
    fields = ", ".join(f"{one.name} {column_name(one.type)}" for one in kind) if pa.types.is_struct(kind) else ""
    return f"STRUCT<{fields}>" if fields else column_name(kind)


def test_the_page_says_which_column_each_type_has() -> None:
    """Every type of the code is on the page, and no other."""
    want = {name: column_name(kind) for name, kind in mapping.OF_PRIMITIVES.items()}
    want |= {name: shown(columns(record(carried(name))).field("v").type) for name in mapping.OF_LOGICALS}
    want |= dict.fromkeys((*mapping.WITHOUT_COLUMN, "null"), "refused")
    want |= {
        "enum": "STRING",
        "fixed": "BINARY",
        "decimal": "DECIMAL",
        "array": "ARRAY",
        "map": "MAP<STRING, …>",
        "record": "STRUCT",
    }
    want |= {"a union of null and one type": "the type's", "a union of several types": "STRUCT"}
    assert page_rows() == want
