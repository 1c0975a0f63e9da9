"""Defaults of fields: the JSON of a schema, written as Avro, so that they are read as any other value is. Pure."""

from __future__ import annotations

import struct
from typing import Any

from lakebound.formats.avro import types
from lakebound.formats.schemas import UnreadableSchemaError

_BITS = {"int": 32, "long": 64}
_KEY = types.Primitive("string")


def written(kind: types.AvroType, value: Any, path: str) -> bytes:
    """Return a default as Avro writes it.

    Args:
        kind: Of the field.
        value: From the schema's JSON.
        path: Dotted, of the field.

    Raises:
        UnreadableSchemaError: It is not a value of the type.
    """
    if isinstance(kind, types.Union):
        return _of_union(kind, value, path)
    if isinstance(kind, types.Record) and isinstance(value, dict):
        return b"".join(
            _of_field(one.type, value.get(one.name, one.default), types.inside(path, one.name)) for one in kind.fields
        )
    if isinstance(kind, types.Array) and isinstance(value, list):
        items = b"".join(written(kind.items, one, types.inside(path, "element")) for one in value)
        return (_number(len(value)) + items if value else b"") + b"\0"
    if isinstance(kind, types.Map) and isinstance(value, dict):
        items = b"".join(
            written(_KEY, key, path) + written(kind.values, one, types.inside(path, "value")) for key, one in value.items()
        )
        return (_number(len(value)) + items if value else b"") + b"\0"
    if isinstance(kind, types.Enum) and isinstance(value, str) and value in kind.symbols:
        return _number(kind.symbols.index(value))
    if isinstance(kind, types.Fixed) and isinstance(value, str):
        raw = _latin(value)
        if raw is not None and len(raw) == kind.size:
            return raw
    found = _of_primitive(kind, value) if isinstance(kind, types.Primitive) else None
    if found is None:
        raise UnreadableSchemaError(path, f"the default {str(value)[:60]!r} is no value of {kind}")
    return found


def _of_field(kind: types.AvroType, value: Any, path: str) -> bytes:
    if value is types.NO_DEFAULT:
        raise UnreadableSchemaError(path, "the default of the record has no value for it")
    return written(kind, value, path)


def _of_union(kind: types.Union, value: Any, path: str) -> bytes:
    for number, branch in enumerate(kind.branches):
        try:
            return _number(number) + written(branch, value, path)
        except UnreadableSchemaError:
            continue
    raise UnreadableSchemaError(path, f"the default {str(value)[:60]!r} is no value of {kind}")


def _of_primitive(kind: types.Primitive, value: Any) -> bytes | None:
    """Return None where the value is not of the type."""
    if isinstance(value, bool) or kind.kind == "boolean":
        return bytes([value]) if kind.kind == "boolean" and isinstance(value, bool) else None
    if types.is_null(kind):
        return b"" if value is None else None
    if isinstance(value, str):
        return _of_text(kind, value)
    if kind.kind in _BITS:
        most = 1 << _BITS[kind.kind] - 1
        return _number(value) if isinstance(value, int) and -most <= value < most else None
    if kind.kind in ("float", "double") and isinstance(value, int | float):
        try:
            return struct.pack("<f" if kind.kind == "float" else "<d", value)
        except (OverflowError, struct.error):
            return None
    return None


def _of_text(kind: types.Primitive, value: str) -> bytes | None:
    if kind.kind == "string":
        return _text(value) if value.isascii() or not any("\ud800" <= one <= "\udfff" for one in value) else None
    raw = _latin(value) if kind.kind == "bytes" else None
    return None if raw is None else _number(len(raw)) + raw


def _latin(value: str) -> bytes | None:
    """In the JSON of a schema each byte is the character of its number."""
    try:
        return value.encode("latin-1")
    except UnicodeEncodeError:
        return None


def _text(value: str) -> bytes:
    raw = value.encode()
    return _number(len(raw)) + raw


def _number(value: int) -> bytes:
    left = (value << 1) ^ (value >> 63)
    found = bytearray()
    while left > 0x7F:
        found.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes([*found, left])
