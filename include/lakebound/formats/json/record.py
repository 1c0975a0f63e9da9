"""Reads one record exactly: its values in the types of the schema, or why it has none."""

from __future__ import annotations

import re
import sys
from collections.abc import Collection
from contextlib import suppress
from typing import Any

import msgspec
import pyarrow as pa

from lakebound.formats.contract import NO_VALUE, Problem
from lakebound.formats.json.leaves import Read, leaf_reader
from lakebound.formats.json.malformed import MOST_LEVELS, explain_malformed, levels_of
from lakebound.formats.json.misfit import MisfitError, field_step, key_step, names_told, shown
from lakebound.formats.json.types import MapKey, make_key

_BLANKS = b" \t\r\n"
_ESCAPES = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\(u[dD][89a-fA-F][0-9a-fA-F]{2})|\\.", re.DOTALL
)
"""Of JSON; a half of a character alone is a group."""
_ESCAPED_HALF = re.compile(rb"\\u[dD][89a-fA-F]")
_QUOTED = re.compile(rb""""[^"\\]*+(?:\\.[^"\\]*+)*+"?|'([^'\\]*+(?:\\.[^'\\]*+)*+)'?""", re.DOTALL)
"""A text in either quotes. One that does not end is taken at once, too: a search that began again at each escaped quote in it
would take time by the square of its length."""
_RECURSION_LIMIT = 5 * MOST_LEVELS
"""Python's own bound counts the levels of a JSON text together with its calls; by default it is 1,000."""
CONNECT_KEYS = frozenset({"schema", "payload"})
"""Of Kafka Connect's JSON, where its converter has ``schemas.enable=true``."""
_CONNECT = Problem(
    "unknown_field",
    "the record is Kafka Connect's JSON with schema and payload, which is not read so: write envelope: connect below "
    "value, set value.converter.schemas.enable=false in the connector, or declare the column payload STRUCT<...>",
)

_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_pairs = msgspec.json.Decoder(dict[MapKey, msgspec.Raw], dec_hook=make_key).decode
_elements = msgspec.json.Decoder(list[msgspec.Raw]).decode


class RecordReader:
    """Reads records of one schema."""

    def __init__(self, schema: pa.Schema, unhoused: Collection[str] = (), *, unknown_refused: bool = False) -> None:
        """Read nothing yet.

        Args:
            schema: Of the records; a field that is not nullable is required.
            unhoused: Fields of the schema for which a table has no column: a record that has one has a problem.
            unknown_refused: Whether one that the schema does not have is a problem, too.
        """
        self._names = frozenset(schema.names)
        self._required = [field.name for field in schema if not field.nullable]
        self._read = _struct_reader(list(schema))
        self._unhoused = frozenset(unhoused)
        self._unknown_refused = unknown_refused

    def read(self, value: bytes | None) -> dict[str, Any] | Problem:
        """Return the values of the schema's fields that a record has, or why it has none."""
        if value is None:
            return NO_VALUE
        try:
            return self._made(value)
        except RecursionError:
            sys.setrecursionlimit(max(sys.getrecursionlimit(), _RECURSION_LIMIT))
            return self._made(value)

    def _made(self, value: bytes) -> dict[str, Any] | Problem:
        members = _object(value)
        if isinstance(members, Problem):
            return members
        if members.keys() == CONNECT_KEYS and self._names.isdisjoint(CONNECT_KEYS):
            return _CONNECT
        try:
            found = self._read(members)
        except MisfitError as exc:
            return Problem("does_not_fit", exc.told())
        missing = [name for name in self._required if found.get(name) is None]
        if missing:
            return Problem("missing_field", f"required but missing or null: {', '.join(missing)}")
        return self._strange(members) or found

    def _strange(self, members: dict[str, msgspec.Raw]) -> Problem | None:
        unhoused = [name for name in members if name in self._unhoused]
        if unhoused:
            return Problem("unknown_field", f"a table has no column for it: {', '.join(unhoused)}")
        unknown = [name for name in members if name not in self._names] if self._unknown_refused else []
        return Problem("unknown_field", f"not in the schema: {names_told(unknown)}") if unknown else None


def may_have_half_character(text: bytes) -> bool:
    """Whether an escape in JSON texts may be half a character; of few texts it is said that has none."""
    return b"\\u" in text and _ESCAPED_HALF.search(text) is not None


def has_half_character(value: bytes) -> bool:
    """Whether an escape in a JSON text is half a character, which UTF-8 cannot write."""
    return may_have_half_character(value) and any(found[1] for found in _ESCAPES.finditer(value))


def may_be_deep(value: bytes) -> bool:
    """Whether a JSON text has enough brackets to be too deep."""
    return value.count(b"[") + value.count(b"{") > MOST_LEVELS


def _object(value: bytes) -> dict[str, msgspec.Raw] | Problem:
    if not value:
        return Problem("empty_value", "the value has no bytes")
    try:
        value.decode()
    except UnicodeDecodeError:
        return Problem("not_utf8", "the value is not UTF-8")
    if has_half_character(value):
        return Problem("not_utf8", "an escape in the value is half a character")
    if not value.lstrip(_BLANKS).startswith(b"{"):
        return Problem("not_an_object", explain_malformed(value) or "the value is not a JSON object")
    if may_be_deep(value) and levels_of(_in_double_quotes(value).decode()) > MOST_LEVELS:
        return Problem("malformed_json", explain_malformed(value) or "objects and arrays lie too deep within each other")
    with suppress(msgspec.DecodeError):
        return _members(value)
    with suppress(msgspec.DecodeError):
        return _members(_in_double_quotes(value))
    return Problem("malformed_json", explain_malformed(value) or "not one well-formed JSON value")


def _in_double_quotes(value: bytes) -> bytes:
    """Return an object whose texts stand in single quotes as JSON has them: Spark's reader takes these, too."""
    return _QUOTED.sub(_double_quoted, value) if b"'" in value else value


def _double_quoted(found: re.Match[bytes]) -> bytes:
    inside = found[1]
    if inside is None:
        return found[0]
    return b'"' + re.sub(rb"""\\(.)|(")""", lambda one: b"'" if one[1] == b"'" else b'\\"' if one[2] else one[0], inside) + b'"'


def _reader(kind: pa.DataType) -> Read:
    """Return the reader of values that are not null, of any type."""
    if pa.types.is_struct(kind):
        read = _struct_reader(kind.fields)
        return lambda raw: read(_members(_opened(raw, b"{")))
    if pa.types.is_map(kind):
        return _map_reader(kind)
    if pa.types.is_list(kind):
        return _list_reader(kind)
    return leaf_reader(kind)


def _opened(raw: bytes, bracket: bytes) -> bytes:
    if raw[:1] != bracket:
        raise MisfitError(f"{shown(raw)} is not an {'object' if bracket == b'{' else 'array'}")
    return raw


def _value(raw: msgspec.Raw, read: Read) -> Any:
    text = bytes(raw)
    return None if text == b"null" else read(text)


def _struct_reader(fields: list[pa.Field]) -> Any:
    readers = [(field.name, _reader(field.type)) for field in fields]

    def read(members: dict[str, msgspec.Raw]) -> dict[str, Any]:
        found, wrong = {}, MisfitError()
        for name, reader in readers:
            inside = members.get(name)
            if inside is None:
                continue
            try:
                found[name] = _value(inside, reader)
            except MisfitError as exc:
                wrong.add(field_step(name), exc)
        if wrong.found:
            raise wrong
        return found

    return read


def _list_reader(kind: pa.DataType) -> Read:
    reader = _reader(kind.value_type)

    def read(raw: bytes) -> list[Any]:
        found, wrong = [], MisfitError()
        for number, inside in enumerate(_elements(_opened(raw, b"["))):
            try:
                found.append(_value(inside, reader))
            except MisfitError as exc:
                wrong.add(f"[{number}]", exc)
                if wrong.is_enough:
                    break
        if wrong.found:
            raise wrong
        return found

    return read


def _map_reader(kind: pa.DataType) -> Read:
    reader = _reader(kind.item_type)

    def read(raw: bytes) -> list[tuple[str, Any]]:
        found, wrong = dict[str, Any](), MisfitError()
        for own, inside in _pairs(_opened(raw, b"{")).items():
            key = str(own)
            try:
                if key in found:
                    raise MisfitError("the map has this key twice")
                found[key] = _value(inside, reader)
            except MisfitError as exc:
                wrong.add(key_step(key), exc)
                if wrong.is_enough:
                    break
        if wrong.found:
            raise wrong
        return [*found.items()]

    return read
