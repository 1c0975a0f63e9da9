"""Values that have none inside, as columns, many at once. What does not fit is noted, and a zero stands there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from google.protobuf.descriptor import EnumDescriptor, FieldDescriptor

from lakebound.formats.protobuf.buffer import Buffer, Numbers
from lakebound.formats.protobuf.fields import Found
from lakebound.formats.protobuf.level import Level
from lakebound.formats.protobuf.walk import FIXED32, FIXED64, LENGTH, VARINT
from lakebound.formats.room import PER_BYTE

NOT_UTF8 = "not_utf8"
"""Reason of a record with a text that is not UTF-8."""

Values = Callable[[Level, Found], pa.Array]
"""Makes a column of values that were found, as many as there are."""
_Read = Callable[[Buffer, Numbers], npt.NDArray[Any]]

_F = FieldDescriptor
_LOW = 0xFFFFFFFF
_WHOLE: Mapping[pa.DataType, tuple[str, Any]] = {
    pa.int8(): ("TINYINT", np.int8),
    pa.int16(): ("SMALLINT", np.int16),
    pa.int32(): ("INT", np.int32),
    pa.int64(): ("BIGINT", np.int64),
}
_BOUNDS = {np.dtype(kind): np.iinfo(kind) for kind in (np.int8, np.int16, np.int32, np.int64, np.uint32, np.uint64)}
_TEXTS = (_F.TYPE_STRING, _F.TYPE_BYTES)
_DIGITS = {
    _F.CPPTYPE_ENUM: 10,
    _F.CPPTYPE_INT32: 10,
    _F.CPPTYPE_UINT32: 10,
    _F.CPPTYPE_INT64: 19,
    _F.CPPTYPE_UINT64: 20,
}
"""That the largest number has."""
_MOST_IN_TABLE = 4096
"""Numbers of an enum of which a table is made."""


def _zigzag(values: Numbers) -> Numbers:
    found: Numbers = (values.view(np.uint64) >> np.uint64(1)).view(np.int64) ^ -(values & 1)
    return found


def _low(buffer: Buffer, values: Numbers) -> npt.NDArray[np.uint32]:
    return buffer.words[values].astype(np.uint32)


_NUMBERS: Mapping[int, tuple[int, _Read]] = {
    _F.TYPE_BOOL: (VARINT, lambda _, values: values != 0),
    _F.TYPE_ENUM: (VARINT, lambda _, values: values.astype(np.int32)),
    _F.TYPE_INT32: (VARINT, lambda _, values: values.astype(np.int32)),
    _F.TYPE_INT64: (VARINT, lambda _, values: values),
    _F.TYPE_UINT32: (VARINT, lambda _, values: values.astype(np.uint32)),
    _F.TYPE_UINT64: (VARINT, lambda _, values: values.view(np.uint64)),
    _F.TYPE_SINT32: (VARINT, lambda _, values: _zigzag(values & _LOW).astype(np.int32)),
    _F.TYPE_SINT64: (VARINT, lambda _, values: _zigzag(values)),
    _F.TYPE_FIXED32: (FIXED32, _low),
    _F.TYPE_SFIXED32: (FIXED32, lambda buffer, values: _low(buffer, values).view(np.int32)),
    _F.TYPE_FLOAT: (FIXED32, lambda buffer, values: _low(buffer, values).view(np.float32)),
    _F.TYPE_FIXED64: (FIXED64, lambda buffer, values: buffer.words[values]),
    _F.TYPE_SFIXED64: (FIXED64, lambda buffer, values: buffer.words[values].view(np.int64)),
    _F.TYPE_DOUBLE: (FIXED64, lambda buffer, values: buffer.words[values].view(np.float64)),
}
"""How numbers are written, and what they are: of the value of a varint, or of its position."""


def wire_kind(field: FieldDescriptor) -> int:
    """Return how the values of a field are written that are no messages."""
    return LENGTH if field.type in _TEXTS else _NUMBERS[field.type][0]


def numbers(field: FieldDescriptor) -> Callable[[Level, Found], npt.NDArray[Any]]:
    """Return what reads numbers of a field."""
    read = _NUMBERS[field.type][1]
    return lambda level, found: read(level.batch.buffer, found.values)


def leaf(field: FieldDescriptor, kind: pa.DataType, path: str) -> Values | None:
    """Return what makes a column of a field's values; None where the column cannot hold what the field says.

    Args:
        field: The field, whose values are no messages.
        kind: Type of the column.
        path: Names that lead to the field, for messages.
    """
    if field.type in _TEXTS:
        return _bytes if kind == pa.binary() else _texts(path) if kind == pa.string() else None
    read = numbers(field)
    if field.type == _F.TYPE_ENUM and kind == pa.string():
        return _names(EnumNames(field.enum_type), read)
    if field.type == _F.TYPE_BOOL:
        return _plain(read) if kind == pa.bool_() else None
    if field.type in (_F.TYPE_FLOAT, _F.TYPE_DOUBLE):
        holds = {pa.float64(): np.float64} | ({pa.float32(): np.float32} if field.type == _F.TYPE_FLOAT else {})
        return _as(read, holds[kind]) if kind in holds else None
    if pa.types.is_decimal(kind):
        return _decimals(read, kind) if kind.precision - kind.scale >= _DIGITS[field.cpp_type] else None
    return _whole(read, kind, path) if kind in _WHOLE else None


class EnumNames(dict[int, str]):
    """Names of an enum's numbers; a number without a name is its own."""

    def __init__(self, enum: EnumDescriptor) -> None:
        """Take the first name of each number."""
        super().__init__({one.number: one.name for one in reversed(enum.values)})

    def __missing__(self, number: int) -> str:
        """Return the name of a number that has none."""
        return str(number)


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


def _bytes(level: Level, found: Found) -> pa.Array:
    return level.batch.buffer.binary(found.values, found.ends)


def _texts(path: str) -> Values:
    def make(level: Level, found: Found) -> pa.Array:
        raw = _bytes(level, found)
        try:
            return raw.cast(pa.string())
        except pa.ArrowInvalid:
            values = raw.to_pylist()
        bad = np.array([not _is_utf8(value) for value in values], np.bool_)
        level.note(bad, found.owners, lambda _: f"{path}: the text is not UTF-8", NOT_UTF8)
        kept = [b"" if wrong else value for value, wrong in zip(values, bad, strict=True)]
        return pa.array(kept, pa.binary()).cast(pa.string())

    return make


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def _plain(read: Callable[[Level, Found], npt.NDArray[Any]]) -> Values:
    return lambda level, found: pa.array(read(level, found))


def _as(read: Callable[[Level, Found], npt.NDArray[Any]], kind: Any) -> Values:
    return lambda level, found: pa.array(read(level, found).astype(kind, copy=False))


def _names(names: EnumNames, read: Callable[[Level, Found], npt.NDArray[Any]]) -> Values:
    is_long = any(len(name) > PER_BYTE for name in names.values())  # a shorter one is within what its own bytes may take

    def make(level: Level, found: Found) -> pa.Array:
        values = read(level, found)
        if is_long:
            some, places = np.unique(values, return_inverse=True)
            level.take(found.owners, np.array([len(names[number]) for number in some.tolist()], np.int64)[places])
        if len(values) and 0 <= values.min() and values.max() < _MOST_IN_TABLE:
            return pa.array([names[number] for number in range(int(values.max()) + 1)]).take(pa.array(values))
        some, places = np.unique(values, return_inverse=True)
        return pa.array([names[number] for number in some.tolist()], pa.string()).take(pa.array(places))

    return make


def _decimals(read: Callable[[Level, Found], npt.NDArray[Any]], kind: pa.DataType) -> Values:
    def make(level: Level, found: Found) -> pa.Array:
        values = read(level, found)
        if values.dtype != np.uint64 or kind.scale:
            return pa.array(values).cast(kind)
        halves = np.zeros((len(values), 2), np.uint64)  # of 128 bits, the lower one first
        halves[:, 0] = values
        return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(halves)])

    return make


def _whole(read: Callable[[Level, Found], npt.NDArray[Any]], kind: pa.DataType, path: str) -> Values:
    name, held = _WHOLE[kind]
    bounds = _BOUNDS[np.dtype(held)]

    def make(level: Level, found: Found) -> pa.Array:
        values = read(level, found)
        given = _BOUNDS[values.dtype]
        if given.min < bounds.min or given.max > bounds.max:
            first, last = max(bounds.min, given.min), min(bounds.max, given.max)
            bad = (values < values.dtype.type(first)) | (values > values.dtype.type(last))
            if bad.any():
                level.note(bad, found.owners, lambda at: f"{path}: {values[at]} is beyond {name}")
                values = np.where(bad, values.dtype.type(0), values)
        return pa.array(values.astype(held, copy=False))

    return make
