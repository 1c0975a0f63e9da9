"""Values that have none inside, as columns, many at once. What does not fit is noted, and a zero stands there. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa
from google.protobuf.descriptor import EnumDescriptor, FieldDescriptor

from lakebound.formats.contract import Problem

NOT_UTF8 = "not_utf8"
"""Reason of a record with a text that is not UTF-8."""
DOES_NOT_FIT = "does_not_fit"
"""Reason of a record with a value that its column cannot hold."""

Wrong = dict[int, Problem]
"""What is wrong with values, by their position."""
Make = Callable[[Sequence[Any], Wrong], pa.Array]
"""Makes a column of values, some of which may be None; notes what does not fit."""

_F = FieldDescriptor
_BITS = {
    _F.TYPE_INT32: 31,
    _F.TYPE_SINT32: 31,
    _F.TYPE_SFIXED32: 31,
    _F.TYPE_ENUM: 31,
    _F.TYPE_UINT32: 32,
    _F.TYPE_FIXED32: 32,
    _F.TYPE_INT64: 63,
    _F.TYPE_SINT64: 63,
    _F.TYPE_SFIXED64: 63,
    _F.TYPE_UINT64: 64,
    _F.TYPE_FIXED64: 64,
}
"""Of whole numbers, without the sign."""
_INTEGERS = {pa.int8(): ("TINYINT", 7), pa.int16(): ("SMALLINT", 15), pa.int32(): ("INT", 31), pa.int64(): ("BIGINT", 63)}
_TEXTS = (_F.TYPE_STRING, _F.TYPE_BYTES)


def leaf(field: FieldDescriptor, kind: pa.DataType, path: str) -> Make | None:
    """Return what makes a column of a field's values; None where the column cannot hold what the field says.

    Texts are bytes, and enums numbers (``lakebound.formats.protobuf.layout``).

    Args:
        field: The field, whose values are no messages.
        kind: Type of the column.
        path: Names that lead to the field, for messages.
    """
    if field.type in _TEXTS and kind in (pa.string(), pa.binary()):
        return _plain(kind) if kind == pa.binary() else lambda values, wrong: _texts(values, path, wrong)
    if field.type == _F.TYPE_ENUM and kind == pa.string():
        names = EnumNames(field.enum_type)
        return lambda values, _: pa.array([*map(names.__getitem__, values)], pa.string())
    if field.type in _BITS:
        return _integers(_BITS[field.type], kind, path)
    usual = {_F.TYPE_BOOL: (pa.bool_(),), _F.TYPE_FLOAT: (pa.float32(), pa.float64()), _F.TYPE_DOUBLE: (pa.float64(),)}
    return _plain(kind) if kind in usual.get(field.type, ()) else None


class EnumNames(dict[int | None, str | None]):
    """Names of an enum's numbers; a number without a name is its own."""

    def __init__(self, enum: EnumDescriptor) -> None:
        """Take the first name of each number."""
        super().__init__({None: None, **{one.number: one.name for one in reversed(enum.values)}})

    def __missing__(self, number: int) -> str:
        """Return the name of a number that has none."""
        return str(number)


def _plain(kind: pa.DataType) -> Make:
    return lambda values, _: pa.array(values, kind)


def _texts(values: Sequence[Any], path: str, wrong: Wrong) -> pa.Array:
    found = pa.array(values, pa.binary())
    try:
        return found.cast(pa.string())
    except pa.ArrowInvalid:
        kept = list(values)
    for at, value in enumerate(kept):
        if value is not None and not _is_utf8(value):
            wrong[at] = Problem(NOT_UTF8, f"{path}: the text is not UTF-8")
            kept[at] = b""
    return pa.array(kept, pa.binary()).cast(pa.string())


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def _integers(bits: int, kind: pa.DataType, path: str) -> Make | None:
    if pa.types.is_decimal(kind):
        digits = len(str(1 << bits))
        return _plain(kind) if kind.precision - kind.scale >= digits else None
    if kind not in _INTEGERS:
        return None
    name, held = _INTEGERS[kind]
    if bits <= held:
        return _plain(kind)
    return lambda values, wrong: _narrowed(values, kind, f"{path}: {{}} is beyond {name}", 1 << held, wrong)


def _narrowed(values: Sequence[Any], kind: pa.DataType, told: str, bound: int, wrong: Wrong) -> pa.Array:
    try:
        return pa.array(values, kind)
    except (pa.ArrowInvalid, OverflowError):
        kept = list(values)
    for at, value in enumerate(kept):
        if value is not None and not -bound <= value < bound:
            wrong[at] = Problem(DOES_NOT_FIT, told.format(value))
            kept[at] = 0
    return pa.array(kept, kind)


def default_of(field: FieldDescriptor, kind: pa.DataType) -> Any:
    """Return the value that a field without presence has where it is not there: zero, or no elements.

    Args:
        field: The field.
        kind: Type of the column.
    """
    if field.is_repeated:
        return []
    if field.type == _F.TYPE_ENUM:
        return EnumNames(field.enum_type)[0] if kind == pa.string() else 0
    defaults: Mapping[int, Any] = {_F.TYPE_STRING: "", _F.TYPE_BYTES: b"", _F.TYPE_BOOL: False}
    return defaults.get(field.type, 0)
