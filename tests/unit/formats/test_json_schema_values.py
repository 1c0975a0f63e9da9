"""Values whose JSON Schema is known land equal to what was sent, or are refused; schemas are read, or refused by name.

What must come out is worked out here with Python's json, and jsonschema says which values a schema allows.
"""

from __future__ import annotations

import base64
import itertools
import json
import math
import re
import time
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pyarrow as pa
import pytest

from lakebound.formats.contract import Decoded, Records
from lakebound.formats.json_schema.mapping import OF_TYPES, REFUSED_WORDS
from lakebound.formats.json_schema.schema_reader import columns_of, payload_decoder
from lakebound.formats.kinds import SchemaFormat
from lakebound.formats.schemas import KnownSchemas, Reference, SchemaText, UnreadableSchemaError
from lakebound.formats.versions import Version, schemas_of_subjects
from lakebound.tables.type_names import type_name

PAGE = Path(__file__).parents[3] / "docs/formats/json-schema.md"
REFUSED: Any = object()


def text(schema: Any, **imported: Any) -> SchemaText:
    """Return a schema with what it imports, each by a name without its ending."""
    references = tuple(Reference(f"{name}.json", text(one)) for name, one in imported.items())
    return SchemaText("json_schema", json.dumps(schema), references)


def of(part: Any, **more: Any) -> dict[str, Any]:
    """Return the schema of records with one property."""
    return {"type": "object", "properties": {"v": part}, **more}


def decoded(schema: SchemaText, values: list[bytes], columns: pa.Schema | None = None) -> Decoded:
    columns = columns_of(schema, None) if columns is None else columns
    return payload_decoder(schema, schema, columns, None, is_framed=True).decode(values)


def whole(bits: int) -> Any:
    def expected(value: Any, written: str) -> Any:
        is_whole = isinstance(value, int) and not isinstance(value, bool)
        return value if is_whole and -(1 << bits - 1) <= value < 1 << bits - 1 else REFUSED

    return expected


def number(value: Any, written: str) -> Any:
    if value == "NaN":
        return math.nan
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and abs(value) < 1.8e308 else REFUSED


def short_number(value: Any, written: str) -> Any:
    found = number(value, written)
    return found if found is REFUSED or abs(found) < 3.4e38 or found != found else REFUSED


def digits(value: Any, written: str) -> Any:
    plain = value if isinstance(value, str) else written
    if isinstance(value, bool) or not re.fullmatch(r"-?\d+(\.\d+)?([eE][+-]?\d+)?", plain):
        return REFUSED
    exact = Decimal(plain)
    return exact if abs(exact) < 10**10 and exact == round(exact, 2) else REFUSED


def moment(value: Any, written: str) -> Any:
    if isinstance(value, int) and not isinstance(value, bool):
        return datetime.fromtimestamp(value, UTC) if abs(value) < 10**11 else REFUSED
    try:
        found = datetime.fromisoformat(value) if value else REFUSED
        return found if found is REFUSED else found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
    except (TypeError, ValueError):
        return REFUSED


def day(value: Any, written: str) -> Any:
    try:
        return date.fromisoformat(value[:10]) if isinstance(value, str) else REFUSED
    except (TypeError, ValueError):
        return REFUSED


def raw(value: Any, written: str) -> Any:
    try:
        return base64.b64decode(value, validate=True) if isinstance(value, str) else REFUSED
    except ValueError:
        return REFUSED


TYPES: list[tuple[dict[str, Any], Any]] = [
    ({"type": "string"}, lambda value, written: value if isinstance(value, str) else written),
    ({"type": "string", "format": "uuid", "enum": ["a"]}, lambda value, written: value if isinstance(value, str) else written),
    ({"type": "string", "format": "date-time"}, moment),
    ({"type": "string", "format": "date"}, day),
    ({"type": "string", "contentEncoding": "base64"}, raw),
    ({"type": "integer"}, whole(64)),
    ({"type": "integer", "format": "int64", "minimum": 5}, whole(64)),
    ({"type": "integer", "format": "int32"}, whole(32)),
    ({"type": "number"}, number),
    ({"type": "number", "format": "double"}, number),
    ({"type": "number", "format": "float"}, short_number),
    ({"type": "number", "format": "decimal(12, 2)"}, digits),
    ({"type": "boolean"}, lambda value, written: value if isinstance(value, bool) else REFUSED),
]
WRITTEN = [
    *("true", "false", "0", "-1", "7", "2147483647", "2147483648", "-2147483648", "9223372036854775807", "9223372036854775808"),
    *(
        "1.5",
        "1.0",
        "0.25",
        "-0.5",
        "1e2",
        "3e38",
        "1e300",
        "12345678.91",
        "9999999999.99",
        "10000000000",
        "123456789012345678",
    ),
    *('""', '"abc"', '"\\u00e9\\ud83d\\ude00"', '"2024-02-29"', '"2023-02-29"', '"2024-02-29T12:30:00Z"', '"NaN"', '"AAEC"'),
    *('"2024-02-29T12:30:00.123456+02:00"', '"12.50"', '"QQ=="', '"null"', "[]", "[1]", "{}", '{"a":1}', '[{"a":[null]}]'),
]
LENIENT = {"date-time": int, "decimal(12, 2)": str, "date": str}
"""What lands although the schema does not allow it, by formats: seconds since 1970, numbers in quotes, the day of a time.

The text NaN lands as a number, too.
"""


def wraps(part: dict[str, Any]) -> dict[str, tuple[Any, Any, Any]]:
    """Return ways to have a type in a record: the schema, the JSON around a value, and what the column has around it."""
    return {
        "plain": (of(part), "%s", lambda found: found),
        "null first": (of({"oneOf": [{"type": "null"}, part]}), "%s", lambda found: found),
        "array": (of({"type": "array", "items": part}), "[null, %s]", lambda found: [None, found]),
        "map": (of({"type": "object", "additionalProperties": part}), '{"k": %s}', lambda found: [("k", found)]),
        "nested": (of({"type": "object", "properties": {"in": part}}), '{"x": 1, "in": %s}', lambda found: {"in": found}),
        "local": (of({"$ref": "#/$defs/T"}, **{"$defs": {"T": part}}), "%s", lambda found: found),
    }


def same(found: Any, want: Any, kind: pa.DataType) -> bool:
    if isinstance(want, float):
        narrow = np.float32(want) if kind == pa.float32() else want
        return isinstance(found, float) and (found == narrow or (math.isnan(found) and math.isnan(want)))
    return type(found) is type(want) and bool(found == want)


def is_allowed(part: dict[str, Any], value: Any) -> bool:
    """Whether a schema's type and format allow a value."""
    form = jsonschema.FormatChecker(["date"])
    plain = {key: part[key] for key in ("type", "format") if key in part}
    return jsonschema.Draft202012Validator(plain, format_checker=form).is_valid(value)


@pytest.mark.parametrize(("part", "expected"), TYPES, ids=[json.dumps(part) for part, _ in TYPES])
def test_each_value_lands_equal_or_is_refused(part: dict[str, Any], expected: Any) -> None:
    tried, landed = 0, 0
    kind = columns_of(text(of(part)), None).field("v").type
    for schema, around, want_around in wraps(part).values():
        found = decoded(text(schema), [f'{{"v": {around % one}}}'.encode() for one in WRITTEN])
        values = iter(found.columns["v"].to_pylist())
        for at, one in enumerate(WRITTEN):
            want = expected(json.loads(one), one)
            tried += 1
            if want is REFUSED:
                assert found.problems[at].reason == "does_not_fit", (one, schema)
                continue
            assert at not in found.problems, (one, found.problems[at])
            got, landed = next(values), landed + 1
            if around == "%s":
                assert same(got, want, kind), (one, got)
            else:
                inside = (
                    got[1] if isinstance(got, list) and len(got) == 2 else got[0][1] if isinstance(got, list) else got["in"]
                )
                assert same(inside, want, kind) and got == want_around(inside), (one, got)
    assert tried == 6 * len(WRITTEN) and landed > 0


@pytest.mark.parametrize(("part", "expected"), TYPES, ids=[json.dumps(part) for part, _ in TYPES])
def test_what_a_schema_allows_lands_and_nothing_else_does(part: dict[str, Any], expected: Any) -> None:
    found = decoded(text(of(part)), [f'{{"v": {one}}}'.encode() for one in WRITTEN])
    agreed = 0
    for at, one in enumerate(WRITTEN):
        value, form = json.loads(one), part.get("format", "")
        allowed, landed = is_allowed(part, value), at not in found.problems
        if allowed and not landed:
            # Beyond the column, a whole number with a point, or no time and no Base64, which jsonschema does not look at.
            assert isinstance(value, int | float) or form == "date-time" or "contentEncoding" in part, one
        elif landed and not allowed:
            assert kind_of(part) == "STRING" or isinstance(value, LENIENT.get(form, ())) or value == "NaN", one
        else:
            agreed += 1
    assert agreed >= 5


def kind_of(part: Any) -> str:
    return type_name(columns_of(text(of(part)), None).field("v").type)


def test_null_and_nothing_are_null_unless_the_property_is_required() -> None:
    tried = 0
    for (part, _), needed in itertools.product(TYPES, (False, True)):
        for nullable in (part, {**part, "type": [part["type"], "null"]}, {"anyOf": [part, {"type": "null"}]}):
            schema = text(of(nullable, required=["v"] if needed else []))
            strict = needed and nullable is part
            assert columns_of(schema, None).field("v").nullable is not strict
            found = decoded(schema, [b'{"v": null}', b"{}", b'{"w": 1}'])
            assert {one.reason for one in found.problems.values()} == ({"missing_field"} if strict else set())
            assert found.columns["v"].to_pylist() == [None] * (0 if strict else 3)
            tried += 1
    assert tried == 6 * len(TYPES)


def test_what_is_no_object_is_refused_and_the_others_land() -> None:
    values = [b"", b"{", b"[]", b"1", b"null", b'{"v": "\xff"}', b'{"v": 1}', b"[" * 100_000, b'{"v": ' * 50_000, b"\0\0\0\0\1"]
    found = decoded(text(of({"type": "integer"})), values)
    assert found.good == [6] and found.columns["v"].to_pylist() == [1]
    assert [found.problems[at].reason for at in (0, 1, 2)] == ["empty_value", "malformed_json", "not_an_object"]


def test_a_long_text_lands() -> None:
    long = "é" * 5_000_000
    found = decoded(text(of({"type": "string"})), [json.dumps({"v": long}).encode()])
    assert found.columns["v"].to_pylist() == [long]


# Schemas that name others.

ADDRESS = {"$id": "https://shop.example/address.json", **of({"$ref": "#/$defs/city"}), "$defs": {"city": {"type": "integer"}}}


@pytest.mark.parametrize(
    ("reference", "root"),
    [
        ("address.json", {}),
        ("address.json#", {}),
        ("https://shop.example/address.json", {}),
        ("address.json", {"$id": "https://shop.example/order.json"}),
        ("./address.json", {"$id": "https://shop.example/order.json"}),
        ("/address.json#/properties/..", None),
    ],
)
def test_a_reference_to_another_schema_is_followed(reference: str, root: Any) -> None:
    if root is None:
        with pytest.raises(UnreadableSchemaError, match=r"^v: /address.json#/properties/\.\. is not in this schema, nor"):
            columns_of(text(of({"$ref": reference}), address=ADDRESS), None)
        return
    made = columns_of(text({**of({"$ref": reference}), **root}, address=ADDRESS), None)
    assert made.field("v").type == pa.struct([pa.field("v", pa.int64())])


def test_references_of_references_are_followed_and_each_word_is_of_its_own_schema() -> None:
    inner = SchemaText("json_schema", json.dumps({"$defs": {"T": {"type": "boolean"}}}))
    middle = {"type": "object", "properties": {"a": {"$ref": "inner.json#/$defs/T"}, "b": {"$ref": "#/$defs/T"}}}
    between = SchemaText(
        "json_schema", json.dumps({**middle, "$defs": {"T": {"type": "string"}}}), (Reference("inner.json", inner),)
    )
    root = of({"$ref": "middle.json"}, **{"$defs": {"T": {"type": "number"}}})
    schema = SchemaText("json_schema", json.dumps(root), (Reference("middle.json", between), Reference("inner.json", inner)))
    assert columns_of(schema, None).field("v").type == pa.struct([("a", pa.bool_()), ("b", pa.string())])
    other = SchemaText("json_schema", json.dumps({"type": "string"}))
    twice = SchemaText("json_schema", json.dumps(root), (*schema.references, Reference("inner.json", other)))
    with pytest.raises(UnreadableSchemaError, match=r"two different schemas are imported as inner\.json"):
        columns_of(twice, None)


def test_schemas_that_share_what_they_import_are_read_once() -> None:
    start, schema = time.process_time(), text({"$defs": {"T": {"type": "boolean"}}})
    for at in range(60):
        content = json.dumps({"$defs": {"T": {"$ref": f"{at}.json#/$defs/T"}}})
        schema = SchemaText("json_schema", content, (Reference(f"{at}.json", schema), Reference(f"again{at}.json", schema)))
    root = SchemaText("json_schema", json.dumps(of({"$ref": "x.json#/$defs/T"})), (Reference("x.json", schema),))
    assert columns_of(root, None).field("v").type == pa.bool_()
    assert time.process_time() - start < 2


def test_a_property_may_have_any_characters_in_a_reference() -> None:
    for name, written in [("a b", "a%20b"), ("a/b", "a~1b"), ("a~b", "a~0b"), ("a%20b", "a%20b"), ("é", "é")]:
        schema = of({"$ref": f"#/$defs/{written}"}, **{"$defs": {name: {"type": "boolean"}}})
        assert kind_of_all(schema) == ["BOOLEAN"]


def kind_of_all(schema: Any) -> list[str]:
    return [type_name(one.type) for one in columns_of(text(schema), None)]


# Schemas that are refused.


def levels(number: int, word: str) -> Any:
    part: Any = {"type": "string"}
    for _ in range(number):
        part = {"type": "array", "items": part} if word == "items" else {word: [part, {"type": "null"}]}
    return part


def doubling(number: int) -> Any:
    """Return a schema that is small, and has two to the power of a number of columns."""
    defs: dict[str, Any] = {"T0": {"type": "string"}}
    for level in range(1, number):
        below = {"$ref": f"#/$defs/T{level - 1}"}
        defs[f"T{level}"] = {"type": "object", "properties": {"a": below, "b": below}}
    return of({"$ref": f"#/$defs/T{number - 1}"}, **{"$defs": defs})


def chain(number: int, last: Any) -> Any:
    defs = {f"T{at}": {"$ref": f"#/$defs/T{at + 1}"} for at in range(number)}
    return of({"$ref": "#/$defs/T0"}, **{"$defs": {**defs, f"T{number}": last}})


MANY = {f"c{at}": {"type": "string"} for at in range(5_001)}
LONG = "n" * 100_000
HOSTILE: list[tuple[str, str, str]] = [
    ("", "", "is not JSON"),
    ("{", "", "is not JSON"),
    ("[" * 100_000, "", "too many levels"),
    ("true", "", "is not a JSON object"),
    ('"string"', "", "is not a JSON object"),
    ("[]", "", "is not a JSON object"),
    ("{}", "", "must be an object with properties"),
    (json.dumps({"type": "string"}), "", "must be an object with properties"),
    (json.dumps({"type": "object", "additionalProperties": {"type": "string"}}), "", "must be an object with properties"),
    (json.dumps(of(levels(150, "items"))), "v[]", "more than 100 types inside of each other"),
    (json.dumps(of(levels(150, "oneOf"))), "v", "more than 100 types inside of each other"),
    (json.dumps(doubling(40)), "v", "more than 5,000 columns"),
    (json.dumps({"type": "object", "properties": MANY}), "c5000", "more than 5,000 columns"),
    (json.dumps(chain(5_000, {"type": "string"})), "v", "comes after 100 references"),
    (json.dumps(of({"$ref": "#"})), "v.v", "contains itself"),
    (json.dumps(chain(3, {"$ref": "#/$defs/T1"})), "v", "contains itself"),
    (json.dumps(chain(3, {"type": "array", "items": {"$ref": "#/$defs/T2"}})), "v[]", "contains itself"),
    (json.dumps({"$ref": "#"}), "", "contains itself"),
    (json.dumps(of({"$ref": "http://[x"})), "v", "is not in this schema"),
    (json.dumps(of({"$ref": 7})), "v", "7 is not in this schema"),
    (json.dumps(of({"$ref": "#anchor"})), "v", "#anchor is not in this schema"),
    (json.dumps(of({"type": "string"}) | {"x": "y" * 2_000_001}), "", "more than 2,000,000 characters"),
    (json.dumps({"type": "object", "properties": {"a": {"type": "string"}, "A": {"type": "string"}}}), "A", "differs from a"),
    (json.dumps(of({"type": "object", "properties": {"x": {"type": "null"}}})), "v.x", "may be null"),
    (json.dumps({"type": "object", "properties": {"": {"type": "string"}}}), "", "is not a valid column name"),
    (
        json.dumps(of({"type": "object", "properties": {"\ud800": {"type": "string"}}})),
        "v.\ud800",
        "is not a valid column name",
    ),
    (
        json.dumps(
            {
                "type": "object",
                "properties": {f"c{at}": {"$ref": "#/$defs/T"} for at in range(100)},
                "$defs": {"T": {"type": "object", "properties": {LONG: {"type": "string"}}}},
            }
        ),
        "",
        "the names of all columns have more than 2,000,000 characters",
    ),
    *((json.dumps(of({"type": "string", word: []})), "v", f"{word} is not supported") for word in REFUSED_WORDS),
]


@pytest.mark.parametrize(("written", "path", "reason"), HOSTILE, ids=[f"{at}" for at in range(len(HOSTILE))])
def test_a_schema_that_has_no_columns_is_refused_by_name_at_once(written: str, path: str, reason: str) -> None:
    start = time.process_time()
    with pytest.raises(UnreadableSchemaError) as found:
        columns_of(SchemaText("json_schema", written), None)
    assert reason in found.value.reason
    assert found.value.path == path or found.value.path.startswith(f"{path}.") or path == "v[]"
    assert time.process_time() - start < 2


def test_a_huge_enum_and_a_long_way_through_references_take_little_time() -> None:
    start = time.process_time()
    assert kind_of({"type": "string", "enum": [f"{at}" for at in range(150_000)]}) == "STRING"
    way = "/".join(["x"] * 400_000)
    defs = {"T": {"$ref": f"#/{way}"}}
    with pytest.raises(UnreadableSchemaError, match="is not in this schema"):
        columns_of(text(of({"$ref": "#/$defs/T"}, **{"$defs": defs})), None)
    assert time.process_time() - start < 2


# One schema wrote it, another one reads it.


def test_records_of_all_versions_land_in_the_columns_of_all() -> None:
    old, new = text(of({"type": "integer"})), text({"type": "object", "properties": {"w": {"type": "string"}}})
    read = schemas_of_subjects({"s": [Version(1, (1,), old), Version(2, (2, "guid"), new)]}, None, {}, {}, asks=False)
    assert read.columns.names == ["w", "v"] and read.known is not None and not read.known.refused
    values = [b'\0\0\0\0\1{"v": 7}', b'\0\0\0\0\2{"w": "x"}', b'\0\0\0\0\2{"v": "x"}', None, b'{"v": 1}', b'\0\0\0\0\3{"v": 1}']
    found = SchemaFormat(read.columns, read.reader, known=read.known).decoder().decode(Records([None] * len(values), values))
    assert {at: one.reason for at, one in found.problems.items()} == {
        2: "does_not_fit",
        3: "null_value",
        4: "no_schema_id",
        5: "unknown_schema",
    }
    assert {name: column.to_pylist() for name, column in found.columns.items()} == {"w": [None, "x"], "v": [7, None]}


@pytest.mark.parametrize(
    ("written", "column", "reason"),
    [
        ({"type": "string"}, pa.field("V", pa.string()), "calls it v"),
        ({"type": "string"}, pa.field("v", pa.binary()), "does not say that it is in Base64"),
        ({"type": "integer"}, pa.field("v", pa.timestamp("us", tz="UTC")), "nothing says in which unit"),
        ({"type": "integer"}, pa.field("v", pa.list_(pa.int64())), "has one value, the column an array"),
        ({"type": "array", "items": {"type": "string"}}, pa.field("v", pa.list_(pa.binary())), "Base64"),
        ({"type": "object", "additionalProperties": {"type": "number"}}, pa.field("v", pa.int64()), "has an object"),
        (
            {"type": "object", "additionalProperties": {"type": "string"}},
            pa.field("v", pa.map_(pa.int64(), pa.string())),
            "JSON has only texts",
        ),
        (
            {"type": "object", "properties": {"x": {"type": "string"}}},
            pa.field("v", pa.struct([("X", pa.string())])),
            "calls it x",
        ),
    ],
)
def test_records_that_would_be_misread_are_refused(written: Any, column: pa.Field, reason: str) -> None:
    writer = text(of(written))
    with pytest.raises(UnreadableSchemaError, match=reason) as found:
        payload_decoder(writer, writer, pa.schema([column]), None, is_framed=True)
    assert found.value.path.startswith(column.name)


def test_an_object_lands_in_a_text_a_struct_or_a_map() -> None:
    value, wide = b'{"v": {"a": 1, "b": 2}}', pa.map_(pa.string(), pa.int64())
    kinds = [(pa.string(), '{"a": 1, "b": 2}'), (pa.struct([("b", pa.int64())]), {"b": 2}), (wide, [("a", 1), ("b", 2)])]
    for kind, want in kinds:
        for part in (
            {"properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}},
            {"additionalProperties": {"type": "integer"}},
        ):
            schema = text(of({"type": "object", **part}))
            assert decoded(schema, [value], pa.schema([pa.field("v", kind)])).columns["v"].to_pylist() == [want]


def test_a_part_that_no_column_needs_may_be_of_any_type() -> None:
    schema = text({"type": "object", "properties": {"v": {"type": "integer"}, "w": {"type": ["string", "integer"]}}})
    with pytest.raises(UnreadableSchemaError, match=r"^w: may be string or integer"):
        columns_of(schema, None)
    assert decoded(schema, [b'{"v": 1, "w": "x"}'], pa.schema([("v", pa.int64())])).columns["v"].to_pylist() == [1]


def test_the_title_is_the_name_of_the_record() -> None:
    named = text(of({"type": "integer"}, title="shop.Order"))
    assert columns_of(named, "shop.Order") == columns_of(named, None) == columns_of(text(of({"type": "integer"})), "shop.Order")
    with pytest.raises(
        UnreadableSchemaError, match=r"the title of the schema is shop\.Order, and the pipeline names the record X"
    ):
        columns_of(named, "X")


def test_known_schemas_name_guids_too() -> None:
    schema = text(of({"type": "integer"}))
    form = SchemaFormat(columns_of(schema, None), schema, known=KnownSchemas(((1, schema),), asks=False))
    assert form.decoder().decode(Records([None], [b'\0\0\0\0\1{"v": 1}'])).columns["v"].to_pylist() == [1]


# The page.

SHAPES = {
    "number, format: decimal(p,s)": ({"type": "number", "format": "decimal(12,2)"}, "DECIMAL(12,2)"),
    "array": ({"type": "array", "items": {"type": "string"}}, "ARRAY<STRING>"),
    "object with properties": ({"type": "object", "properties": {"a": {"type": "string"}}}, "STRUCT<a: STRING>"),
    "object with additionalProperties": (
        {"type": "object", "additionalProperties": {"type": "string"}},
        "MAP<STRING, STRING>",
    ),
    "type: [T, null]": ({"type": ["boolean", "null"]}, "BOOLEAN"),
    "oneOf or anyOf of T and null": ({"oneOf": [{"type": "boolean"}, {"type": "null"}]}, "BOOLEAN"),
    "$ref": ({"$ref": "#/$defs/T"}, "BOOLEAN"),
}


def test_the_page_says_which_column_each_type_has() -> None:
    """Every type of the code is on the page, and no other."""
    table = PAGE.read_text(encoding="utf-8").partition("## Types")[2].partition("\n\n**")[0]
    said = dict(re.findall(r"^\| `([^`]+)` \| ([^|]+) \|", table, re.MULTILINE))
    want: dict[str, str] = {}
    for (kind, form), column in OF_TYPES.items():
        word = "contentEncoding" if form == "base64" else "format"
        name = kind if form is None else f"{kind}, {word}: {form}"
        part = {"type": kind} if form is None else {"type": kind, word: form}
        want[name] = type_name(column)
        assert kind_of(part) == want[name]
    starts = {"ARRAY<STRING>": "ARRAY", "STRUCT<a: STRING>": "STRUCT", "MAP<STRING, STRING>": "MAP<STRING, …>"}
    starts |= {"DECIMAL(12,2)": "DECIMAL(p,s)", "BOOLEAN": "T's"}
    for name, (part, column) in SHAPES.items():
        schema = of(part, **{"$defs": {"T": {"type": "boolean"}}})
        assert kind_of_all(schema) == [column]
        want[name] = starts[column]
    assert said == want
    refused = re.findall(r"`(\w+)`", PAGE.read_text(encoding="utf-8").partition("**Refused words**")[2].partition("\n\n")[0])
    assert set(REFUSED_WORDS) == set(refused)
