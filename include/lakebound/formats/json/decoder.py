"""Decodes JSON values: many at once where all is usual, each other one by itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from lakebound.formats import room
from lakebound.formats.contract import Decoded, Problem, Records
from lakebound.formats.json.columns import Wrong, column_of
from lakebound.formats.json.malformed import MOST_LEVELS
from lakebound.formats.json.record import CONNECT_KEYS, RecordReader, has_half_character, may_be_deep, may_have_half_character
from lakebound.formats.json.size import is_too_large, may_be_much, may_be_wide, widest_item
from lakebound.formats.json.types import is_nameable, object_decoder
from lakebound.formats.parts import Part, together

_PIECE = 500
"""Records: of 1,200 bytes they take 2 ms. Between pieces other threads get their turn; Python gives it to nobody within one."""
_REFUSED = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


class JsonDecoder:
    """Decodes the values of one schema."""

    def __init__(self, schema: pa.Schema, unhoused: Sequence[str] = (), *, unknown_refused: bool = False) -> None:
        """Decode nothing yet.

        Args:
            schema: Of the objects; a field that is not nullable is required.
            unhoused: Fields of the schema for which a table has no column: a record that has one has a problem.
            unknown_refused: Whether one that the schema does not have is a problem, too.
        """
        self._fields = [(field, attrgetter(f"f{index}")) for index, field in enumerate(schema)]
        self._kind = pa.struct(list(schema))
        self._widest = widest_item(self._kind)
        self._may_be_connects = CONNECT_KEYS.isdisjoint(schema.names)
        self._exact = RecordReader(schema, unhoused, unknown_refused=unknown_refused)
        self._fast: list[Callable[[bytes], Any]] = []
        if not unhoused and is_nameable(schema):
            for any_text in (False, True):
                self._fast.append(object_decoder(schema, unknown_refused=unknown_refused, any_text=any_text).decode)

    def decode(self, records: Records) -> Decoded:
        """Return what becomes of records.

        Raises:
            TooMuchAtOnceError: They may take too much together.
        """
        values = records.values
        if may_be_much(values, self._widest):
            raise room.TooMuchAtOnceError
        left = _unstrange(values, self._widest, may_be_connects=self._may_be_connects) if self._fast else ()
        parts: list[Part] = []
        for decode in self._fast:
            if left:
                part, left = self._decoded(values, left, decode)
                parts.append(part)
        if len(parts) == 1 and len(parts[0].places) == len(values):
            return Decoded(parts[0].columns, {}, len(values))
        problems: dict[int, Problem] = {}
        found: dict[int, dict[str, Any]] = {}
        for at in sorted({*range(len(values))}.difference(*(part.places for part in parts))):
            made = self._made(values[at])
            if isinstance(made, Problem):
                problems[at] = made
            else:
                found[at] = made
        if found or not parts:
            parts.append(self._exact_part(found))
        return Decoded(together(parts), problems, len(values))

    def _made(self, value: bytes | None) -> dict[str, Any] | Problem:
        made = self._exact.read(value)
        if value is None or isinstance(made, Problem) or not may_be_wide(value, self._widest):
            return made
        return room.problem_of(len(value)) if is_too_large(made, self._kind, len(value)) else made

    def _decoded(
        self, values: Sequence[bytes | None], places: Sequence[int], decode: Callable[[bytes], Any]
    ) -> tuple[Part, list[int]]:
        """Return what msgspec makes of some values, and the positions of those of which it makes nothing."""
        rows: list[Any] = []
        left: list[int] = []
        for first in range(0, len(places), _PIECE):
            piece = places[first : first + _PIECE]
            taken = values[piece.start : piece.stop] if isinstance(piece, range) else [values[at] for at in piece]
            try:
                rows += [*map(decode, taken)]  # type: ignore[arg-type]
            except _REFUSED:
                left += _one_by_one(values, piece, decode, rows)
        part, wrong = self._columns(rows, places if not left else sorted({*places}.difference(left)))
        return part, sorted([*left, *wrong])

    def _columns(self, rows: list[Any], places: Sequence[int]) -> tuple[Part, list[int]]:
        """Return the columns of decoded values, and the positions of those that are to be read otherwise."""
        wrong = Wrong()
        columns = {field.name: column_of(list(map(get, rows)), field.type, wrong) for field, get in self._fields}
        for field, _ in self._fields:
            if not field.nullable and columns[field.name].null_count:
                wrong |= {*np.flatnonzero(columns[field.name].is_null()).tolist()}
        if not wrong:
            return Part(columns, places), []
        kept = [at for at in range(len(rows)) if at not in wrong]
        taken = pa.array(kept, pa.int64())
        part = Part({name: column.take(taken) for name, column in columns.items()}, [places[at] for at in kept])
        return part, [places[at] for at in wrong]

    def _exact_part(self, found: Mapping[int, dict[str, Any]]) -> Part:
        rows = found.values()
        columns = {field.name: pa.array([row.get(field.name) for row in rows], field.type) for field, _ in self._fields}
        return Part(columns, [*found])


def _one_by_one(
    values: Sequence[bytes | None], places: Sequence[int], decode: Callable[[bytes], Any], rows: list[Any]
) -> list[int]:
    """Add what is made of values to the rows; return the positions of the others."""
    left = []
    for at in places:
        try:
            rows.append(decode(values[at]))  # type: ignore[arg-type]
        except _REFUSED:
            left.append(at)
    return left


def _unstrange(values: Sequence[bytes | None], widest: int, *, may_be_connects: bool) -> Sequence[int]:
    """Return the positions of values that have no problem that msgspec does not see.

    In what the schema does not name it looks neither at the encoding nor at halves of characters.

    Args:
        values: The values.
        widest: Bytes of the widest item of a list.
        may_be_connects: Whether one with the fields of Kafka Connect's JSON has a problem.
    """
    # All at once: a loop of Python takes half of the time of decoding.
    held = [value for value in values if value is not None] if None in values else values
    text = b"\n".join(held)  # type: ignore[arg-type]
    tests: list[Callable[[bytes], bool]] = []
    if not _is_utf8(text):
        tests.append(lambda value: not _is_utf8(value))
    if may_have_half_character(text):
        tests.append(has_half_character)
    if may_be_connects and _has_connect_keys(text):
        tests.append(_has_connect_keys)
    longest = max(map(len, held), default=0)  # type: ignore[arg-type]
    if longest > MOST_LEVELS:
        tests.append(may_be_deep)
    if longest * widest > room.LEAST_BYTES:
        tests.append(lambda value: may_be_wide(value, widest))
    if not tests and held is values:
        return range(len(values))
    return [at for at, value in enumerate(values) if value is not None and not any(test(value) for test in tests)]


def _has_connect_keys(text: bytes) -> bool:
    return b'"payload"' in text and b'"schema"' in text


def _is_utf8(text: bytes) -> bool:
    if text.isascii():
        return True
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True
