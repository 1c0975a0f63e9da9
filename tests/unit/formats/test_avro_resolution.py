"""What one schema wrote is read with another one as fastavro reads it; where Lakebound does more, it is told here."""

from __future__ import annotations

import io
import json
import random
import struct
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from tests.support.formats.avro_schemas import value_of, written
from tests.support.formats.avro_versions import (
    DECIMAL,
    DEFAULTS,
    ENUM,
    INNER,
    MICROS,
    MILLIS,
    added,
    drawn_schema,
    evolved,
    record,
)

from lakebound.formats.avro import schema_reader
from lakebound.formats.contract import Decoded, Problem
from lakebound.formats.schemas import SchemaText, UnreadableSchemaError


def decoded(
    writer: Any, reader: Any, payloads: list[bytes], columns: pa.Schema | None = None, record: str | None = None
) -> Decoded:
    wrote, read = (SchemaText("avro", json.dumps(one)) for one in (writer, reader))
    columns = columns if columns is not None else schema_reader.columns_of(read, record)
    return schema_reader.payload_decoder(wrote, read, columns, record, is_framed=True).decode(payloads)


def rows(found: Decoded) -> list[Any]:
    made = iter(pa.table(dict(found.columns)).to_pylist())
    return [found.problems.get(at) or next(made) for at in range(found.count)]


def landed(kind: Any, value: Any) -> Any:
    """Return what fastavro has read, as columns have it."""
    if isinstance(kind, list):
        return None if value is None else landed(next(one for one in kind if one != "null"), value)
    if isinstance(kind, str):
        return struct.unpack("<f", struct.pack("<f", value))[0] if kind == "float" else value
    if kind["type"] == "record":
        return {one["name"]: landed(one["type"], value[one["name"]]) for one in kind["fields"]}
    if kind["type"] == "array":
        return [landed(kind["items"], one) for one in value]
    if kind["type"] == "map":
        return [(key, landed(kind["values"], one)) for key, one in value.items()]
    return value.isoformat("milliseconds") if kind.get("logicalType") == "time-millis" else value


def by_fastavro(writer: Any, reader: Any, payload: bytes) -> Any:
    """Return what fastavro reads; a problem where it reads nothing."""
    try:
        found = fastavro.schemaless_reader(
            io.BytesIO(payload), *(fastavro.parse_schema(json.loads(json.dumps(one))) for one in (writer, reader))
        )
    except (fastavro.read.SchemaResolutionError, UnicodeDecodeError, ValueError):
        return Problem("", "")
    return {
        one["name"]: added(one) if "default" in one else landed(one["type"], found[one["name"]]) for one in reader["fields"]
    }


@pytest.mark.parametrize("seed", range(60))
def test_it_is_read_as_fastavro_reads_it(seed: int) -> None:
    draw = random.Random(seed)
    writer = drawn_schema(draw)
    reader = evolved(draw, writer)
    parsed = fastavro.parse_schema(json.loads(json.dumps(writer)))
    payloads = [written(parsed, value_of(draw, writer)) for _ in range(30)]
    try:
        found = rows(decoded(writer, reader, payloads))
    except UnreadableSchemaError:
        assert any(isinstance(by_fastavro(writer, reader, payload), Problem) for payload in payloads)
        return
    for payload, own in zip(payloads, found, strict=True):
        want = by_fastavro(writer, reader, payload)
        if isinstance(want, Problem) or (isinstance(own, Problem) and "more digits than" in own.detail):
            assert isinstance(own, Problem), (writer, reader, payload.hex(), own)
        else:
            assert own == want, (writer, reader, payload.hex())


@pytest.mark.parametrize(("kind", "default", "want"), DEFAULTS)
def test_a_default_is_read_as_a_value(kind: Any, default: Any, want: Any) -> None:
    writer, reader = record({"a": "int"}), record({"a": "int", "b": {"its": 1, "type": kind, "default": default}})
    for count in (1, 30):
        assert rows(decoded(writer, reader, [b"\x02"] * count)) == [{"a": 1, "b": want}] * count


@pytest.mark.parametrize(
    ("kind", "default"),
    [
        ("int", "x"),
        ("int", 2**31),
        ("boolean", 1),
        ("string", None),
        (["null", "int"], "x"),
        (MICROS, 2**62),
        ({"type": "fixed", "name": "F", "size": 2}, "x"),
        (ENUM, "Z"),
    ],
)
def test_a_default_that_is_no_value_is_refused(kind: Any, default: Any) -> None:
    with pytest.raises(UnreadableSchemaError) as caught:
        decoded(record({"a": "int"}), record({"b": {"its": 1, "type": kind, "default": default}}), [])
    assert caught.value.path == "b" and "default" in caught.value.reason


def test_a_field_that_only_the_writer_has_keeps_its_value() -> None:
    writer, reader = (
        record({"a": "int", "gone": "string", "s": INNER}),
        record({"a": "int", "new": {"its": 1, "type": "int", "default": 4}}),
    )
    inner = pa.struct([pa.field("y", pa.string()), pa.field("nobody", pa.int32())])
    columns = pa.schema(
        [pa.field("gone", pa.string()), pa.field("new", pa.int32()), pa.field("nobody", pa.date32()), pa.field("s", inner)]
    )
    payload = written(fastavro.parse_schema(writer), {"a": 1, "gone": "kept", "s": {"x": 1, "y": "in"}})
    want = {"gone": "kept", "new": 4, "nobody": None, "s": {"y": "in", "nobody": None}}
    assert rows(decoded(writer, reader, [payload] * 20, columns)) == [want] * 20


def test_a_renamed_field_is_in_both_columns() -> None:
    """The table has the old column; who reads it by the old name finds what old writers wrote."""
    writer, reader = record({"old": "int"}), record({"new": {"its": 1, "type": "int", "aliases": ["old"]}})
    columns = pa.schema([pa.field("old", pa.int32()), pa.field("new", pa.int32())])
    assert rows(decoded(writer, reader, [b"\x0e"], columns)) == [{"old": 7, "new": 7}]


def test_a_required_column_that_neither_schema_has_is_refused() -> None:
    with pytest.raises(UnreadableSchemaError) as caught:
        decoded(record({"a": "int"}), record({"a": "int"}), [], pa.schema([pa.field("b", pa.int32(), False)]))
    assert caught.value.path == "b"


def test_null_in_a_required_column_is_a_problem() -> None:
    columns = pa.schema([pa.field("a", pa.int32(), False)])
    schema = record({"a": ["null", "int"]})
    want = [{"a": 1}, Problem("missing_field", "a: required but null")]
    assert rows(decoded(schema, schema, [b"\x02\x02", b"\x00"], columns)) == want
    assert rows(decoded(schema, schema, [b"\x02\x02", b"\x00"] * 20, columns)) == want * 20


@pytest.mark.parametrize(
    ("kind", "column", "value", "want"),
    [
        ("int", pa.int64(), 5, 5),
        ("long", pa.int8(), 127, 127),
        ("long", pa.int8(), 128, "128 is beyond TINYINT"),
        ("long", pa.int32(), -(2**31) - 1, "-2147483649 is beyond INT"),
        ("int", pa.decimal128(5, 2), 999, Decimal("999.00")),
        ("int", pa.decimal128(5, 2), -1000, "-1000 is beyond DECIMAL(5,2)"),
        ("long", pa.float64(), 2**53, 2.0**53),
        ("long", pa.float64(), 2**53 + 1, "9007199254740993 has more digits than DOUBLE keeps"),
        ("long", pa.float64(), 2**63 - 1, "9223372036854775807 has more digits than DOUBLE keeps"),
        ("float", pa.float64(), 0.5, 0.5),
        ("long", pa.string(), -(2**63), str(-(2**63))),
        ("string", pa.date32(), "2026-11-29", date(2026, 11, 29)),
        ("string", pa.date32(), "29.11.2026", "'29.11.2026' is not a DATE"),
        ("string", pa.timestamp("us"), "2026-11-29T10:00:00.5", datetime(2026, 11, 29, 10, 0, 0, 500000)),
        ("string", pa.timestamp("us", tz="UTC"), "2026-11-29T10:00+01:00", datetime(2026, 11, 29, 9, tzinfo=UTC)),
        ("string", pa.timestamp("us", tz="UTC"), "1700000000", "'1700000000' is not a TIMESTAMP"),
        ("string", pa.binary(), "é", "é".encode()),
        ("bytes", pa.string(), "é".encode(), "é"),
        (DECIMAL, pa.decimal128(12, 5), Decimal("1.234"), Decimal("1.23400")),
        (DECIMAL, pa.decimal128(12, 2), Decimal("1.230"), Decimal("1.23")),
        (DECIMAL, pa.decimal128(12, 2), Decimal("1.234"), "1.234 is beyond DECIMAL(12,2)"),
        (DECIMAL, pa.binary(), Decimal("1.000"), b"\x03\xe8"),
        (MICROS, pa.int64(), 5, 5),
        ({"type": "int", "logicalType": "date"}, pa.int32(), 5, 5),
        ({"type": "int", "logicalType": "time-millis"}, pa.int32(), 5, 5),
        ({"type": "long", "logicalType": "timestamp-nanos"}, pa.int64(), 5, 5),
    ],
)
def test_a_column_of_another_type_takes_the_same_value_or_none(kind: Any, column: pa.DataType, value: Any, want: Any) -> None:
    schema = record({"v": kind})
    payload = written(fastavro.parse_schema(record({"v": kind if not isinstance(value, int) else "long"})), {"v": value})
    problem = isinstance(want, str) and " " in want
    expected = Problem("does_not_fit", f"v: {want}") if problem else {"v": want}
    for count in (1, 20):
        assert rows(decoded(schema, schema, [payload] * count, pa.schema([pa.field("v", column)]))) == [expected] * count


@pytest.mark.parametrize(
    ("kind", "column"),
    [
        ("double", pa.string()),
        ("double", pa.float32()),
        ("string", pa.int32()),
        ("long", MICROS),
        (MICROS, pa.timestamp("us")),
        (MICROS, pa.string()),
        ("boolean", pa.int32()),
        (ENUM, pa.binary()),
        ({"type": "array", "items": "int"}, pa.int32()),
        (INNER, pa.string()),
        ({"type": "map", "values": "int"}, pa.list_(pa.int32())),
        ({"type": "fixed", "name": "F", "size": 2}, pa.string()),
    ],
)
def test_a_column_that_does_not_hold_the_type_is_refused(kind: Any, column: Any) -> None:
    column = pa.timestamp("us", tz="UTC") if column is MICROS else column
    schema = record({"v": kind})
    with pytest.raises(UnreadableSchemaError) as caught:
        decoded(schema, schema, [], pa.schema([pa.field("v", column)]))
    assert caught.value.path == "v" and "does not go into" in caught.value.reason


def test_a_unit_that_changed_changes_no_time() -> None:
    """By Avro's rules the number would be kept, and be read in the reader's unit."""
    millis, micros = record({"t": MILLIS}), record({"t": MICROS})
    payload = written(fastavro.parse_schema(record({"t": "long"})), {"t": 1_700_000_000_000})
    moment = rows(decoded(millis, micros, [payload]))
    assert moment == rows(decoded(millis, millis, [payload])) and moment[0]["t"].year == 2023
    number = pa.schema([pa.field("t", pa.int64())])
    assert rows(decoded(millis, micros, [payload], number)) == [{"t": 1_700_000_000_000_000}]
    assert rows(decoded(micros, millis, [payload], number)) == [{"t": 1_700_000_000}]
    with pytest.raises(UnreadableSchemaError):
        decoded(millis, record({"t": {"type": "long", "logicalType": "local-timestamp-millis"}}), [])


def test_types_of_a_union_are_fields_of_a_struct() -> None:
    writer, reader = record({"v": ["string", INNER]}), record({"v": ["null", "long", INNER, "string"]})
    payloads = [written(fastavro.parse_schema(writer), {"v": one}) for one in ("a", ("Inner", {"x": 1, "y": "b"}))]
    want = [{"long": None, "Inner": None, "string": "a"}, {"long": None, "Inner": {"x": 1, "y": "b"}, "string": None}]
    assert rows(decoded(writer, reader, payloads * 10)) == [{"v": one} for one in want] * 10
    narrower = pa.schema([pa.field("v", pa.struct([pa.field("long", pa.int64()), pa.field("string", pa.string())]))])
    assert rows(decoded(writer, reader, payloads, narrower)) == [
        {"v": {"long": None, "string": "a"}},
        {"v": {"long": None, "string": None}},
    ]


def test_a_type_of_a_union_that_the_reader_lacks_is_a_problem_of_its_records() -> None:
    writer, reader = record({"v": ["int", "string"]}), record({"v": "long"})
    payloads = [written(fastavro.parse_schema(writer), {"v": one}) for one in (5, "a")]
    want = [{"v": 5}, Problem("does_not_fit", "v.string: a string cannot be read as a long")]
    assert rows(decoded(writer, reader, payloads)) == want
    assert rows(decoded(writer, reader, payloads * 10)) == want * 10


def test_a_record_that_has_the_name_of_a_simple_type_is_none() -> None:
    long = {**record({"x": "int"}), "name": "shop.long"}
    writer, reader = record({"v": "long"}), record({"v": [long, "double"]})
    columns = pa.schema([pa.field("v", pa.struct([pa.field("double", pa.float64())]))])
    assert rows(decoded(writer, reader, [b"\x08"], columns)) == [{"v": {"double": 4.0}}]


def test_a_symbol_that_the_reader_lacks_is_its_default_or_a_problem() -> None:
    writer, payloads = record({"e": ENUM}), [b"\x00", b"\x02"]
    fewer = {**ENUM, "symbols": ["A"]}
    told = "e: B is not a symbol of the reader's enum E, which has no default"
    assert rows(decoded(writer, record({"e": fewer}), payloads)) == [{"e": "A"}, Problem("does_not_fit", told)]
    assert rows(decoded(writer, record({"e": {**fewer, "default": "A"}}), payloads)) == [{"e": "A"}, {"e": "A"}]
    assert rows(decoded(writer, record({"e": "string"}), payloads)) == [{"e": "A"}, {"e": "B"}]


def test_of_a_union_of_records_one_is_read() -> None:
    one, other = record({"a": "int"}), {**record({"a": "int", "b": "int"}), "name": "shop.Other"}
    union = [one, other]
    payloads = [b"\x00\x02", b"\x02\x04\x06"]
    first, second = Problem("does_not_fit", "T: record T cannot be read as record shop.Other"), {"a": 2, "b": 3}
    assert rows(decoded(union, union, payloads, record="shop.Other")) == [first, second]
    assert rows(decoded(union, union, payloads, record="T")) == [
        {"a": 1},
        Problem("does_not_fit", "Other: record shop.Other cannot be read as record T"),
    ]
    assert rows(decoded(one, union, payloads[:1] and [b"\x02"], record="T")) == [{"a": 1}]
    with pytest.raises(UnreadableSchemaError):
        decoded(one, union, [], record="shop.Other")
    with pytest.raises(UnreadableSchemaError):
        decoded(one, union, [], record="Nobody")


def test_null_lands_in_a_column_that_takes_it_whatever_the_reader_says() -> None:
    writer, reader = record({"a": ["null", "int"]}), record({"a": "int"})
    payloads = [b"\x00", b"\x02\x08"] * 10
    assert rows(decoded(writer, reader, payloads)) == [Problem("missing_field", "a: required but null"), {"a": 4}] * 10
    assert rows(decoded(writer, reader, payloads, pa.schema([pa.field("a", pa.int32())]))) == [{"a": None}, {"a": 4}] * 10


def test_a_time_of_day_has_the_digits_of_the_readers_unit() -> None:
    millis, micros = (
        record({"t": {"type": "int", "logicalType": "time-millis"}}),
        record({"t": {"type": "long", "logicalType": "time-micros"}}),
    )
    payload = written(fastavro.parse_schema(record({"t": "int"})), {"t": 86_399_999})
    assert rows(decoded(millis, micros, [payload])) == [{"t": "23:59:59.999000"}]
    assert rows(decoded(millis, millis, [payload])) == [{"t": "23:59:59.999"}]


def test_types_may_lie_a_hundred_deep() -> None:
    kind: Any = "int"
    for level in range(49):
        kind = ["null", {**record({"v": kind}), "name": f"R{level}"}]
    schema = record({"v": kind})
    deep, flat = b"\x02" * 49 + b"\x0e", {"v": 7}
    for _ in range(49):
        flat = {"v": flat}
    assert rows(decoded(schema, schema, [deep] * 30 + [b"\x00"])) == [flat] * 30 + [{"v": None}]


def test_a_record_that_is_null_has_no_value() -> None:
    schema = ["null", record({"a": "int"})]
    assert rows(decoded(schema, schema, [b"\x00", b"\x02\x08"])) == [Problem("null_value", "the record has no value"), {"a": 4}]
