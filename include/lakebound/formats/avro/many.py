"""Reads many records at once: each part of the schema in all of them, before the next part.

A record that is not as usual is left, and read by itself (``lakebound.formats.avro.single``). Until the others are through it
stands at the zeros behind the last record, which are a value of every part.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from lakebound.formats.avro.making import ZEROS, Bytes, Chosen, Words
from lakebound.formats.avro.runs import is_run
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
from lakebound.formats.avro.tape import Numbers, Tape

_FEW = 12
"""Records of which it is not worth while to read an item at once."""
_LONG_ITEMS, _LONG_PER_RECORD = 64, 4
"""Items of a list that are read faster by record than by item: more than the first number, and per record that is read at once
more than the second one. Measured with lists of numbers."""
_USUAL_ITEMS = 4
"""Of a list, that are read at once even in few records."""
_HIGH_BITS = np.uint64(0x8080808080808080)
"""Of eight bytes; a byte without it is a number's last."""
_TOGETHER = tuple(
    (np.uint64(keep), shift) for keep, shift in ((0x007F007F007F007F, 1), (0x00003FFF00003FFF, 2), (0x0FFFFFFF, 4))
)
"""Seven bits of each of eight bytes become 14 of each of four, and so on: which stay, and how far the others move."""


class Lanes:
    """Where records are read, and end.

    Attributes:
        data: Bytes of all records, and zeros.
        words: The eight bytes that begin at each of them.
        at: Of each record.
        end: Of each record; ``sink`` for one that is left.
        sink: Behind the last record.
    """

    __slots__ = ("at", "data", "end", "sink", "words")

    def __init__(self, data: Bytes, words: Words, at: Numbers, end: Numbers) -> None:
        self.data, self.words, self.at, self.end, self.sink = data, words, at, end, len(data) - ZEROS

    def some(self, chosen: Numbers) -> Lanes:
        """Return a copy of some of them."""
        return Lanes(self.data, self.words, self.at[chosen], self.end[chosen])

    def put(self, chosen: Numbers, some: Lanes) -> None:
        """Go on where a copy of some of them is."""
        self.at[chosen], self.end[chosen] = some.at, some.end

    def leave(self, which: Chosen) -> bool:
        """Leave records; return whether there is one."""
        if not np.count_nonzero(which):  # less than half the time of any()
            return False
        self.at[which] = self.end[which] = self.sink
        return True

    def leave_ended(self) -> None:
        """Leave records that were read beyond their end."""
        self.leave(self.at > self.end)


def read_many(part: Part, lanes: Lanes, tape: Tape) -> Chosen:
    """Read records, and write down what is found.

    Returns:
        Which of the records were read; what is on the tape of the others is anything.
    """
    _read(part, lanes, tape)
    return np.asarray((lanes.at == lanes.end) & (lanes.end != lanes.sink))


def _read(part: Part, lanes: Lanes, tape: Tape) -> None:
    _READERS[type(part)](part, lanes, tape)


def _number(lanes: Lanes) -> Numbers:
    at = lanes.at
    found = lanes.data[at].astype(np.uint64)
    at += 1
    more = np.flatnonzero(found > 0x7F)
    if more.size == found.size:
        found = _longer(lanes, more)
    elif more.size:
        found[more] = _longer(lanes, more)
    lanes.leave_ended()
    return (found >> np.uint64(1)).view(np.int64) ^ -(found & np.uint64(1)).view(np.int64)


def _longer(lanes: Lanes, chosen: Numbers) -> npt.NDArray[np.uint64]:
    """Return numbers of more than one byte, of which the first one is read: seven bits of each byte, the least first."""
    first = lanes.at[chosen]
    raw = lanes.words[first - 1]
    last = ~raw & _HIGH_BITS
    last &= -last
    below = last - np.uint64(1)
    lanes.at[chosen] = first + (np.bitwise_count(below >> np.uint64(1)) >> 3)
    raw &= below & ~_HIGH_BITS
    for keep, shift in _TOGETHER:
        raw = (raw & keep) | ((raw & (keep << np.uint64(8 * shift))) >> np.uint64(shift))
    endless = np.flatnonzero(last == 0)
    if endless.size:
        raw[endless] = _longest(lanes, chosen[endless], raw[endless])
    return raw


def _longest(lanes: Lanes, chosen: Numbers, found: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Return numbers of more than eight bytes, of which these are read."""
    byte = lanes.data[lanes.at[chosen]].astype(np.uint64)
    lanes.at[chosen] += 1
    found |= (byte & np.uint64(0x7F)) << np.uint64(56)
    more = np.flatnonzero(byte > 0x7F)
    if more.size:
        chosen = chosen[more]
        byte = lanes.data[lanes.at[chosen]].astype(np.uint64)
        lanes.at[chosen] += 1
        found[more] |= byte << np.uint64(63)
        lanes.leave(_among(chosen[byte > 1], len(lanes.at)))
    return found


def _among(chosen: Numbers, number: int) -> Chosen:
    found = np.zeros(number, np.bool_)
    found[chosen] = True
    return found


def _null(part: NullPart, lanes: Lanes, tape: Tape) -> None:
    pass


def _numbers(part: NumberPart, lanes: Lanes, tape: Tape) -> None:
    found = _number(lanes)
    if part.bits == 32:
        lanes.leave(found != found.astype(np.int32))
    tape.add(part.slot, found)


def _choices(part: ChoicePart, lanes: Lanes, tape: Tape) -> None:
    if part.is_byte:
        found = lanes.data[lanes.at].astype(np.int64)
        lanes.at += 1
        lanes.leave_ended()
    else:
        found = _number(lanes)
    if lanes.leave((found < 0) | (found >= part.choices)):
        found[lanes.end == lanes.sink] = 0
    tape.add(part.slot, found)


def _fixed(part: FixedPart, lanes: Lanes, tape: Tape) -> None:
    lanes.leave(lanes.end - lanes.at < part.size)
    first = lanes.at.copy()
    lanes.at += np.where(lanes.end == lanes.sink, 0, part.size)
    tape.add(part.slot, first)


def _spans(part: SpanPart, lanes: Lanes, tape: Tape) -> None:
    length = _number(lanes)
    if lanes.leave((length < 0) | (length > lanes.end - lanes.at)):
        length[lanes.end == lanes.sink] = 0
    found = np.empty((len(length), 2), np.int64)
    found[:, 0] = lanes.at
    lanes.at += length
    found[:, 1] = lanes.at
    tape.add(part.slot, found.ravel())


def _record(part: RecordPart, lanes: Lanes, tape: Tape) -> None:
    for one in part.fields:
        _read(one, lanes, tape)


def _union(part: UnionPart, lanes: Lanes, tape: Tape) -> None:
    found = _number(lanes)
    if lanes.leave((found < 0) | (found >= len(part.branches))):
        found[lanes.end == lanes.sink] = 0
    tape.add(part.slot, found)
    for number, branch in enumerate(part.branches):
        if isinstance(branch, NullPart):
            continue
        chosen = np.flatnonzero(found == number)
        if chosen.size == found.size:
            _read(branch, lanes, tape)
        elif chosen.size:
            some = lanes.some(chosen)
            _read(branch, some, tape)
            lanes.put(chosen, some)


def _repeated(part: RepeatedPart, lanes: Lanes, tape: Tape) -> None:
    """Read an item of each list, then the next one of each that has more."""
    counts, left = np.zeros((2, len(lanes.at)), np.int64)
    open_lanes, owners, rounds = np.arange(len(lanes.at)), [], 0
    while open_lanes.size:
        begun = open_lanes[left[open_lanes] == 0]
        if begun.size:
            left[begun] = _block_sizes(part, lanes, begun)
            _leave_long(part, lanes, begun, counts, left, open_lanes.size)
            open_lanes = open_lanes[left[open_lanes] > 0]
        if not open_lanes.size:
            break
        if rounds >= _USUAL_ITEMS and open_lanes.size < _FEW:
            lanes.leave(_among(open_lanes, len(counts)))
            break
        some = lanes.some(open_lanes)
        if part.key is not None:
            _spans(part.key, some, tape)
        _read(part.item, some, tape)
        lanes.put(open_lanes, some)
        owners.append(open_lanes)
        counts[open_lanes] += 1
        left[open_lanes] = np.where(some.end == some.sink, 0, left[open_lanes] - 1)
        rounds += 1
    tape.add_items(part.slot, counts, np.argsort(np.concatenate(owners), kind="stable") if owners else None)


def _block_sizes(part: RepeatedPart, lanes: Lanes, begun: Numbers) -> Numbers:
    """Return how many items follow; a count that is not as usual leaves its record."""
    some = lanes.some(begun)
    found = _number(some)
    room = some.end - some.at
    most = room // part.least_bytes if part.least_bytes else np.zeros_like(room)
    if some.leave((found < 0) | (found > most)):
        found[some.end == some.sink] = 0
    lanes.put(begun, some)
    return found


def _leave_long(part: RepeatedPart, lanes: Lanes, begun: Numbers, counts: Numbers, left: Numbers, lists: int) -> None:
    """Leave records with long lists of numbers: by themselves they are read at once.

    Args:
        part: The lists.
        lanes: Of all records.
        begun: Records of which a block begins.
        counts: Items of each record that are read.
        left: Items of each record that the block has; none of those that are left.
        lists: Number of lists that are read at once.
    """
    if part.key is not None or not is_run(part.item):
        return
    long = begun[counts[begun] + left[begun] > max(_LONG_ITEMS, _LONG_PER_RECORD * lists)]
    if long.size:
        lanes.leave(_among(long, len(counts)))
        left[long] = 0


_READERS: dict[type[Part], Callable[[Any, Lanes, Tape], None]] = {
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
