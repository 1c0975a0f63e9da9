"""Chains of versions of a record's schema, drawn at random, and what a table must have of each record.

It is written from the rules of Avro, Protobuf and JSON Schema and from what the pages of the formats promise, and imports
nothing of lakebound.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

Format = Literal["avro", "protobuf", "json_schema"]
Row = dict[str, Any]
LEAVES = ("long", "double", "string", "boolean", "enum")
_FIRST_KINDS = (*LEAVES, "place", "int")
_FIRST = 1 + len(_FIRST_KINDS)
"""The number of the last field of the first version."""


@dataclass(frozen=True)
class Field:
    """A field of a version.

    Attributes:
        name: As records of the version have it.
        kind: One of LEAVES; ``int``, ``place``: a record; ``list``: of texts.
        number: Which of all fields that the chain has had; it stays when the field gets another name.
        size: Symbols of an enum, or fields of a place.
        former: Name before this one.
        is_nullable: Whether it may be null.
    """

    name: str
    kind: str
    number: int
    size: int = 2
    former: str | None = None
    is_nullable: bool = False


@dataclass(frozen=True)
class Version:
    """A version of a schema.

    Attributes:
        fields: In their order.
        change: What it does to the version that it was made of.
        fits: Whether tables that have the columns of the versions before can follow it.
    """

    fields: tuple[Field, ...]
    change: str = "first"
    fits: bool = True


def chain(draw: random.Random, form: Format, changes: Sequence[str]) -> list[Version]:
    """Return a first version, and one for each change; each is made of the newest before it that fits."""
    numbers = iter(range(2, 1_000))
    first = (
        Field("id", "long", 1),
        *(Field(f"f{number}", kind, number) for number, kind in zip(numbers, _FIRST_KINDS, strict=False)),
    )
    found = [Version(first)]
    for change in changes:
        fields = next(one for one in reversed(found) if one.fits).fields
        found.append(_changed(draw, form, fields, change, next(numbers)))
    return found


CHANGES = ("add", "remove", "rename", "reorder", "nullable", "grow_enum", "grow_place", "other_type", "wider_type", "union")
"""The last three do not fit; the last two are of Avro alone."""


def changes_of(draw: random.Random, form: Format, number: int) -> list[str]:
    """Return so many changes, in some order: each that the format has at least once, where there are so many."""
    known = CHANGES if form == "avro" else CHANGES[:-2]
    found = [*known] * (1 + number // len(known))
    draw.shuffle(found)
    return found[:number]


def _changed(draw: random.Random, form: Format, fields: tuple[Field, ...], change: str, number: int) -> Version:
    def put(at: int, field: Field) -> tuple[Field, ...]:
        return (*fields[:at], field, *fields[at + 1 :])

    def one_of(*kinds: str, is_first: bool = False) -> int | None:
        known = [at for at, field in enumerate(fields) if not is_first or (field.number <= _FIRST and field.former is None)]
        chosen = [at for at in known if fields[at].name != "id" and fields[at].kind in kinds]
        return draw.choice(chosen) if chosen else None

    if change in ("other_type", "wider_type", "union"):
        # In JSON a column of texts takes each value as its own text.
        others = ("long", "boolean") if form == "json_schema" else ("string", "long", "boolean")
        # Tables surely have the columns of the first version. Of two newer ones that do not go together, and that a stream sees
        # at once, it follows the newest.
        kinds_of = {"other_type": others, "wider_type": ("int", "long"), "union": ("string",)}
        at = one_of(*kinds_of[change], is_first=True)
        kinds = {"other_type": "list", "wider_type": "wider", "union": "either"}
        if at is not None:
            kind = {"int": "long", "long": "double"}[fields[at].kind] if change == "wider_type" else kinds[change]
            return Version(put(at, replace(fields[at], kind=kind, is_nullable=False)), change, fits=False)
    elif change == "remove" and len(fields) > 4:
        at = draw.choice([at for at, field in enumerate(fields) if field.name != "id"])
        return Version((*fields[:at], *fields[at + 1 :]), change)
    elif change == "rename":
        at = draw.choice([at for at, field in enumerate(fields) if field.name != "id"])
        return Version(put(at, replace(fields[at], name=f"g{number}", former=fields[at].name)), change)
    elif change == "reorder":
        return Version((*draw.sample(fields, len(fields)),), change)
    elif change == "nullable":
        at = draw.choice([at for at, field in enumerate(fields) if field.name != "id"])
        return Version(put(at, replace(fields[at], is_nullable=not fields[at].is_nullable)), change)
    elif change in ("grow_enum", "grow_place") and (at := one_of(change.removeprefix("grow_"))) is not None:
        return Version(put(at, replace(fields[at], size=fields[at].size + 1)), change)
    return Version(
        (*fields, Field(f"f{number}", draw.choice([*LEAVES, "place"]), number, is_nullable=draw.random() < 0.3)), "add"
    )


def value_of(draw: random.Random, version: Version, number: int) -> Row:
    """Return a record of a version: the values of its fields."""
    return {"id": number} | {one.name: _value(draw, one) for one in version.fields if one.name != "id"}


def _value(draw: random.Random, field: Field) -> Any:
    if field.is_nullable and draw.random() < 0.3:
        return None
    if field.kind in ("int", "long"):
        return draw.randrange(-(2**31), 2**31) if field.kind == "int" else draw.randrange(-(2**53), 2**53)
    if field.kind == "double":
        return draw.randrange(-(2**20), 2**20) / 8 + 0.5
    if field.kind == "boolean":
        return draw.random() < 0.5
    if field.kind == "enum":
        return f"S{draw.randrange(field.size)}"
    if field.kind == "place":
        return {f"x{at}": draw.choice([None, draw.randrange(1000)]) for at in range(field.size)}
    if field.kind == "list":
        return ["a", "b"][: draw.randrange(3)]
    if field.kind == "either":
        return draw.choice([7, "seven"])
    return "aé𝄞\0x"[: draw.randrange(6)] * draw.choice([1, 1, 30])


def rows_of(form: Format, value: Row, writer: Version, readers: Sequence[Version], columns: Row) -> list[Row]:
    """Return what a table may have of a record: by each version with which it may have been read.

    Args:
        form: Of the value.
        value: As it was sent.
        writer: Its version.
        readers: That were registered when it landed, or may have been.
        columns: Of the table at the end, with the names of fields inside, or None.
    """
    return [{name: _read(form, value, writer, one, name, inside) for name, inside in columns.items()} for one in readers]


def columns_of(versions: Sequence[Version]) -> Row:
    """Return the columns of versions by name, each with the names of the fields inside of it; None: there are none."""
    found: dict[str, int] = {}
    for version in versions:
        for field in version.fields:
            found[field.name] = max(found.get(field.name, 0), field.size if field.kind == "place" else 0)
    return {name: [f"x{at}" for at in range(size)] or None for name, size in found.items()}


def _read(form: Format, value: Row, writer: Version, reader: Version, name: str, inside: Sequence[str] | None) -> Any:
    read_as = next((one for one in reader.fields if one.name == name), None)
    found: Any = None
    if name in value:
        found = value[name]
    elif read_as is not None:
        if form == "avro" and read_as.former in value:  # An alias.
            found = value[read_as.former]
        else:
            found = _default(form, read_as)
    if inside is None or found is None:
        return found
    return {one: found.get(one) for one in inside}


def _default(form: Format, field: Field) -> Any:
    if form == "json_schema" or (form == "protobuf" and (field.is_nullable or field.kind == "place")):
        return None
    if form == "avro":
        return _AVRO_DEFAULTS.get(field.kind, dict.fromkeys([f"x{at}" for at in range(field.size)]))
    return {"int": 0, "long": 0, "double": 0.0, "string": "", "boolean": False, "enum": f"E{field.number}_S0"}[field.kind]


_AVRO_DEFAULTS = {
    "int": 7,
    "long": 7,
    "double": 0.5,
    "string": "none",
    "boolean": True,
    "enum": "S0",
    "list": [],
    "either": "x",
}


def avro_text(version: Version) -> str:
    """Return a version as an Avro schema; each field has a default."""
    fields = []
    for one in version.fields:
        kind = _avro_kind(one)
        more = {"aliases": [one.former]} if one.former is not None else {}
        fields.append({"name": one.name, "type": kind, "default": _default("avro", one), **more})
    return json.dumps({"type": "record", "name": "Order", "namespace": "shop", "fields": fields})


def _avro_kind(field: Field) -> Any:
    kind: Any = field.kind
    if kind == "enum":
        kind = {"type": "enum", "name": f"E{field.number}", "symbols": [f"S{at}" for at in range(field.size)]}
    elif kind == "place":
        inside = [{"name": f"x{at}", "type": ["null", "int"], "default": None} for at in range(field.size)]
        kind = {"type": "record", "name": f"P{field.number}", "fields": inside}
    elif kind == "list":
        kind = {"type": "array", "items": "string"}
    elif kind == "either":
        return ["string", "long"]
    return [kind, "null"] if field.is_nullable else kind


def proto_text(version: Version) -> str:
    """Return a version as a .proto text."""
    words = {"int": "int32", "long": "int64", "boolean": "bool", "list": "repeated string"}
    lines, types = [], []
    for one in version.fields:
        word = words.get(one.kind, one.kind)
        if one.kind == "enum":
            word = f"E{one.number}"
            symbols = "".join(f" E{one.number}_S{at} = {at};" for at in range(one.size))
            types.append(f"  enum {word} {{{symbols} }}")
        elif one.kind == "place":
            word = f"P{one.number}"
            inside = "".join(f" optional int32 x{at} = {at + 1};" for at in range(one.size))
            types.append(f"  message {word} {{{inside} }}")
        lines.append(f"  {'optional ' if one.is_nullable and one.kind != 'list' else ''}{word} {one.name} = {one.number};")
    return "\n".join(['syntax = "proto3";', "package shop;", "message Order {", *types, *lines, "}", ""])


def proto_value(version: Version, value: Row) -> Row:
    """Return what the message class of a version is made of."""
    found = {}
    for one in version.fields:
        content = value[one.name]
        if content is None:
            continue
        if one.kind == "enum":
            content = f"E{one.number}_{content}"
        elif one.kind == "place":
            content = {name: inside for name, inside in content.items() if inside is not None}
        found[one.name] = content
    return found


def proto_row(version: Version, value: Row) -> Row:
    """Return a value as columns have it: the names of an enum's numbers begin with the enum's."""
    found = dict(value)
    for one in version.fields:
        if one.kind == "enum" and found[one.name] is not None:
            found[one.name] = f"E{one.number}_{found[one.name]}"
    return found


def json_text(version: Version) -> str:
    """Return a version as a JSON Schema."""
    properties: Row = {}
    for one in version.fields:
        kinds = {"int": "integer", "long": "integer", "double": "number", "boolean": "boolean", "list": "array"}
        part: Row = {"type": {**kinds, "place": "object"}.get(one.kind, "string")}
        if one.kind == "enum":
            part["enum"] = [f"S{at}" for at in range(one.size)] + ([None] if one.is_nullable else [])
        elif one.kind == "place":
            part["properties"] = {f"x{at}": {"type": ["integer", "null"]} for at in range(one.size)}
        elif one.kind == "list":
            part["items"] = {"type": "string"}
        if one.is_nullable:
            part["type"] = [part["type"], "null"]
        properties[one.name] = part
    return json.dumps({"title": "Order", "type": "object", "properties": properties})
