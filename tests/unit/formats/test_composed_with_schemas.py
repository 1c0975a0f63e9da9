"""Keys and values with a schema of their own beside headers: each part is decoded as it is alone."""

from __future__ import annotations

import json
import uuid
from io import BytesIO
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from lakebound.formats.composed import ComposedFormat, KeyColumns
from lakebound.formats.contract import Records
from lakebound.formats.framing import KEY_HEADER, VALUE_HEADER
from lakebound.formats.headers import HeaderColumn, HeadersFormat
from lakebound.formats.kinds import SchemaFormat, ValueFormat
from lakebound.formats.plain import PlainFormat
from lakebound.formats.schemas import KnownSchemas, SchemaId, SchemaText

GUID = uuid.UUID("0190f2a5-2ff4-7c33-a17f-5f5d1d3c0b11")
ORDER = SchemaText("avro", json.dumps({"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}))
COLUMNS = pa.schema([pa.field("id", pa.int64(), nullable=False)])
TRACING = [("trace-id", b"a"), ("n", None)]


def form(*, of_keys: bool, known: tuple[SchemaId, ...] = (7, str(GUID))) -> SchemaFormat:
    return SchemaFormat(COLUMNS, ORDER, None, KnownSchemas(tuple((one, ORDER) for one in known), asks=False), of_keys)


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


@pytest.mark.parametrize("of_keys", [False, True])
def test_a_header_may_name_the_schema_and_others_change_nothing(of_keys: bool) -> None:
    name = KEY_HEADER if of_keys else VALUE_HEADER
    other = VALUE_HEADER if of_keys else KEY_HEADER
    named = [*TRACING, (name, b"\x01" + GUID.bytes)]
    sent = [(framed(1), None), (framed(2), TRACING), (payload(3), named), (framed(4), [(other, b"\x01" + GUID.bytes)])]
    for chosen in (sent, sent[:2], sent[1:2], sent[2:3], sent[3:]):
        raw, headers = [one for one, _ in chosen], [one or () for _, one in chosen]
        nothing: list[bytes | None] = [None] * len(raw)
        records = Records(raw, nothing, headers) if of_keys else Records(nothing, raw, headers)
        rows, problems = decoded(form(of_keys=of_keys), records)
        assert not problems and [row["id"] for row in rows] == [sent.index(one) + 1 for one in chosen]


def test_a_key_with_a_schema_is_a_part_like_any_other() -> None:
    key = KeyColumns(form(of_keys=True), "k")
    whole = ComposedFormat(PlainFormat("value", "string"), key, HeadersFormat((HeaderColumn("t", "trace-id"),)))
    assert whole.reads_headers and whole.columns.names == ["k", "value", "t"]
    keys = [framed(1), b"\0\0\0\0\x08" + payload(2), b"x"]
    rows, problems = decoded(whole, Records(keys, [b"a", b"b", b"c"], [TRACING, [], []]))
    assert rows == [{"k": {"id": 1}, "value": "a", "t": "a"}]
    assert problems[1].startswith("unknown_schema: key: schema 8 ") and problems[2].startswith("no_schema_id: key: ")


def test_what_a_schema_requires_it_requires_of_no_record_without_value_or_key() -> None:
    value = SchemaFormat(pa.schema([pa.field("v", pa.int64(), nullable=False)]), ORDER, known=KnownSchemas(asks=False))
    whole = ComposedFormat(value, KeyColumns(form(of_keys=True), None, ("id",)), null_is_row=True)
    rows, problems = decoded(whole, Records([framed(5), None], [None, None], [[], []]))
    assert rows == [{"id": 5, "v": None}, {"id": None, "v": None}] and not problems
