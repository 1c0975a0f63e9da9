"""Each value of each Avro type, written by fastavro, lands equal, wherever in a record it stands."""

from __future__ import annotations

import io
import json
import re
import uuid
from collections.abc import Mapping
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from tests.support.formats.avro import name_of

from lakebound.formats.avro import schema_reader
from lakebound.formats.contract import Decoded
from lakebound.formats.schemas import SchemaText

UTC_US, LOCAL_US = pa.timestamp("us", tz="UTC"), pa.timestamp("us")
MOMENTS = [
    datetime(1970, 1, 1),
    datetime(2026, 11, 29, 17, 5, 6, 123000),
    datetime(1, 1, 1),
    datetime(9999, 12, 31, 23, 59, 59, 999000),
]
MICROS = [*MOMENTS, datetime(9999, 12, 31, 23, 59, 59, 999999), datetime(1969, 12, 31, 23, 59, 59, 999999)]
BIG = 10**38 - 1
CASES: dict[str, tuple[Any, pa.DataType, list[Any]]] = {
    "boolean": ("boolean", pa.bool_(), [True, False]),
    "int": ("int", pa.int32(), [0, -1, 1, 63, 64, -64, -65, 8191, 8192, 2**31 - 1, -(2**31)]),
    "long": (
        "long",
        pa.int64(),
        [0, -1, 63, 64, *(2**n for n in range(6, 63)), *(-(2**n) - 1 for n in range(63)), 2**63 - 1, -(2**63)],
    ),
    "float": ("float", pa.float32(), [0.0, -0.0, 1.5, -2.25, float("inf"), float("-inf"), 2.0**-149, float(2**100)]),
    "double": ("double", pa.float64(), [0.0, -0.0, 0.1, -1e300, 5e-324, float("inf"), float("-inf")]),
    "bytes": ("bytes", pa.binary(), [b"", b"\0", b"\xff\xfe", b"x" * 70, b"y" * 9000]),
    "string": ("string", pa.string(), ["", "a", "é", "𝄞", "\0", "x" * 63, "x" * 64, "y" * 9000]),
    "fixed": ({"type": "fixed", "name": "F", "size": 3}, pa.binary(), [b"abc", b"\0\0\0", b"\xff\x80\x00"]),
    "fixed of 70 bytes": ({"type": "fixed", "name": "F", "size": 70}, pa.binary(), [b"a" * 70, bytes(range(70))]),
    "enum": ({"type": "enum", "name": "E", "symbols": ["RED", "GREEN", "B"]}, pa.string(), ["RED", "GREEN", "B"]),
    "date": ({"type": "int", "logicalType": "date"}, pa.date32(), [date(1970, 1, 1), date(1, 1, 1), date(9999, 12, 31)]),
    "time-millis": (
        {"type": "int", "logicalType": "time-millis"},
        pa.string(),
        [time(), time(23, 59, 59, 999000), time(1, 2, 3)],
    ),
    "time-micros": (
        {"type": "long", "logicalType": "time-micros"},
        pa.string(),
        [time(), time(23, 59, 59, 999999), time(1, 2, 3)],
    ),
    "timestamp-millis": (
        {"type": "long", "logicalType": "timestamp-millis"},
        UTC_US,
        [one.replace(tzinfo=UTC) for one in MOMENTS],
    ),
    "timestamp-micros": (
        {"type": "long", "logicalType": "timestamp-micros"},
        UTC_US,
        [one.replace(tzinfo=UTC) for one in MICROS],
    ),
    "local-timestamp-millis": ({"type": "long", "logicalType": "local-timestamp-millis"}, LOCAL_US, MOMENTS),
    "local-timestamp-micros": ({"type": "long", "logicalType": "local-timestamp-micros"}, LOCAL_US, MICROS),
    "uuid": ({"type": "string", "logicalType": "uuid"}, pa.string(), [uuid.UUID(int=0), uuid.UUID(int=2**128 - 1)]),
    "decimal": (
        {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2},
        pa.decimal128(12, 2),
        [
            Decimal("0.00"),
            Decimal("-0.01"),
            Decimal("9999999999.99"),
            Decimal("-9999999999.99"),
            Decimal("1.28"),
            Decimal("-1.28"),
        ],
    ),
    "decimal of 38 digits": (
        {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 0},
        pa.decimal128(38, 0),
        [Decimal(BIG), Decimal(-BIG), Decimal(2**64), Decimal(-(2**63)), Decimal(2**63), Decimal(2**126)],
    ),
    "decimal, fixed": (
        {"type": "fixed", "name": "D", "size": 9, "logicalType": "decimal", "precision": 20, "scale": 20},
        pa.decimal128(20, 20),
        [Decimal("0." + "0" * 20), Decimal("0." + "9" * 20), Decimal("-0." + "9" * 20)],
    ),
    "decimal, large fixed": (
        {"type": "fixed", "name": "D", "size": 30, "logicalType": "decimal", "precision": 38, "scale": 3},
        pa.decimal128(38, 3),
        [Decimal("9" * 35 + ".999"), Decimal("-" + "9" * 35 + ".999"), Decimal("0.001")],
    ),
    "array": (
        {"type": "array", "items": "int"},
        pa.list_(pa.field("element", pa.int32())),
        [[], [1], [*range(300)], [-1, 2**31 - 1]],
    ),
    "array of arrays": (
        {"type": "array", "items": {"type": "array", "items": "string"}},
        pa.list_(pa.field("element", pa.list_(pa.field("element", pa.string())))),
        [[], [[]], [["a"], [], ["b", "c"]], [["é" * number] * number for number in range(20)]],
    ),
    "map": ({"type": "map", "values": "long"}, pa.map_(pa.string(), pa.int64()), [{}, {"": 0}, {"a": 1, "b": -(2**63)}]),
    "record": (
        {"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}, {"name": "b", "type": ["null", "string"]}]},
        pa.struct([pa.field("a", pa.int32()), pa.field("b", pa.string())]),
        [{"a": 1, "b": None}, {"a": -5, "b": "x"}],
    ),
}
PLACES = ("required", "nullable", "array", "map", "record", "union", "nullable array", "map of arrays")


def placed(place: str, kind: Any) -> Any:
    """Return a type in which the kind stands."""
    other = {"type": "record", "name": "Other", "fields": [{"name": "x", "type": "int"}]}
    types: Mapping[str, Any] = {
        "required": kind,
        "nullable": ["null", kind],
        "array": {"type": "array", "items": kind},
        "map": {"type": "map", "values": kind},
        "record": {"type": "record", "name": "Around", "fields": [{"name": "f", "type": kind}, {"name": "g", "type": "int"}]},
        "union": [kind, "null", other],
        "nullable array": {"type": "array", "items": ["null", kind]},
        "map of arrays": {"type": "map", "values": {"type": "array", "items": kind}},
    }
    return types[place]


def put(place: str, kind: Any, values: list[Any]) -> list[tuple[Any, Any]]:
    """Return values as fastavro takes them, with what is expected of them."""
    shown = [(value, expected(kind, value)) for value in values]
    name, nothing = name_of(kind), {"Other": None}
    pairs: Mapping[str, list[tuple[Any, Any]]] = {
        "required": shown,
        "nullable": [*shown, (None, None), shown[0]],
        "array": [([], []), *(([one] * 3, [seen] * 3) for one, seen in shown), (values, [seen for _, seen in shown])],
        "map": [({}, []), *(({"a": one, "b": one}, [("a", seen), ("b", seen)]) for one, seen in shown)],
        "record": [({"f": one, "g": 7}, {"f": seen, "g": 7}) for one, seen in shown],
        "union": [
            (None, None),
            *((one, {name: seen, **nothing}) for one, seen in shown),
            (("Other", {"x": 3}), {name: None, "Other": {"x": 3}}),
        ],
        "nullable array": [([None], [None]), *(([one, None, one], [seen, None, seen]) for one, seen in shown)],
        "map of arrays": [({"k": [one], "": []}, [("k", [seen]), ("", [])]) for one, seen in shown],
    }
    return pairs[place]


def expected(kind: Any, value: Any) -> Any:
    if isinstance(value, time):
        return value.isoformat("milliseconds" if "millis" in kind["logicalType"] else "microseconds")
    if isinstance(value, uuid.UUID):
        return str(value)
    return [*value.items()] if isinstance(value, dict) and kind["type"] == "map" else value


def decoded(schema: Any, payloads: list[bytes]) -> tuple[pa.Schema, Decoded]:
    text = SchemaText("avro", json.dumps(schema))
    columns = schema_reader.columns_of(text, None)
    return columns, schema_reader.payload_decoder(text, text, columns, None, is_framed=False).decode(payloads)


def written(schema: Any, values: list[Any]) -> list[bytes]:
    found, parsed = [], fastavro.parse_schema(schema)
    for value in values:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, parsed, value)
        found.append(out.getvalue())
    return found


def bits(value: Any) -> str:
    """Tell zeros of two signs apart, but not two kinds of UTC."""
    return re.sub(r"tzinfo=(<UTC>|datetime.timezone.utc|zoneinfo.ZoneInfo\(key='UTC'\))", "UTC", repr(value))


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("case", CASES)
def test_a_value_lands_as_it_was_written(case: str, place: str) -> None:
    kind, _, values = CASES[case]
    schema = {
        "type": "record",
        "name": "Top",
        "fields": [{"name": "n", "type": "int"}, {"name": "v", "type": placed(place, kind)}, {"name": "m", "type": "string"}],
    }
    pairs = put(place, kind, values)
    for rows in (
        pairs[:9],
        [pair for pair in pairs for _ in range(13 if len(pairs) < 13 else 1)],
    ):  # by themselves, and many at once
        payloads = written(schema, [{"n": at, "v": one, "m": f"text {at}"} for at, (one, _) in enumerate(rows)])
        columns, found = decoded(schema, payloads)
        assert found.problems == {} and found.count == len(rows) > 0
        assert {name: column.type for name, column in found.columns.items()} == dict(
            zip(columns.names, columns.types, strict=True)
        )
        for column in found.columns.values():
            column.validate(full=True)
        assert found.columns["n"].to_pylist() == [*range(len(rows))]
        assert found.columns["m"].to_pylist() == [f"text {at}" for at in range(len(rows))]
        assert [bits(one) for one in found.columns["v"].to_pylist()] == [bits(seen) for _, seen in rows]


@pytest.mark.parametrize("case", CASES)
def test_a_value_that_is_no_record_is_one_column(case: str) -> None:
    kind, column, values = CASES[case]
    if case == "record":
        return
    for schema in (kind, ["null", kind]):
        columns, found = decoded(schema, written(schema, values))
        assert columns == pa.schema([pa.field("value", column, isinstance(schema, list))])
        assert [bits(one) for one in found.columns["value"].to_pylist()] == [bits(expected(kind, one)) for one in values]


def test_an_uuid_and_a_duration_in_fixed_bytes() -> None:
    schema = {
        "type": "record",
        "name": "Top",
        "fields": [
            {"name": "u", "type": {"type": "fixed", "name": "U", "size": 16, "logicalType": "uuid"}},
            {"name": "d", "type": {"type": "fixed", "name": "D", "size": 12, "logicalType": "duration"}},
        ],
    }
    own = uuid.uuid4()
    payload = own.bytes + (1).to_bytes(4, "little") + (2**32 - 1).to_bytes(4, "little") + (7).to_bytes(4, "little")
    for count in (1, 50):
        _, found = decoded(schema, [payload] * count)
        assert found.columns["u"].to_pylist() == [str(own)] * count
        assert found.columns["d"].to_pylist() == [{"months": 1, "days": 2**32 - 1, "milliseconds": 7}] * count


def test_not_a_number_stays_what_it_is() -> None:
    payloads = written("double", [float("nan")])
    _, found = decoded("double", payloads)
    assert str(found.columns["value"].to_pylist()) == "[nan]"
