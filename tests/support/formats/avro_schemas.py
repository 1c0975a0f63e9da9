"""Avro schemas and values of them, drawn at random."""

from __future__ import annotations

import io
import random
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import fastavro

LEAVES: list[Any] = [
    *("boolean", "int", "long", "float", "double", "bytes", "string"),
    {"type": "int", "logicalType": "date"},
    {"type": "int", "logicalType": "time-millis"},
    {"type": "long", "logicalType": "time-micros"},
    {"type": "long", "logicalType": "timestamp-millis"},
    {"type": "long", "logicalType": "timestamp-micros"},
    {"type": "long", "logicalType": "local-timestamp-micros"},
    {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 3},
]


def record_schema(draw: random.Random, fields: int = 4, depth: int = 2) -> dict[str, Any]:
    """Return the schema of a record."""
    names = iter(range(10_000))
    return _record(draw, fields, depth, names)


def _record(draw: random.Random, fields: int, depth: int, names: Any) -> dict[str, Any]:
    made = [{"name": f"f{number}", "type": _kind(draw, depth, names)} for number in range(fields)]
    return {"type": "record", "name": f"R{next(names)}", "fields": made}


def _kind(draw: random.Random, depth: int, names: Any) -> Any:
    choice = draw.randrange(12)
    if depth == 0 or choice < 5:
        return _leaf(draw, names)
    if choice < 7:
        return draw.choice([["null", _leaf(draw, names)], [_leaf(draw, names), "null"]])
    if choice == 7:
        return {"type": "array", "items": _kind(draw, depth - 1, names)}
    if choice == 8:
        return {"type": "map", "values": _kind(draw, depth - 1, names)}
    if choice == 9:
        return _record(draw, draw.randint(1, 3), depth - 1, names)
    if choice == 10:
        return ["null", {"type": "array", "items": _kind(draw, depth - 1, names)}]
    return ["string", "null", "long", _record(draw, 2, depth - 1, names), {"type": "array", "items": "int"}]


def _leaf(draw: random.Random, names: Any) -> Any:
    choice = draw.randrange(len(LEAVES) + 2)
    if choice < len(LEAVES):
        return LEAVES[choice]
    name = f"N{next(names)}"
    if choice == len(LEAVES):
        return {"type": "enum", "name": name, "symbols": [f"S{number}" for number in range(draw.randint(1, 70))]}
    return {"type": "fixed", "name": name, "size": draw.choice([1, 3, 8, 40])}


def value_of(draw: random.Random, schema: Any) -> Any:
    """Return a value of a schema, as fastavro writes it."""
    if isinstance(schema, list):
        branch = draw.choice(schema)
        found = value_of(draw, branch)
        several = len(schema) - schema.count("null") > 1
        return (branch["name"], found) if several and isinstance(branch, dict) and "name" in branch else found
    if isinstance(schema, str):
        return _plain(draw, schema)
    kind = schema["type"]
    if kind == "record":
        return {field["name"]: value_of(draw, field["type"]) for field in schema["fields"]}
    if kind == "array":
        return [value_of(draw, schema["items"]) for _ in range(_length(draw))]
    if kind == "map":
        return {f"k{number}": value_of(draw, schema["values"]) for number in range(_length(draw))}
    if kind == "enum":
        return draw.choice(schema["symbols"])
    if kind == "fixed":
        return draw.randbytes(schema["size"])
    return _logical(draw, schema["logicalType"])


def _length(draw: random.Random) -> int:
    return draw.choice([0, 1, 1, 2, 3, 9])


def _plain(draw: random.Random, kind: str) -> Any:
    if kind in ("int", "long"):
        bits = draw.randrange(32 if kind == "int" else 64)
        return draw.choice([1, -1]) * draw.getrandbits(bits)
    if kind in ("float", "double"):
        return draw.choice([0.0, -1.5, 2.0 ** draw.randrange(-100, 100)])
    plain: dict[str, Any] = {
        "null": None,
        "boolean": draw.random() < 0.5,
        "bytes": draw.randbytes(draw.randrange(80)),
        "string": "aé𝄞\0x"[: draw.randrange(6)] * draw.choice([1, 1, 30]),
    }
    return plain[kind]


def _logical(draw: random.Random, name: str) -> Any:
    moment = datetime(1970, 1, 1) + timedelta(seconds=draw.randrange(-(10**10), 10**11), milliseconds=draw.randrange(1000))
    found: dict[str, Any] = {
        "date": date.fromordinal(draw.randrange(1, 3_000_000)),
        "time-millis": time(draw.randrange(24), 5, 6, draw.randrange(1000) * 1000),
        "time-micros": time(draw.randrange(24), 5, 6, draw.randrange(1_000_000)),
        "local-timestamp-micros": moment,
        "decimal": Decimal(draw.randrange(-(10**9) + 1, 10**9)).scaleb(-3),
    }
    return found.get(name, moment.replace(tzinfo=UTC))


def written(schema: Any, value: Any) -> bytes:
    """Return what fastavro writes."""
    out = io.BytesIO()
    fastavro.schemaless_writer(out, schema, value)
    return out.getvalue()


def mutated(draw: random.Random, payload: bytes) -> bytes:
    """Return a payload with something wrong in it, mostly."""
    raw = bytearray(payload)
    at = draw.randrange(len(raw) + 1)
    choice = draw.randrange(8)
    if choice == 0:
        return bytes(raw[:at])
    if choice == 1:
        return bytes(raw) + draw.randbytes(draw.randint(1, 3))
    if choice == 2:
        return bytes(raw[:at] + draw.randbytes(draw.randint(1, 12)) + raw[at:])
    if choice == 3:
        return bytes(raw[:at] + raw[at + 1 :])
    if choice == 4:
        bomb = draw.choice(
            ["ffffffffffffffffff01", "feffffffffffffffff01", "80808080808080808010", "808080808080808080808000", "80808000"]
        )
        return bytes(raw[:at] + bytes.fromhex(bomb) + raw[at + 1 :])
    for _ in range(draw.choice([1, 1, 2, 5])):
        if raw:
            at = draw.randrange(len(raw))
            raw[at] = draw.choice([0, 1, 2, 3, 0x7F, 0x80, 0xFF, draw.randrange(256)])
    return bytes(raw)


def every_leaf() -> dict[str, Any]:
    """Return a schema with each type that has no parts, by itself and in a list, a map and a record; each may be null."""
    named: list[dict[str, Any]] = [
        {"type": "fixed", "name": "F", "size": 5},
        {"type": "enum", "name": "E", "symbols": ["RED", "GREEN"]},
    ]
    fields: list[dict[str, Any]] = []
    for number, leaf in enumerate(LEAVES):
        inner = {"type": "record", "name": f"R{number}", "fields": [{"name": "inner", "type": ["null", leaf]}]}
        kinds: dict[str, Any] = {
            "plain": leaf,
            "list": {"type": "array", "items": ["null", leaf]},
            "map": {"type": "map", "values": leaf},
        }
        kinds["record"] = inner
        fields += [{"name": f"{name}{number}", "type": ["null", kind]} for name, kind in kinds.items()]
    fields += [{"name": one["name"].lower(), "type": one} for one in named]
    return {"type": "record", "name": "Every", "fields": fields}
