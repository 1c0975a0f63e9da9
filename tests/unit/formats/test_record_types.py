"""Which type of a schema a value has: by its branch in Avro, by its indexes in Protobuf, by the title in JSON Schema."""

from __future__ import annotations

import json

import pytest

from lakebound.formats.kinds import schema_reader
from lakebound.formats.schemas import RecordType, SchemaKind, SchemaText


def record(name: str) -> dict[str, object]:
    return {"type": "record", "name": name, "namespace": "shop", "fields": [{"name": "id", "type": "long"}]}


UNION = json.dumps([record("Order"), record("Paid")])
MESSAGES = (
    'syntax = "proto3"; package shop; message Order { message Line { int64 id = 1; } int64 id = 1; } '
    "message Paid { int64 id = 1; }"
)
ONLY = RecordType("shop.Order", is_default=True)


@pytest.mark.parametrize(
    ("kind", "text", "payload", "expected"),
    [
        ("avro", json.dumps(record("Order")), b"\x02", ONLY),
        ("avro", UNION, b"\x00\x02", RecordType("shop.Order", is_default=False)),
        ("avro", UNION, b"\x02\x02", RecordType("shop.Paid", is_default=False)),
        ("avro", UNION, b"\x01\x02", None),
        ("avro", UNION, b"\x7e", None),
        ("avro", UNION, b"", None),
        ("avro", '"string"', b"\x02a", None),
        ("protobuf", MESSAGES, b"\x00\x08\x01", ONLY),
        ("protobuf", MESSAGES, b"\x02\x02\x08\x01", RecordType("shop.Paid", is_default=False)),
        ("protobuf", MESSAGES, b"\x04\x00\x00\x08\x01", RecordType("shop.Order.Line", is_default=False)),
        ("protobuf", MESSAGES, b"\x02\x08\x08\x01", None),
        ("protobuf", MESSAGES, b"", None),
        ("json_schema", '{"title": "shop.Order", "type": "object"}', b"{}", RecordType("shop.Order", True, is_binding=False)),
        ("json_schema", '{"type": "object"}', b"{}", None),
    ],
)
def test_a_value_says_its_type(kind: SchemaKind, text: str, payload: bytes, expected: RecordType | None) -> None:
    assert schema_reader(kind).record_type(SchemaText(kind, text), payload) == expected
