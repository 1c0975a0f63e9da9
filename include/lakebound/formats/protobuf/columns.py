"""Fields of messages as columns: values, messages, lists and maps of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from lakebound.formats.protobuf.buffer import Numbers
from lakebound.formats.protobuf.fields import Found, Spans, ordered
from lakebound.formats.protobuf.leaves import Values
from lakebound.formats.protobuf.level import Level
from lakebound.formats.protobuf.shape import Shape
from lakebound.formats.protobuf.walk import FIXED_SIZES, VARINT
from lakebound.formats.room import PER_BYTE, value_bytes

Column = Callable[[Level], pa.Array]
"""Makes a column with one value for each message."""


def constant(value: Any, kind: pa.DataType) -> Column:
    """Return the column of a field that the writer does not have."""
    size = len(value) if isinstance(value, str) else 0

    def column(level: Level) -> pa.Array:
        if value is None:
            return pa.nulls(len(level), kind)
        _take_long(level, size)
        return pa.array([value] * len(level), kind)

    return column


def single(tag: int, kind: pa.DataType, values: Values, default: pa.Array | None) -> Column:
    """Return the column of a field with one value.

    Args:
        tag: Of the field.
        kind: Type of the column.
        values: Makes its values.
        default: What stands where it is not there, as the only value of an array; None: null.
    """
    size = 0 if default is None else int(default.nbytes)

    def column(level: Level) -> pa.Array:
        if tag not in level.fields.pieces and default is None:
            return pa.nulls(len(level), kind)
        found = level.fields.of(tag).last
        _take_long(level, size)
        return _placed(values(level, found), found.owners, len(level), default)

    return column


@dataclass(frozen=True)
class Messages:
    """Messages inside of messages.

    Attributes:
        kind: Type of their column.
        shape: What is read of them; None: nothing.
        body: Makes their values.
    """

    kind: pa.DataType
    shape: Shape | None
    body: Column

    def single(self, tag: int) -> Column:
        """Return the column of a field with one message; one that comes in parts is put together."""

        def column(level: Level) -> pa.Array:
            if tag not in level.fields.pieces:
                return pa.nulls(len(level), self.kind)
            found = level.fields.of(tag)
            owners, instances = _instances(found.owners)
            inside = self._read(level, level.records[owners], Spans(instances, found.values, found.ends))
            return _placed(self.body(inside), owners, len(level), None)

        return column

    def always(self, tag: int) -> Column:
        """Return the column of a field with one message that is empty where it is not there."""

        def column(level: Level) -> pa.Array:
            found = level.fields.of(tag)
            return self.body(self._read(level, level.records, Spans(found.owners, found.values, found.ends)))

        return column

    def values(self, level: Level, found: Found) -> pa.Array:
        """Make a value of each message that was found."""
        if not len(found.owners):
            return pa.array([], self.kind)
        spans = Spans(np.arange(len(found.owners)), found.values, found.ends)
        return self.body(self._read(level, level.records[found.owners], spans))

    def _read(self, level: Level, records: Numbers, spans: Spans) -> Level:
        return Level.read(level.batch, self.shape, records, spans)


def struct(columns: Sequence[Column], kind: pa.DataType) -> Column:
    """Return the column of messages that are structs."""
    return lambda level: pa.StructArray.from_arrays([column(level) for column in columns], fields=kind.fields)


def repeated(tag: int, kind: pa.DataType, values: Values, packed: tuple[int, str] | None = None) -> Column:
    """Return the column of a field with many values.

    Args:
        tag: Of the field.
        kind: Type of the column.
        values: Makes the values.
        packed: Tag of many numbers in one value, and the path for what is wrong with them; None: they are no numbers.
    """

    def column(level: Level) -> pa.Array:
        found = level.fields.of(tag)
        if packed is not None and packed[0] in level.fields.pieces:
            many = _unpacked(level, level.fields.of(packed[0]), tag & 7, packed[1])
            found = many if not len(found.owners) else _both(found, many)
        level.take(found.owners, value_bytes(kind.value_type))
        return pa.ListArray.from_arrays(_offsets(found.owners, len(level)), values(level, found), type=kind)

    return column


def mapped(tag: int, kind: pa.DataType, entries: Shape, keys: Column, items: Column) -> Column:
    """Return the column of a map; of a key that comes twice the last item counts."""

    def column(level: Level) -> pa.Array:
        found = level.fields.of(tag)
        level.take(found.owners, value_bytes(kind.key_type) + value_bytes(kind.item_type))
        spans = Spans(np.arange(len(found.owners)), found.values, found.ends)
        inside = Level.read(level.batch, entries, level.records[found.owners], spans)
        made, owners = [keys(inside), items(inside)], found.owners
        kept = _last_of_each(owners, made[0])
        if kept is not None:
            made, owners = [one.take(pa.array(kept)) for one in made], owners[kept]
        return pa.MapArray.from_arrays(_offsets(owners, len(level)), *made, type=kind)

    return column


def _take_long(level: Level, size: int) -> None:
    """Take room for a text that messages have without its being in them."""
    if size > PER_BYTE:
        level.take(np.arange(len(level)), size)


def _placed(made: pa.Array, owners: Numbers, count: int, default: pa.Array | None) -> pa.Array:
    """Return values at the places of their messages."""
    if len(owners) == count:
        return made
    order = np.full(count, -1)
    order[owners] = np.arange(len(owners))
    absent = order < 0
    if default is None:
        return made.take(pa.array(order, mask=absent))
    return pa.concat_arrays([made, default]).take(pa.array(np.where(absent, len(owners), order)))


def _instances(owners: Numbers) -> tuple[Numbers, Numbers]:
    """Return each owner once, and of each value the position of its owner among them; the owners are in order."""
    is_first = np.ones(len(owners), np.bool_)
    is_first[1:] = owners[1:] != owners[:-1]
    return owners[is_first], np.cumsum(is_first) - 1


def _offsets(owners: Numbers, count: int) -> pa.Array:
    offsets = np.zeros(count + 1, np.int32)
    np.cumsum(np.bincount(owners, minlength=count), out=offsets[1:])
    return pa.array(offsets)


def _last_of_each(owners: Numbers, keys: pa.Array) -> Numbers | None:
    """Return which entries count, where a map has a key twice; None where none has."""
    codes = keys.dictionary_encode()
    both = owners * len(codes.dictionary) + codes.indices.to_numpy(zero_copy_only=False)
    found, last = np.unique(both[::-1], return_index=True)
    return None if len(found) == len(both) else np.sort(len(both) - 1 - last)


def _both(one: Found, other: Found) -> Found:
    pairs = ((one.owners, other.owners), (one.at, other.at), (one.values, other.values), (one.ends, other.ends))
    return ordered(Found(*map(np.concatenate, pairs)))


def _unpacked(level: Level, found: Found, kind: int, path: str) -> Found:
    """Return the numbers in values that hold many."""
    data, sizes = level.batch.buffer.data, found.ends - found.values
    if kind != VARINT:
        size = FIXED_SIZES[kind]
        counts = sizes // size
        _note_packed(level, sizes % size != 0, found, path)
        at = np.repeat(found.values, counts) + size * _within(counts)
        return Found(np.repeat(found.owners, counts), at, at, at + size)
    positions = np.repeat(found.values, sizes) + _within(sizes)
    last = data[positions] < 0x80
    value = np.repeat(np.arange(len(sizes)), sizes)
    is_first = np.ones(len(positions), np.bool_)
    is_first[1:] = last[:-1] | (value[1:] != value[:-1])
    at = positions[is_first]
    numbers, ends, endless = level.batch.buffer.varints(at)
    owner = value[is_first]
    bad = ends > found.ends[owner]
    if endless is not None:
        bad |= endless
    wrong = np.zeros(len(sizes), np.bool_)
    wrong[owner[bad]] = True
    _note_packed(level, wrong, found, path)
    return Found(found.owners[owner], at, numbers, ends)


def _note_packed(level: Level, wrong: Any, found: Found, path: str) -> None:
    for at in np.flatnonzero(wrong).tolist():
        level.note_malformed(int(found.owners[at]), f"{path}: a number breaks off, or is too long")


def _within(counts: Numbers) -> Numbers:
    """Return 0, 1, ... for each of some counts, one after the other."""
    ends = np.cumsum(counts)
    return np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - counts, counts)
