"""Avro behind Confluent's frame: records of several schemas beside each other, and of none."""

from __future__ import annotations

import json
from typing import Any

import fastavro
import pyarrow as pa
from tests.support.formats.avro_schemas import written

from lakebound.formats.contract import NO_VALUE, Problem, Records
from lakebound.formats.kinds import SchemaFormat, decoder_of, schema_reader
from lakebound.formats.registered import KnownSchemas
from lakebound.formats.schemas import SchemaText

FIRST: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "id", "type": "int"}, {"name": "old", "type": "string"}],
}
SECOND: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "id", "type": "long"}, {"name": "note", "type": ["null", "string"], "default": None}],
}
COLUMNS = pa.schema([pa.field("id", pa.int64(), False), pa.field("note", pa.string()), pa.field("old", pa.string())])
TEXTS = [SchemaText("avro", json.dumps(one)) for one in (FIRST, SECOND)]


def framed(number: int, schema: Any, value: Any) -> bytes:
    return b"\0" + number.to_bytes(4, "big") + written(fastavro.parse_schema(schema), value)


def fates(form: SchemaFormat, values: list[bytes | None]) -> list[Any]:
    found = decoder_of(form).decode(Records([None] * len(values), values))
    assert pa.schema([pa.field(name, column.type) for name, column in found.columns.items()]).types == form.columns.types
    rows = iter(pa.table(dict(found.columns)).to_pylist())
    return [found.problems.get(at) or next(rows) for at in range(found.count)]


def test_each_record_is_read_with_its_own_schema() -> None:
    known = KnownSchemas(((7, TEXTS[0]), (9, TEXTS[1])), ((11, "v: a string cannot be read as a long"),), asks=False)
    form = SchemaFormat(COLUMNS, TEXTS[1], known=known)
    cases: list[tuple[bytes | None, Any]] = [
        (framed(7, FIRST, {"id": 1, "old": "kept"}), {"id": 1, "note": None, "old": "kept"}),
        (framed(9, SECOND, {"id": 2**40, "note": "x"}), {"id": 2**40, "note": "x", "old": None}),
        (framed(9, SECOND, {"id": 3, "note": None}), {"id": 3, "note": None, "old": None}),
        (framed(8, SECOND, {"id": 3, "note": None}), "unknown_schema"),
        (framed(11, FIRST, {"id": 3, "old": ""}), "schema_does_not_fit"),
        (None, NO_VALUE),
        (b"\0\0\0\0\7", Problem("malformed_avro", "id: the record ends before it")),
        (b"\0\0\0\0\7\2", Problem("malformed_avro", "old: the record ends before it")),
        (b"{}", "no_schema_id"),
        (b"", "no_schema_id"),
    ]
    for tried in (cases, cases * 30, *([one] for one in cases), *([cases[0], one] for one in cases)):
        found = fates(form, [value for value, _ in tried])
        shown = [own.reason if isinstance(want, str) else own for own, (_, want) in zip(found, tried, strict=True)]
        assert shown == [want for _, want in tried]


def test_values_without_a_frame_were_written_with_the_reader() -> None:
    values = [written(fastavro.parse_schema(SECOND), {"id": at, "note": str(at)}) for at in range(50)]
    form = SchemaFormat(schema_reader("avro").columns_of(TEXTS[1], None), TEXTS[1])
    assert fates(form, [*values, None]) == [*({"id": at, "note": str(at)} for at in range(50)), NO_VALUE]


def test_a_value_without_fields_is_one_column() -> None:
    text = SchemaText("avro", '"string"')
    form = SchemaFormat(schema_reader("avro").columns_of(text, None), text, known=KnownSchemas(((1, text),)), part="key")
    found = decoder_of(form).decode(Records([None, None, None], [b"\0\0\0\0\1\x02a", None, b"\0\0\0\0\1\x04bc"]))
    assert found.columns["value"].to_pylist() == ["a", "bc"] and found.problems == {1: NO_VALUE}
