"""Texts of Avro schemas, read into types: names, references between schemas, and what cannot be read. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from lakebound.formats.avro import types
from lakebound.formats.avro.logical import logical_of
from lakebound.formats.schemas import SchemaText, UnreadableSchemaError

PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
MOST_LEVELS = 100
"""Types inside of each other."""
MOST_PARTS = 20_000
"""Types in a schema, each counted as often as it is named."""
MOST_FIXED_BYTES = 1 << 20
NamedType = types.Record | types.Enum | types.Fixed
_NAMED = ("record", "error", "enum", "fixed")


def parsed(schema: SchemaText) -> types.AvroType:
    """Return the type of a schema.

    Raises:
        UnreadableSchemaError: The text is no Avro schema, or a type in it contains itself.
    """
    return _Parser().schema(schema)


class _Parser:
    """Knows the names that came before, in the schema and in those it refers to."""

    def __init__(self) -> None:
        self._known: dict[str, NamedType] = {}
        self._parts_of: dict[str, int] = {}
        self._open: list[str] = []
        self._read: set[str] = set()
        self._parts = 0

    def schema(self, schema: SchemaText) -> types.AvroType:
        for one in schema.references:
            if one.schema.fingerprint not in self._read:  # several may refer to it
                self._read.add(one.schema.fingerprint)
                self.schema(one.schema)
        try:
            spec = json.loads(schema.text)
        except (ValueError, RecursionError) as exc:
            raise UnreadableSchemaError("", f"the schema is not JSON, as an Avro schema is: {exc}") from exc
        return self._type(spec, "", "", 0)

    def _type(self, spec: Any, space: str, path: str, level: int) -> types.AvroType:
        self._parts += 1
        if self._parts > MOST_PARTS:
            raise UnreadableSchemaError(path, f"the schema has more than {MOST_PARTS:,} parts")
        if level > MOST_LEVELS:
            raise UnreadableSchemaError(path, f"more than {MOST_LEVELS} types lie inside of each other")
        if isinstance(spec, str):
            return types.Primitive(spec) if spec in PRIMITIVES else self._named_before(spec, space, path)
        if isinstance(spec, list):
            return self._union(spec, space, path, level)
        if not isinstance(spec, dict):
            raise UnreadableSchemaError(path, f"{_shown(spec)} is not a type")
        kind = spec.get("type")
        if kind in PRIMITIVES:
            return types.Primitive(kind, logical_of(spec, kind))
        if kind == "array":
            return types.Array(self._type(_part(spec, "items", path), space, types.inside(path, "element"), level + 1))
        if kind == "map":
            return types.Map(self._type(_part(spec, "values", path), space, types.inside(path, "value"), level + 1))
        if kind in _NAMED:
            return self._named(spec, kind, space, path, level)
        return self._type(_part(spec, "type", path), space, path, level + 1)

    def _union(self, specs: list[Any], space: str, path: str, level: int) -> types.Union:
        """A part of a union with several types has the type's name in its path."""
        several = sum(spec != "null" for spec in specs) > 1
        branches: dict[str, types.AvroType] = {}
        for spec in specs:
            step = types.inside(path, _step(spec)) if several else path
            branch = self._type(spec, space, step, level + 1)
            key = branch.name if isinstance(branch, types.Named) else types.type_key(branch)
            if isinstance(branch, types.Union) or key in branches:
                raise UnreadableSchemaError(path, f"a union has another union in it, or {key} twice")
            branches[key] = branch
        if all(map(types.is_null, branches.values())):
            raise UnreadableSchemaError(path, "a union has no type beside null")
        return types.Union(tuple(branches.values()))

    def _named_before(self, name: str, space: str, path: str) -> NamedType:
        full = name if "." in name or not space else f"{space}.{name}"
        for one in (full, name):
            if one in self._open:
                raise UnreadableSchemaError(path, f"the type {one} contains itself, which no column can: leave this field out")
            if one in self._known:
                self._parts += self._parts_of[one]
                return self._known[one]
        raise UnreadableSchemaError(path, f"{name!r} is not a type, and no schema that is referred to defines it")

    def _named(self, spec: Mapping[str, Any], kind: str, space: str, path: str, level: int) -> NamedType:
        name = _text(spec, "name", path)
        if "." not in name:
            own = spec.get("namespace", space)
            if own and isinstance(own, str):
                name = f"{_text({'namespace': own}, 'namespace', path)}.{name}"
        if name in self._known or name in self._open:
            raise UnreadableSchemaError(path, f"the type {name} is defined twice")
        space = name.rpartition(".")[0]
        aliases = tuple(alias if "." in alias or not space else f"{space}.{alias}" for alias in _texts(spec, "aliases", path))
        before = self._parts
        self._open.append(name)
        found: NamedType
        if kind == "enum":
            found = _enum(spec, name, aliases, path)
        elif kind == "fixed":
            found = _fixed(spec, name, aliases, path)
        else:
            found = types.Record(name, aliases, self._fields(spec, space, path, level))
        self._open.pop()
        self._known[name], self._parts_of[name] = found, self._parts - before
        return found

    def _fields(self, spec: Mapping[str, Any], space: str, path: str, level: int) -> tuple[types.Field, ...]:
        fields = _part(spec, "fields", path)
        if not isinstance(fields, list) or not all(isinstance(one, dict) for one in fields):
            raise UnreadableSchemaError(path, "the fields of a record are not a list of objects")
        found: dict[str, types.Field] = {}
        for one in fields:
            name = _text(one, "name", path)
            if name in found:
                raise UnreadableSchemaError(types.inside(path, name), "the record has two fields of this name")
            step = types.inside(path, name)
            kind = self._type(_part(one, "type", step), space, step, level + 1)
            found[name] = types.Field(name, kind, _texts(one, "aliases", step), one.get("default", types.NO_DEFAULT))
        return tuple(found.values())


def _enum(spec: Mapping[str, Any], name: str, aliases: tuple[str, ...], path: str) -> types.Enum:
    symbols = _texts(spec, "symbols", path)
    default = spec.get("default")
    if not symbols or len({*symbols}) < len(symbols):
        raise UnreadableSchemaError(path, f"the enum {name} has no symbols, or one twice")
    if default is not None and default not in symbols:
        raise UnreadableSchemaError(path, f"the enum {name} has the default {_shown(default)}, which is not one of its symbols")
    return types.Enum(name, aliases, symbols, default)


def _fixed(spec: Mapping[str, Any], name: str, aliases: tuple[str, ...], path: str) -> types.Fixed:
    size = spec.get("size")
    if not isinstance(size, int) or isinstance(size, bool) or not 0 < size <= MOST_FIXED_BYTES:
        raise UnreadableSchemaError(path, f"the size of {name} is {_shown(size)}, and not 1 to {MOST_FIXED_BYTES:,} bytes")
    return types.Fixed(name, aliases, size, logical_of(spec, "fixed", size))


def _part(spec: Mapping[str, Any], key: str, path: str) -> Any:
    if key not in spec:
        raise UnreadableSchemaError(path, f"{_shown(spec)} has no {key!r}")
    return spec[key]


def _text(spec: Mapping[str, Any], key: str, path: str) -> str:
    found: Any = _part(spec, key, path)
    if not _is_text(found) or not found:
        raise UnreadableSchemaError(path, f"{key!r} is {_shown(found)}, and not a text")
    return str(found)


def _texts(spec: Mapping[str, Any], key: str, path: str) -> tuple[str, ...]:
    found = spec.get(key, [])
    if not isinstance(found, list) or not all(map(_is_text, found)):
        raise UnreadableSchemaError(path, f"{key!r} is {_shown(found)}, and not a list of texts")
    return tuple(found)


def _is_text(value: Any) -> bool:
    """Whether a value is a text that has UTF-8: half of a surrogate pair, which JSON may have, has none."""
    return isinstance(value, str) and (value.isascii() or not any("\ud800" <= one <= "\udfff" for one in value))


def _step(spec: Any) -> str:
    found = spec
    while isinstance(found, dict):
        found = found.get("name", found.get("type"))
    return str(found).rpartition(".")[2] if _is_text(found) else "union"


def _shown(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else text[:60] + "..."
