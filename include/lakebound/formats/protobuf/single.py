"""Fields of one message: one after the other, and of a long message many at once.

Of a long message it is looked up for each position which field would begin there and where the next one would, as if each were
the start of a field. Then the fields that there are lie on a way through this table.
"""

from __future__ import annotations

import numpy as np

from lakebound.formats.protobuf.buffer import Buffer, Numbers
from lakebound.formats.protobuf.shape import Shape
from lakebound.formats.protobuf.walk import FIXED_SIZES, LENGTH, VARINT, field_at

Piece = tuple[Numbers, Numbers, Numbers, Numbers]
"""Of values with one tag: their messages, positions, numbers (where they are no varints: first positions), and ends."""
_Table = tuple[Numbers, Numbers, Numbers, Numbers]
_FIRST = 200
"""Fields of a message that are read one after the other."""
_TABLE_BYTES = 1 << 16


def tags_at(buffer: Buffer, at: Numbers) -> tuple[Numbers, Numbers]:
    """Return the tags at positions, and where they end; zero for one of more than two bytes."""
    first = buffer.data[at]
    tags, behind = first.astype(np.int64), at + 1
    more = first >= 0x80
    if more.any():
        second = buffer.data[behind].astype(np.int64)
        tags = np.where(more, np.where(second < 0x80, tags & 0x7F | second << 7, 0), tags)
        behind += more
    return tags, behind


class SingleReader:
    """Reads messages one by one."""

    def __init__(self, buffer: Buffer, shape: Shape, pieces: dict[int, list[Piece]]) -> None:
        """Read nothing yet.

        Args:
            buffer: The bytes.
            shape: Which messages they are.
            pieces: Gets what is needed, by tags.
        """
        self._buffer, self._shape, self._pieces = buffer, shape, pieces
        self._rows: dict[int, list[tuple[int, int, int, int]]] = {}

    def read(self, owner: int, at: int, end: int) -> None:
        """Read the fields of a message.

        Args:
            owner: Its number.
            at: Where its next field begins.
            end: Where it ends.

        Raises:
            BrokenError: The bytes are no message.
        """
        for _ in range(_FIRST):
            if at >= end:
                return
            at = self._read_field(owner, at, end)
        while at < end:
            at = self._read_many(owner, at, end)

    def write_down(self) -> None:
        """Add what was read field by field to the pieces."""
        for tag, rows in self._rows.items():
            owners, at, values, ends = zip(*rows, strict=True)
            signed = np.array(values, np.uint64).view(np.int64)
            self._pieces.setdefault(tag, []).append((np.array(owners), np.array(at), signed, np.array(ends)))

    def _read_field(self, owner: int, at: int, end: int) -> int:
        tag, start, value, last, behind = field_at(self._buffer, at, end, self._shape)
        if tag in self._shape.wanted:
            self._rows.setdefault(tag, []).append((owner, start, value, last))
        return behind

    def _read_many(self, owner: int, at: int, end: int) -> int:
        """Read the fields that begin in the next bytes; return where the one behind them begins."""
        first, last = at, min(end, at + _TABLE_BYTES)
        hops, table = self._table(first, last, end)
        way = []
        while at < last:
            behind = hops[at - first]
            if behind:
                way.append(at - first)
                at = behind
            else:
                at = self._read_field(owner, at, end)
        tags, *columns = (column[way] for column in table)
        for tag in np.unique(tags).tolist():
            if tag in self._shape.wanted:
                own = tags == tag
                starts, values, ends = (column[own] for column in columns)
                self._pieces.setdefault(tag, []).append((np.full(len(starts), owner), starts, values, ends))
        return at

    def _table(self, first: int, last: int, end: int) -> tuple[list[int], _Table]:
        """Return what would be at each position, if a field began there.

        Returns:
            Where the next field would begin, zero where this one is not as usual; and tags, positions, values and ends.
        """
        tags, at = tags_at(self._buffer, np.arange(first, last))
        numbers, stops, endless = self._buffer.varints(at)
        kinds = tags & 7
        is_varint, is_sized = kinds == VARINT, kinds == LENGTH
        ends = stops + np.where(is_sized, np.where((numbers < 0) | (numbers > end), end, numbers), 0)
        usual = is_varint | is_sized
        if endless is not None:
            usual &= ~endless
        for kind, size in FIXED_SIZES.items():
            is_fixed = kinds == kind
            ends = np.where(is_fixed, at + size, ends)
            usual |= is_fixed
        usual &= (tags >= 8) & (ends <= end)
        values = np.where(is_varint, numbers, np.where(is_sized, stops, at))
        return np.where(usual, ends, 0).tolist(), (tags, at, values, ends)
