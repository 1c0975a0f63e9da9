"""Reads one record exactly, and says what is wrong with the bytes of one that cannot be read.

It takes any number of bytes as its number, and any way to cut a list into blocks; where a block says how many bytes it has, it
has as many. A count is believed only as far as there are bytes for its items: none of it costs more than the record is long.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lakebound.formats.avro.shape import (
    ChoicePart,
    FixedPart,
    NullPart,
    NumberPart,
    Part,
    RecordPart,
    RepeatedPart,
    SpanPart,
    UnionPart,
)
from lakebound.formats.avro.tape import Tape

_MOST_SHIFT = 63
Found = dict[int, list[int]]
Read = Callable[[bytes, int, int, Found], int]
"""Reads a part from a position up to the end of its record, adds what it finds, and returns the position behind it."""


class MalformedError(ValueError):
    """The bytes are not as the schema says: the path of the part, and what is wrong with it."""

    def __init__(self, path: str, told: str) -> None:
        super().__init__(f"{path}: {told}" if path else told)


class SingleReader:
    """Reads records of one schema, each by itself."""

    def __init__(self, part: Part, wanted: frozenset[int]) -> None:
        """Read nothing yet.

        Args:
            part: What is read.
            wanted: Slots of what is written down.
        """
        self._wanted = wanted
        self._read = _reader(part, wanted)

    def read(self, data: bytes, at: int, end: int, found: Found) -> None:
        """Read a record, and add what is found, by slot.

        Raises:
            MalformedError: It is not as the schema says, or does not end where it should.
        """
        own: Found = {slot: [] for slot in self._wanted}
        stop = self._read(data, at, end, own)
        if stop != end:
            raise MalformedError("", f"{_bytes(end - stop)} behind the record: was it written with another schema?")
        for slot, values in own.items():
            found.setdefault(slot, []).extend(values)


def write_down(found: Found, tape: Tape, lists: frozenset[int]) -> None:
    """Add what was found in records to a tape.

    Args:
        found: By slot.
        tape: Gets it.
        lists: Slots of lists.
    """
    for slot, values in found.items():
        if slot in lists:
            tape.add_items(slot, np.array(values, np.int64))
        else:
            tape.add(slot, np.array(values, np.int64))


def _reader(part: Part, wanted: frozenset[int]) -> Read:
    return _READERS[type(part)](part, wanted)


def _number(data: bytes, at: int, end: int, path: str) -> tuple[int, int]:
    found = shift = 0
    while at < end:
        byte = data[at]
        at += 1
        found |= (byte & 0x7F) << shift
        if byte < 0x80:
            if shift == _MOST_SHIFT and byte > 1:
                break
            return (found >> 1) ^ -(found & 1), at
        if shift == _MOST_SHIFT:
            break
        shift += 7
    else:
        raise MalformedError(path, "the record ends within a number" if shift else "the record ends before it")
    raise MalformedError(path, "a number has more than 64 bits")


def _null(part: NullPart, wanted: frozenset[int]) -> Read:
    return lambda data, at, end, found: at


def _numbers(part: NumberPart, wanted: frozenset[int]) -> Read:
    path, slot, keep, most = part.path, part.slot, part.slot in wanted, 1 << part.bits - 1

    def read(data: bytes, at: int, end: int, found: Found) -> int:
        value, at = _number(data, at, end, path)
        if not -most <= value < most:
            raise MalformedError(path, f"{value} is beyond an int")
        if keep:
            found[slot].append(value)
        return at

    return read


def _choices(part: ChoicePart, wanted: frozenset[int]) -> Read:
    path, slot, keep, choices, is_byte = part.path, part.slot, part.slot in wanted, part.choices, part.is_byte

    def read(data: bytes, at: int, end: int, found: Found) -> int:
        if is_byte and at < end:
            value, at = data[at], at + 1
        else:
            value, at = _number(data, at, end, path)
        if not 0 <= value < choices:
            what = f"the byte {value:02x} is no boolean" if is_byte else f"there is no symbol {value}: the enum has {choices}"
            raise MalformedError(path, what)
        if keep:
            found[slot].append(value)
        return at

    return read


def _fixed(part: FixedPart, wanted: frozenset[int]) -> Read:
    path, slot, keep, size = part.path, part.slot, part.slot in wanted, part.size

    def read(data: bytes, at: int, end: int, found: Found) -> int:
        if end - at < size:
            raise MalformedError(path, f"it takes {_bytes(size)}, and the record has {end - at} more")
        if keep:
            found[slot].append(at)
        return at + size

    return read


def _spans(part: SpanPart, wanted: frozenset[int]) -> Read:
    path, slot, keep = part.path, part.slot, part.slot in wanted

    def read(data: bytes, at: int, end: int, found: Found) -> int:
        length, at = _number(data, at, end, path)
        if not 0 <= length <= end - at:
            raise MalformedError(path, f"it claims {_bytes(length)}, and the record has {end - at} more")
        if keep:
            found[slot] += (at, at + length)
        return at + length

    return read


def _record(part: RecordPart, wanted: frozenset[int]) -> Read:
    readers = [_reader(one, wanted) for one in part.fields]

    def read(data: bytes, at: int, end: int, found: Found) -> int:
        for one in readers:
            at = one(data, at, end, found)
        return at

    return read


def _union(part: UnionPart, wanted: frozenset[int]) -> Read:
    path, slot, keep = part.path, part.slot, part.slot in wanted
    readers = [_reader(one, wanted) for one in part.branches]

    def read(data: bytes, at: int, end: int, found: Found) -> int:
        number, at = _number(data, at, end, path)
        if not 0 <= number < len(readers):
            raise MalformedError(path, f"there is no branch {number}: the union has {len(readers)}")
        if keep:
            found[slot].append(number)
        return readers[number](data, at, end, found)

    return read


def _repeated(part: RepeatedPart, wanted: frozenset[int]) -> Read:
    path, slot, keep = part.path, part.slot, part.slot in wanted
    readers = [_reader(one, wanted) for one in (part.key, part.item) if one is not None]

    def read(data: bytes, at: int, end: int, found: Found) -> int:
        total = 0
        while True:
            items, stop, at = _block(part, data, at, end)
            if items == 0:
                break
            total += items
            for _ in range(items if part.least_bytes else 0):
                for one in readers:
                    at = one(data, at, end, found)
            if stop is not None and at != stop:
                raise MalformedError(path, f"a block claims to end {_bytes(stop - at)} after where it does")
        if keep:
            found[slot].append(total)
        return at

    return read


def _block(part: RepeatedPart, data: bytes, at: int, end: int) -> tuple[int, int | None, int]:
    """Return how many items a block has, where it claims to end, and where they begin."""
    items, at = _number(data, at, end, part.path)
    stop = None
    if items < 0:
        items = -items
        size, at = _number(data, at, end, part.path)
        if not 0 <= size <= end - at:
            raise MalformedError(part.path, f"a block claims {_bytes(size)}, and the record has {end - at} more")
        stop = at + size
    if items * part.least_bytes > end - at:
        raise MalformedError(part.path, f"it claims {items:,} items, and the record has {_bytes(end - at)} more")
    return items, stop, at


def _bytes(number: int) -> str:
    return f"{number:,} byte" + ("" if number == 1 else "s")


_READERS: dict[type[Part], Callable[[Any, frozenset[int]], Read]] = {
    NullPart: _null,
    NumberPart: _numbers,
    ChoicePart: _choices,
    FixedPart: _fixed,
    SpanPart: _spans,
    RecordPart: _record,
    UnionPart: _union,
    RepeatedPart: _repeated,
}
"""Of each kind of part."""
