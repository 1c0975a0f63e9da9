"""Records with each type of Protobuf and of JSON Schema in each place, and what their columns hold.

Each type is there by itself, in a list, in a map and in a record, with each class of its values. The last record has nothing.
Nothing of lakebound is imported.
"""

from __future__ import annotations

import io
import json
import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, Literal

import fastavro

from tests.support.formats.avro import PlainReader
from tests.support.formats.avro_schemas import value_of
from tests.support.formats.protobuf import message_class

Row = dict[str, Any]
TEXTS = ("", "a", "é𝄞\0", "x" * 3_000)
PROTOBUF: dict[str, tuple[Any, ...]] = {
    "double": (0.0, -0.0, 1.5, -2.25e300, 5e-324, math.inf, -math.inf, math.nan),
    "float": (0.0, -0.0, 1.5, 3.4028234663852886e38, 1.401298464324817e-45, math.inf, math.nan),
    **dict.fromkeys(("int32", "sint32", "sfixed32"), (0, 1, -1, 127, 128, 2**31 - 1, -(2**31))),
    **dict.fromkeys(("int64", "sint64", "sfixed64"), (0, 1, -1, 2**53 + 1, 2**63 - 1, -(2**63))),
    **dict.fromkeys(("uint32", "fixed32"), (0, 1, 2**31, 2**32 - 1)),
    **dict.fromkeys(("uint64", "fixed64"), (0, 1, 2**63, 2**64 - 1)),
    "bool": (False, True),
    "string": TEXTS,
    "bytes": (b"", b"\0", b"\xff\xfe", b"x" * 3_000),
}
"""Values of each type of Protobuf that has no parts."""
_MOMENTS = (
    (datetime(1, 1, 1, tzinfo=UTC), "0001-01-01T00:00:00Z"),
    (datetime(1969, 12, 31, 23, 59, 59, 999999, UTC), "1969-12-31T23:59:59.999999Z"),
    (datetime(2024, 2, 29, 12, 0, 0, 1, UTC), "2024-02-29T12:00:00.000001Z"),
    (datetime(9999, 12, 31, 23, 59, 59, 999999, UTC), "9999-12-31T23:59:59.999999Z"),
)
JSON: list[tuple[Row, Sequence[tuple[Any, Any]]]] = [
    ({"type": "string"}, [(one, one) for one in TEXTS]),
    ({"type": "string", "format": "date-time"}, [(written, moment) for moment, written in _MOMENTS]),
    ({"type": "string", "format": "date"}, [("0001-01-01", date(1, 1, 1)), ("9999-12-31", date(9999, 12, 31))]),
    ({"type": "string", "contentEncoding": "base64"}, [("", b""), ("AAEC", b"\0\1\2"), ("//79", b"\xff\xfe\xfd")]),
    ({"type": "integer"}, [(one, one) for one in (0, -1, 2**53 + 1, 2**63 - 1, -(2**63))]),
    ({"type": "integer", "format": "int32"}, [(one, one) for one in (0, 2**31 - 1, -(2**31))]),
    ({"type": "number"}, [(one, float(one)) for one in (0, -0.5, 5e-324, 1.7976931348623157e308)]),
    ({"type": "number", "format": "float"}, [(one, one) for one in (0.25, -1.5, 2.0**100)]),
    ({"type": "number", "format": "decimal(12,2)"}, [(1.25, Decimal("1.25")), (-9999999999.99, Decimal("-9999999999.99"))]),
    ({"type": "number", "format": "decimal(38,6)"}, [("0.000001", Decimal("0.000001")), ("9" * 32, Decimal("9" * 32))]),
    ({"type": "boolean"}, [(True, True), (False, False)]),
]
"""Types that a JSON Schema can give a property, and values: as they are sent, and as the column has them."""


@dataclass(frozen=True)
class Sent:
    """Records of one schema.

    Attributes:
        kind: Of the schema.
        text: The schema.
        payloads: What the records hold, without a frame.
        rows: What their columns must hold.
        values: What a serialiser of Avro or JSON gets.
    """

    kind: Literal["avro", "protobuf", "json_schema"]
    text: str
    payloads: list[bytes]
    rows: list[Row]
    values: list[Row] = field(default_factory=list)


def avro_records(schema: Row, draw: random.Random, number: int) -> Sent:
    """Draw records of an Avro schema; the first one holds nothing where it may."""
    parsed = fastavro.parse_schema(schema)
    payloads, values = [], []
    for at in range(number):
        value = value_of(draw, schema)
        if at == 0:
            value |= {one["name"]: None for one in schema["fields"] if isinstance(one["type"], list) and "null" in one["type"]}
        content = io.BytesIO()
        fastavro.schemaless_writer(content, parsed, value)
        values.append(value)
        payloads.append(content.getvalue())
    rows = [PlainReader(payload).whole(schema) for payload in payloads]
    return Sent("avro", json.dumps(schema), payloads, rows, values)


def json_records() -> Sent:
    """Return records of a JSON Schema, and a last one with nothing but null and what is not there."""
    properties: Row = {}
    for number, (part, _) in enumerate(JSON):
        properties[f"plain{number}"] = part
        properties[f"list{number}"] = {"type": "array", "items": part}
        properties[f"map{number}"] = {"type": "object", "additionalProperties": part}
        properties[f"record{number}"] = {"type": "object", "properties": {"inner": part}}
    payloads, rows, sent_ones = [], [], []
    for at in range(max(len(values) for _, values in JSON)):
        sent: Row = {}
        landed: Row = {}
        for number, (_, values) in enumerate(JSON):
            written, found = values[at % len(values)]
            sent |= _places(number, written, [None, written], {"k": written})
            landed |= _places(number, found, [None, found], [("k", found)])
        payloads.append(json.dumps(sent, ensure_ascii=at % 2 == 0).encode())
        sent_ones.append(sent)
        rows.append(landed)
    names = [*properties]
    sent_ones.append(dict.fromkeys(names[::2]))
    payloads.append(json.dumps(sent_ones[-1]).encode())
    rows.append(dict.fromkeys(names))
    return Sent("json_schema", json.dumps({"type": "object", "properties": properties}), payloads, rows, sent_ones)


def protobuf_records() -> Sent:
    """Return records of a proto3 schema, with Protobuf's own messages, and a last one of no bytes."""
    parts = "\n".join(_fields(number, kind) for number, kind in enumerate(PROTOBUF))
    own = ("duration", "empty", "struct", "timestamp", "wrappers")
    imports = "".join(f'import "google/protobuf/{name}.proto";' for name in own)
    text = f"""syntax = "proto3"; package shop; {imports}
        message Every {{ {parts}
          enum Colour {{ RED = 0; GREEN = 5; }}
          optional Colour colour = 900; repeated Colour colours = 901;
          oneof either {{ string word = 902; Inside inside = 903; }}
          message Inside {{ map<int32, Inner> inner = 1; }} message Inner {{ repeated int64 n = 1; }}
          google.protobuf.Timestamp at = 910; google.protobuf.Duration lasts = 911; google.protobuf.Empty empty = 912;
          google.protobuf.UInt64Value count = 913; google.protobuf.Struct more = 914; }}"""
    made = message_class(text, "shop.Every")
    payloads, rows = [], []
    for at in range(max(map(len, PROTOBUF.values()))):
        sent: Row = {}
        landed: Row = {}
        for number, (kind, values) in enumerate(PROTOBUF.items()):
            value = values[at % len(values)]
            found = Decimal(value) if kind in ("uint64", "fixed64") else value
            sent |= _places(number, value, [value, value], {"k": value})
            landed |= _places(number, found, [found, found], [("k", found)])
        message = made(**sent)
        landed |= _own_messages(message, at)
        payloads.append(message.SerializeToString())
        rows.append(landed)
    nothing = {name: [] if name.startswith(("list", "map", "colours")) else None for name in rows[0]}
    return Sent("protobuf", text, [*payloads, b""], [*rows, nothing])


def _places(number: int, value: Any, several: list[Any], mapped: Any) -> Row:
    """Return a value in each place; Arrow gives a map as a list of pairs."""
    return {f"plain{number}": value, f"list{number}": several, f"map{number}": mapped, f"record{number}": {"inner": value}}


def _fields(number: int, kind: str) -> str:
    at = 10 * number + 1
    return (
        f"optional {kind} plain{number} = {at}; repeated {kind} list{number} = {at + 1}; "
        f"map<string, {kind}> map{number} = {at + 2}; "
        f"message R{number} {{ optional {kind} inner = 1; }} R{number} record{number} = {at + 3};"
    )


def _own_messages(message: Any, at: int) -> Mapping[str, Any]:
    """Set what is not a plain type in a message, and return its columns."""
    moment, _ = _MOMENTS[at % len(_MOMENTS)]
    message.at.FromDatetime(moment)
    message.lasts.seconds, message.lasts.nanos = -at, -999_999_999
    message.empty.SetInParent()
    message.count.value = 2**64 - 1 - at
    message.more.update({"b": [None, True, "é"], "a": at})
    message.colour, found = (5, "GREEN") if at % 2 else (77, "77")
    message.colours.extend([0, 5, 77])
    inside = None
    if at % 2:
        message.inside.inner[7].n.extend([at, -at])
        message.inside.inner[-1].SetInParent()
        inside = {"inner": [(-1, {"n": []}), (7, {"n": [at, -at]})]}
    else:
        message.word = "w"
    return {
        "colour": found,
        "colours": ["RED", "GREEN", "77"],
        "word": None if at % 2 else "w",
        "inside": inside,
        "at": moment,
        "lasts": Decimal(-at * 10**9 - 999_999_999).scaleb(-9),
        "empty": True,
        "count": Decimal(2**64 - 1 - at),
        "more": f'{{"a":{float(at)},"b":[null,true,"é"]}}',
    }
