"""Later versions of Avro schemas, drawn at random; what they read of earlier ones, Avro's rules say."""

from __future__ import annotations

import random
from decimal import Decimal
from typing import Any

ENUM = {"type": "enum", "name": "E", "symbols": ["A", "B", "C"]}
MILLIS, MICROS = ({"type": "long", "logicalType": f"timestamp-{unit}"} for unit in ("millis", "micros"))
DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 3}
INNER = {"type": "record", "name": "Inner", "fields": [{"name": "x", "type": "int"}, {"name": "y", "type": "string"}]}
KINDS: list[Any] = ["boolean", "int", "long", "float", "double", "bytes", "string", ENUM, MICROS, DECIMAL, INNER]
AROUND: list[Any] = [
    lambda kind: kind,
    lambda kind: ["null", kind],
    lambda kind: [kind, "null"],
    lambda kind: {"type": "array", "items": kind},
    lambda kind: {"type": "map", "values": ["null", kind]},
]
WIDER = {
    "int": ["long", "float", "double"],
    "long": ["float", "double"],
    "float": ["double"],
    "string": ["bytes"],
    "bytes": ["string"],
}
DEFAULTS: list[tuple[Any, Any, Any]] = [
    ("int", 7, 7),
    (["null", "string"], None, None),
    (["string", "null"], "x", "x"),
    (["null", "string"], "é", "é"),
    ("bytes", "\u00ff\u0000", b"\xff\0"),
    (DECIMAL, "\u0001", Decimal("0.001")),
    ({"type": "array", "items": "int"}, [1, 2], [1, 2]),
    ({"type": "map", "values": "double"}, {"a": 1}, [("a", 1.0)]),
    ({"type": "enum", "name": "Own", "symbols": ["P", "Q"]}, "Q", "Q"),
    ({"type": "fixed", "name": "Two", "size": 2}, "\u0001\u00fe", b"\x01\xfe"),
    (
        {"type": "record", "name": "Sub", "fields": [{"name": "p", "type": "int"}, {"name": "q", "type": "int", "default": 5}]},
        {"p": 1},
        {"p": 1, "q": 5},
    ),
    ("float", 0.5, 0.5),
    ("boolean", True, True),
    ({"type": "int", "logicalType": "time-millis"}, 1, "00:00:00.001"),
]


def record(fields: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return a record; a field is its type, or all that it has."""
    made = [
        {"name": name, **(kind if isinstance(kind, dict) and "its" in kind else {"type": kind})}
        for name, kind in fields.items()
    ]
    return {
        "type": "record",
        "name": "T",
        "fields": [{key: value for key, value in one.items() if key != "its"} for one in made],
        **more,
    }


def drawn_schema(draw: random.Random) -> dict[str, Any]:
    """Return the schema of a record with five fields."""
    return record({f"f{number}": draw.choice(AROUND)(kind) for number, kind in enumerate(draw.sample(KINDS, 5))})


def evolved(draw: random.Random, writer: dict[str, Any]) -> dict[str, Any]:
    """Return a later version of a schema."""
    fields = []
    for one in writer["fields"]:
        choice = draw.randrange(6)
        if choice == 0:
            continue
        kind = changed(draw, one["type"])
        fields.append(
            {"name": f"new_{one['name']}", "type": kind, "aliases": [one["name"]]}
            if choice == 1
            else {"name": one["name"], "type": kind}
        )
    for number, (kind, default, _) in enumerate(draw.sample(DEFAULTS, 2)):
        fields.append({"name": f"added{number}", "type": kind, "default": default})
    draw.shuffle(fields)
    return {"type": "record", "name": "T", "fields": fields}


def changed(draw: random.Random, kind: Any) -> Any:
    """Return a type that reads most of what a type wrote."""
    if isinstance(kind, list):
        return [changed(draw, one) for one in kind]
    if isinstance(kind, str):
        wider = draw.choice([kind, *WIDER.get(kind, [])])
        return wider
    if kind["type"] == "array":
        return {"type": "array", "items": changed(draw, kind["items"])}
    if kind["type"] == "map":
        return {"type": "map", "values": changed(draw, kind["values"])}
    if kind["type"] == "enum":
        return draw.choice([kind, {**kind, "symbols": ["C", "D", "A"]}, {**kind, "symbols": ["C", "A"], "default": "A"}])
    if kind["type"] == "record":
        return {**kind, "fields": [{"name": "z", "type": "int", "default": -1}, kind["fields"][0]]}
    return kind


def added(field: Any) -> Any:
    """Return a default, which fastavro gives as it stands in the schema."""
    return next(want for kind, default, want in DEFAULTS if (kind, default) == (field["type"], field["default"]))
