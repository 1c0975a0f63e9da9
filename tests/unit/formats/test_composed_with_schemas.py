"""Keys and values with a schema of their own beside headers: each part is decoded as it is alone."""

from __future__ import annotations

import json
import uuid
from datetime import UTC, datetime
from io import BytesIO
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from lakebound.formats.composed import ComposedFormat, KeyColumns
from lakebound.formats.contract import Records
from lakebound.formats.framing import KEY_HEADER, VALUE_HEADER
from lakebound.formats.headers import HeaderColumn, HeadersFormat
from lakebound.formats.kinds import SchemaFormat, ValueFormat, schema_reader
from lakebound.formats.plain import PlainFormat
from lakebound.formats.schemas import KnownSchemas, PartOfRecord, SchemaId, SchemaText, UnreadableSchemaError

GUID = uuid.UUID("0190f2a5-2ff4-7c33-a17f-5f5d1d3c0b11")
ORDER = SchemaText("avro", json.dumps({"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}))
COLUMNS = pa.schema([pa.field("id", pa.int64(), nullable=False)])
TRACING = [("trace-id", b"a"), ("n", None)]


def form(part: PartOfRecord, known: tuple[SchemaId, ...] = (7, str(GUID))) -> SchemaFormat:
    return SchemaFormat(COLUMNS, ORDER, None, KnownSchemas(tuple((one, ORDER) for one in known), asks=False), part)


def payload(number: int) -> bytes:
    content = BytesIO()
    fastavro.schemaless_writer(content, fastavro.parse_schema(json.loads(ORDER.text)), {"id": number})
    return content.getvalue()


def framed(number: int) -> bytes:
    return b"\0" + (7).to_bytes(4, "big") + payload(number)


def decoded(form: ValueFormat, records: Records) -> tuple[list[dict[str, Any]], dict[int, str]]:
    made = form.decoder().decode(records)
    problems = {at: f"{problem.reason}: {problem.detail}" for at, problem in made.problems.items()}
    return pa.table(dict(made.columns)).to_pylist(), problems


@pytest.mark.parametrize("part", ["key", "value"])
def test_a_header_may_name_the_schema_and_others_change_nothing(part: PartOfRecord) -> None:
    name, other = (KEY_HEADER, VALUE_HEADER) if part == "key" else (VALUE_HEADER, KEY_HEADER)
    whole = (
        ComposedFormat(PlainFormat("value", "bytes"), KeyColumns(form("key"), None, ("id",))) if part == "key" else form(part)
    )
    named = [*TRACING, (name, b"\x01" + GUID.bytes)]
    sent = [(framed(1), None), (framed(2), TRACING), (payload(3), named), (framed(4), [(other, b"\x01" + GUID.bytes)])]
    for chosen in (sent, sent[:2], sent[1:2], sent[2:3], sent[3:]):
        raw, headers = [one for one, _ in chosen], [one or () for _, one in chosen]
        others = [b"other"] * len(raw)
        records = Records(raw, others, headers) if part == "key" else Records(others, raw, headers)
        rows, problems = decoded(whole, records)
        assert not problems and [row["id"] for row in rows] == [sent.index(one) + 1 for one in chosen]


def test_a_key_with_a_schema_is_a_part_like_any_other() -> None:
    key = KeyColumns(form("key"), "k")
    whole = ComposedFormat(PlainFormat("value", "string"), key, HeadersFormat((HeaderColumn("t", "trace-id"),)))
    assert whole.reads_headers and whole.columns.names == ["k", "value", "t"]
    keys = [framed(1), b"\0\0\0\0\x08" + payload(2), b"x"]
    rows, problems = decoded(whole, Records(keys, [b"a", b"b", b"c"], [TRACING, [], []]))
    assert rows == [{"k": {"id": 1}, "value": "a", "t": "a"}]
    assert problems[1].startswith("unknown_schema: key: schema 8 ") and problems[2].startswith("no_schema_id: key: ")


def test_what_a_schema_requires_it_requires_of_no_record_without_value_or_key() -> None:
    value = SchemaFormat(pa.schema([pa.field("v", pa.int64(), nullable=False)]), ORDER, known=KnownSchemas(asks=False))
    whole = ComposedFormat(value, KeyColumns(form("key"), None, ("id",)), null_is_row=True)
    rows, problems = decoded(whole, Records([framed(5), None], [None, None], [[], []]))
    assert rows == [{"id": 5, "v": None}, {"id": None, "v": None}] and not problems


def test_a_key_without_fields_is_the_column_itself() -> None:
    """Of every type that Avro has beside records; each framed as Confluent's serialiser for Python writes it."""
    for text, sent, landed in (
        ('"string"', "ä", "ä"),
        ('"int"', -5, -5),
        ('{"type": "long"}', 2**62, 2**62),
        ('"double"', 0.5, 0.5),
        ('"boolean"', True, True),
        ('{"type": "long", "logicalType": "timestamp-millis"}', 0, datetime(1970, 1, 1, tzinfo=UTC)),
        ('{"type": "string", "logicalType": "uuid"}', str(GUID), str(GUID)),
        ('{"type": "fixed", "size": 2, "name": "f"}', b"ab", b"ab"),
        ('{"type": "enum", "symbols": ["a", "b"], "name": "e"}', "b", "b"),
        ('{"type": "array", "items": "int"}', [1], [1]),
        ('["null", "string"]', "a", "a"),
        ('["null", "string"]', None, None),
    ):
        schema, content = SchemaText("avro", text), BytesIO()
        reader = schema_reader("avro")
        assert reader.is_one_value(schema, None)
        fastavro.schemaless_writer(content, fastavro.parse_schema(json.loads(text)), sent)
        keys = SchemaFormat(reader.columns_of(schema, None), schema, known=KnownSchemas(((7, schema),), asks=False), part="key")
        whole = ComposedFormat(PlainFormat("value", "string"), KeyColumns(keys, "k", is_one_value=True))
        assert whole.columns.names == ["k", "value"] and whole.columns.field("k").nullable
        records = Records([b"\0\0\0\0\x07" + content.getvalue(), None, b"\0\0\0\0\x07"], [b"a", b"b", b"c"], [[], [], []])
        rows, problems = decoded(whole, records)
        assert [*problems] == [2] and problems[2].startswith("malformed_avro: key: "), text
        assert rows == [{"k": landed, "value": "a"}, {"k": None, "value": "b"}], text
    assert not schema_reader("avro").is_one_value(ORDER, None)


def test_bytes_of_a_registry_are_refused_as_nothing_tells_how_they_were_written() -> None:
    schema = SchemaText("avro", '"bytes"')
    with pytest.raises(UnreadableSchemaError, match="nothing tells them apart"):
        schema_reader("avro").payload_decoder(schema, schema, COLUMNS, None, is_framed=True)
    keys = SchemaFormat(schema_reader("avro").columns_of(schema, None), schema, part="key")
    whole = ComposedFormat(PlainFormat("value", "string"), KeyColumns(keys, "k", is_one_value=True))
    assert decoded(whole, Records([b"\x04ab"], [b"v"])) == ([{"k": b"ab", "value": "v"}], {})
