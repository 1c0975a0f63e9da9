"""What becomes of the parts of a record: columns, and columns inside of columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakebound.formats.avro.making import Making, together
from lakebound.formats.avro.numbers import Convert
from lakebound.formats.avro.tape import Numbers
from lakebound.formats.avro.texts import texts
from lakebound.formats.avro.types import inside
from lakebound.formats.room import VALUE_BYTES, value_bytes


class Maker(Protocol):
    """Makes the values of a column, or of a part of one."""

    def make(self, making: Making, owners: Numbers) -> pa.Array:
        """Return as many values as there are owners, and note those that do not fit.

        Args:
            making: What was read.
            owners: The record that each value is of.
        """

    @property
    def size(self) -> int:
        """Bytes that a value takes, beside those that lie in the record."""


@dataclass(frozen=True)
class Leaf:
    """Values with nothing inside."""

    slot: int
    path: str
    convert: Convert

    def make(self, making: Making, owners: Numbers) -> pa.Array:
        """Return the values."""
        return self.convert(making, making.tape.values(self.slot), owners, self.path)

    @property
    def size(self) -> int:
        """Bytes that a value takes."""
        return VALUE_BYTES


@dataclass(frozen=True)
class Nulls:
    """Values that are not there."""

    kind: pa.DataType

    def make(self, making: Making, owners: Numbers) -> pa.Array:
        """Return the values."""
        return pa.nulls(len(owners), self.kind)

    @property
    def size(self) -> int:
        """Bytes that a value takes."""
        return value_bytes(self.kind)


@dataclass(frozen=True)
class Same:
    """A value that is the same in all records: of an array, the only one."""

    value: pa.Array

    def make(self, making: Making, owners: Numbers) -> pa.Array:
        """Return the values."""
        return self.value.take(pa.array(np.zeros(len(owners), np.int64)))

    @property
    def size(self) -> int:
        """Bytes that a value takes."""
        return int(self.value.nbytes)


@dataclass(frozen=True)
class Refused:
    """Values that the column does not take."""

    kind: pa.DataType
    path: str
    told: str

    def make(self, making: Making, owners: Numbers) -> pa.Array:
        """Return nulls."""
        making.note(np.ones(len(owners), np.bool_), owners, self.path, lambda _: self.told)
        return pa.nulls(len(owners), self.kind)

    @property
    def size(self) -> int:
        """Bytes that a value takes."""
        return value_bytes(self.kind)


@dataclass(frozen=True)
class Struct:
    """Fields, each with its maker; one that is not nullable has to be there."""

    fields: Sequence[tuple[pa.Field, Maker]]
    path: str

    def make(self, making: Making, owners: Numbers) -> pa.Array:
        """Return the values."""
        return pa.StructArray.from_arrays(self.arrays(making, owners), fields=[field for field, _ in self.fields])

    def arrays(self, making: Making, owners: Numbers) -> list[pa.Array]:
        """Return the values of each field."""
        found = []
        for field, maker in self.fields:
            array = maker.make(making, owners)
            if array.null_count and not field.nullable:
                missing = array.is_null().to_numpy(zero_copy_only=False)
                making.note(missing, owners, inside(self.path, field.name), lambda _: "required but null", "missing_field")
            found.append(array)
        return found

    @cached_property
    def size(self) -> int:
        """Bytes that a value takes."""
        return VALUE_BYTES + sum(maker.size for _, maker in self.fields)


@dataclass(frozen=True)
class Member:
    """A struct of which one field is there: the type of a union that a value has."""

    kind: pa.StructType
    name: str
    maker: Maker

    def make(self, making: Making, owners: Numbers) -> pa.Array:
        """Return the values."""
        found = self.maker.make(making, owners)
        fields = [found if field.name == self.name else pa.nulls(len(owners), field.type) for field in self.kind]
        return pa.StructArray.from_arrays(fields, fields=list(self.kind))

    @cached_property
    def size(self) -> int:
        """Bytes that a value takes."""
        return value_bytes(self.kind) + self.maker.size


@dataclass(frozen=True)
class Branches:
    """A union as it was written: of each of its types a maker."""

    slot: int
    kind: pa.DataType
    makers: Sequence[Maker]

    def make(self, making: Making, owners: Numbers) -> pa.Array:
        """Return the values."""
        chosen = making.tape.values(self.slot)
        arrays, places = [], []
        for number, maker in enumerate(self.makers):
            own = np.flatnonzero(chosen == number)
            if isinstance(maker, Nulls) or not own.size:
                continue
            array = maker.make(making, owners[own])
            if own.size == chosen.size:
                return array
            arrays.append(array)
            places.append(own)
        return together(arrays, places, len(owners), self.kind)

    @cached_property
    def size(self) -> int:
        """Bytes that a value takes: also a null has all of its fields."""
        return max([value_bytes(self.kind), *(maker.size for maker in self.makers)])


@dataclass(frozen=True)
class Lists:
    """Arrays and maps.

    Attributes:
        slot: Of their counts.
        kind: A list, or a map.
        path: Dotted.
        item: Of each value.
        key_slot: Of the keys of a map.
    """

    slot: int
    kind: pa.DataType
    path: str
    item: Maker
    key_slot: int | None = None

    def make(self, making: Making, owners: Numbers) -> pa.Array:
        """Return the values."""
        counts = making.tape.values(self.slot)
        making.take(owners, counts * self.item.size)
        order = making.tape.item_order(self.slot)
        sorted_owners = np.repeat(owners, counts)
        read_owners = sorted_owners if order is None else _undone(sorted_owners, order)
        items = self.item.make(making, read_owners)
        keys = None if self.key_slot is None else texts(making, making.tape.values(self.key_slot), read_owners, self.path)
        if order is not None:
            items = items.take(pa.array(order))
            keys = None if keys is None else keys.take(pa.array(order))
        offsets = pa.array(np.concatenate([[0], np.cumsum(counts)]).astype(np.int32))
        if keys is None:
            return pa.ListArray.from_arrays(offsets, items, type=self.kind)
        self._note_doubles(making, keys, counts, sorted_owners)
        return pa.MapArray.from_arrays(offsets, keys, items, type=self.kind)

    @property
    def size(self) -> int:
        """Bytes that a list takes; its items are counted where there are any."""
        return VALUE_BYTES

    def _note_doubles(self, making: Making, keys: pa.Array, counts: Numbers, owners: Numbers) -> None:
        """A map has each key once: who reads it gets one of its values, and nobody says which."""
        codes = pc.dictionary_encode(keys).indices.to_numpy().astype(np.int64)
        pairs = np.repeat(np.arange(len(counts)), counts) * (len(codes) + 1) + codes
        order = np.argsort(pairs, kind="stable")
        doubles = np.zeros(len(pairs), np.bool_)
        doubles[order[1:]] = pairs[order[1:]] == pairs[order[:-1]]
        making.note(doubles, owners, self.path, lambda at: f"the map has the key {keys[at].as_py()[:60]!r} twice")


def _undone(values: Numbers, order: Numbers) -> Numbers:
    """Return values in the order in which they were read."""
    found = np.empty_like(values)
    found[order] = values
    return found
