"""Reads one record exactly, and says what is wrong with the bytes of one that cannot be read.

It takes any number of bytes as its number, and any way to cut a list into blocks; where a block says how many bytes it has, it
has as many. A count is believed only as far as there are bytes for its items: none of it costs more than the record is long.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Any

import numpy as np

from lakebound.formats.avro.bytes_read import MalformedError, block_at, bytes_told, number_at
from lakebound.formats.avro.runs import LEAST_ITEMS, MOST_ITEMS, is_run, read_run
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

_INTEGERS = "q"
Found = dict[int, "array[int]"]
Read = Callable[[bytes, int, int, Found], int]
"""Reads a part from a position up to the end of its record, adds what it finds, and returns the position behind it."""


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
        own: Found = {slot: array(_INTEGERS) for slot in self._wanted}
        stop = self._read(data, at, end, own)
        if stop != end:
            raise MalformedError("", f"{bytes_told(end - stop)} behind the record: was it written with another schema?")
        for slot, values in own.items():
            if slot in found:
                found[slot].extend(values)
            else:
                found[slot] = values


def write_down(found: Found, tape: Tape, lists: frozenset[int]) -> None:
    """Add what was found in records to a tape.

    Args:
        found: By slot.
        tape: Gets it.
        lists: Slots of lists.
    """
    for slot, values in found.items():
        numbers = np.frombuffer(values, np.int64)
        if slot in lists:
            tape.add_items(slot, numbers)
        else:
            tape.add(slot, numbers)


def _reader(part: Part, wanted: frozenset[int]) -> Read:
    return _READERS[type(part)](part, wanted)


def _null(part: NullPart, wanted: frozenset[int]) -> Read:
    return lambda data, at, end, found: at


def _numbers(part: NumberPart, wanted: frozenset[int]) -> Read:
    path, slot, keep, most = part.path, part.slot, part.slot in wanted, 1 << part.bits - 1

    def read(data: bytes, at: int, end: int, found: Found) -> int:
        value, at = number_at(data, at, end, path)
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
            value, at = number_at(data, at, end, path)
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
            raise MalformedError(path, f"it takes {bytes_told(size)}, and the record has {end - at} more")
        if keep:
            found[slot].append(at)
        return at + size

    return read


def _spans(part: SpanPart, wanted: frozenset[int]) -> Read:
    path, slot, keep = part.path, part.slot, part.slot in wanted

    def read(data: bytes, at: int, end: int, found: Found) -> int:
        length, at = number_at(data, at, end, path)
        if not 0 <= length <= end - at:
            raise MalformedError(path, f"it claims {bytes_told(length)}, and the record has {end - at} more")
        if keep:
            found[slot].extend((at, at + length))
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
        number, at = number_at(data, at, end, path)
        if not 0 <= number < len(readers):
            raise MalformedError(path, f"there is no branch {number}: the union has {len(readers)}")
        if keep:
            found[slot].append(number)
        return readers[number](data, at, end, found)

    return read


def _repeated(part: RepeatedPart, wanted: frozenset[int]) -> Read:
    path, slot, keep = part.path, part.slot, part.slot in wanted
    read_items = _items(part, wanted)

    def read(data: bytes, at: int, end: int, found: Found) -> int:
        total = 0
        while True:
            items, stop, at = block_at(part, data, at, end)
            if items == 0:
                break
            total += items
            at = read_items(data, at, end, found, items)
            if stop is not None and at != stop:
                raise MalformedError(path, f"a block claims to end {bytes_told(stop - at)} after where it does")
        if keep:
            found[slot].append(total)
        return at

    return read


def _items(part: RepeatedPart, wanted: frozenset[int]) -> Callable[[bytes, int, int, Found, int], int]:
    """Return what reads so many items."""
    readers = [_reader(one, wanted) for one in (part.key, part.item) if one is not None]
    item, keep = part.item, part.item.slot in wanted

    def one_by_one(data: bytes, at: int, end: int, found: Found, items: int) -> int:
        for _ in range(items if part.least_bytes else 0):
            for one in readers:
                at = one(data, at, end, found)
        return at

    def at_once(data: bytes, at: int, end: int, found: Found, items: int) -> int:
        while items >= LEAST_ITEMS and (run := read_run(item, data, at, end, min(items, MOST_ITEMS))) is not None:
            if keep:
                found[item.slot].frombytes(run[0].tobytes())
            at, items = run[1], items - len(run[0])
        return one_by_one(data, at, end, found, items)

    return at_once if part.key is None and is_run(item) else one_by_one


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
