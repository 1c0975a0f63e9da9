"""Fields of many messages at once: which each has, and where their values lie. Pure.

Serialisers write fields by their numbers. So of all fields that come next the one with the lowest number is read, in all
messages that have it, and so on. Messages that are unusual, or few, are read one by one (``single``), which says what is wrong.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

import numpy as np

from lakebound.formats.protobuf.buffer import Buffer, Chosen, Numbers
from lakebound.formats.protobuf.shape import Shape
from lakebound.formats.protobuf.single import Piece, SingleReader, tags_at
from lakebound.formats.protobuf.walk import FIXED_SIZES, LENGTH, VARINT, BrokenError

_FEW = 24
"""Messages of which a field is read faster one by one."""
_DONE = 1 << 62
"""Tag of a message that has no more fields."""
_NONE = np.empty(0, np.int64)
_OF_FOUND = ("owners", "at", "values", "ends")
_MOST_ROUNDS = 500
"""Of reading a field in many messages; messages with more fields are then read one by one."""


@dataclass(frozen=True)
class Found:
    """Values of one field, by the messages that have them, in their order there.

    Attributes:
        owners: The message of each value.
        at: Where each begins.
        values: Numbers in 64 bits; where the value is no varint: its first position.
        ends: Behind each value.
    """

    owners: Numbers
    at: Numbers
    values: Numbers
    ends: Numbers

    def chosen(self, which: Chosen | Numbers) -> Found:
        """Return some of them."""
        return Found(self.owners[which], self.at[which], self.values[which], self.ends[which])

    @property
    def last(self) -> Found:
        """The last value of each message."""
        if len(self.owners) < 2:
            return self
        is_last = np.ones(len(self.owners), np.bool_)
        np.not_equal(self.owners[1:], self.owners[:-1], out=is_last[:-1])
        return self if is_last.all() else self.chosen(is_last)


@dataclass
class Fields:
    """What was read of messages.

    Attributes:
        pieces: Of each tag; the values of each piece are in the order of the messages.
        broken: What is wrong with messages, by their number.
    """

    pieces: dict[int, list[Piece]] = field(default_factory=dict)
    broken: dict[int, str] = field(default_factory=dict)

    def of(self, tag: int) -> Found:
        """Return the values with a tag."""
        pieces = self.pieces.get(tag)
        if not pieces:
            return Found(_NONE, _NONE, _NONE, _NONE)
        if len(pieces) == 1:
            return Found(*pieces[0])
        return ordered(Found(*map(np.concatenate, zip(*pieces, strict=True))))

    def settle(self, oneof: Collection[int]) -> None:
        """Keep of several fields the one that comes last in a message: a message has only one of them at a time.

        Args:
            oneof: Tags of the fields.
        """
        there = [tag for tag in oneof if tag in self.pieces]
        found = [self.of(tag) for tag in there]
        owners = np.concatenate([np.unique(one.owners) for one in found]) if len(found) > 1 else _NONE
        if len(np.unique(owners)) == len(owners):
            return
        every = ordered(Found(*(np.concatenate([getattr(one, name) for one in found]) for name in _OF_FOUND)))
        tags = np.repeat(there, [len(one.owners) for one in found])
        tags = tags[np.lexsort((np.concatenate([one.at for one in found]), np.concatenate([one.owners for one in found])))]
        # Behind the last value of another field; a message that comes again behind it begins anew.
        changes = np.flatnonzero((tags[1:] != tags[:-1]) & (every.owners[1:] == every.owners[:-1])) + 1
        first = np.zeros(int(every.owners.max()) + 1, np.int64)
        np.maximum.at(first, every.owners[changes], changes)
        kept = np.arange(len(tags)) >= first[every.owners]
        for tag in there:
            own = every.chosen(kept & (tags == tag))
            self.pieces.pop(tag)
            if len(own.owners):
                self.pieces[tag] = [(own.owners, own.at, own.values, own.ends)]


def ordered(found: Found) -> Found:
    """Return values in the order of their messages, and within each of their positions."""
    return found.chosen(np.lexsort((found.at, found.owners)))


@dataclass(frozen=True)
class Spans:
    """Where messages lie.

    Attributes:
        owners: Number of each, in order; a message that was written in parts has several spans.
        starts: Where each begins.
        ends: Where it ends.
    """

    owners: Numbers
    starts: Numbers
    ends: Numbers


def read_fields(buffer: Buffer, spans: Spans, shape: Shape) -> Fields:
    """Return the fields of messages.

    Args:
        buffer: The bytes.
        spans: Where the messages lie.
        shape: Which messages they are, and which fields are needed.
    """
    found = Fields()
    if not len(spans.owners):
        return found
    lanes = _Lanes(buffer, spans, found, shape.wanted)
    lanes.read()
    single = SingleReader(buffer, shape, found.pieces)
    for lane in sorted(lanes.left):
        owner = int(spans.owners[lane])
        try:
            single.read(owner, int(lanes.at[lane]), int(spans.ends[lane]))
        except BrokenError as exc:
            found.broken.setdefault(owner, str(exc))
    single.write_down()
    for oneof in shape.oneofs:
        found.settle(oneof)
    return found


class _Lanes:
    """Reads one field of many messages at a time.

    Attributes:
        at: Where the next field of each message begins.
        left: Messages that are to be read one by one from there on.
    """

    def __init__(self, buffer: Buffer, spans: Spans, found: Fields, wanted: Collection[int]) -> None:
        self._buffer, self._spans, self._found, self._wanted = buffer, spans, found, wanted
        self.at = spans.starts.copy()
        self.left: list[int] = []
        self._tags, self._behind = self._next(self.at, spans.ends)

    def read(self) -> None:
        for _ in range(_MOST_ROUNDS):
            tag = int(self._tags.min())
            if tag == _DONE:
                return
            same = self._tags == tag
            lanes = np.flatnonzero(same)
            kind = tag & 7
            if len(lanes) < _FEW or tag < 8 or kind not in (VARINT, LENGTH, *FIXED_SIZES):
                self._leave(lanes)
            else:
                self._field(tag, kind, lanes)
        self._leave(np.flatnonzero(self._tags != _DONE))

    def _field(self, tag: int, kind: int, lanes: Numbers) -> None:
        everywhere = len(lanes) == len(self._tags)
        owners, at, ends = self._spans.owners, self._behind, self._spans.ends
        if not everywhere:
            owners, at, ends = owners[lanes], at[lanes], ends[lanes]
        values, behind, endless = self._value(kind, at)
        wrong = (behind > ends) | (behind < at)
        if endless is not None:
            wrong |= endless
        if wrong.any():
            self._leave(lanes[wrong])
            right = ~wrong
            lanes, owners, at, ends = lanes[right], owners[right], at[right], ends[right]
            values, behind, everywhere = values[right], behind[right], False
        if tag in self._wanted:
            self._found.pieces.setdefault(tag, []).append((owners, at, values, behind))
        if everywhere:
            self.at = behind.copy()  # what was found keeps its own
            self._tags, self._behind = self._next(behind, ends)
        else:
            self.at[lanes] = behind
            self._tags[lanes], self._behind[lanes] = self._next(behind, ends)

    def _value(self, kind: int, at: Numbers) -> tuple[Numbers, Numbers, Chosen | None]:
        """Return values that begin at positions, where they end, and which of them have no end."""
        if kind == VARINT:
            return self._buffer.varints(at)
        if kind == LENGTH:
            sizes, starts, endless = self._buffer.varints(at)
            # A size that is beyond all bytes, or negative, leads before the value.
            sizes = np.where((sizes < 0) | (sizes > len(self._buffer.raw)), -(1 << 32), sizes)
            return starts, starts + sizes, endless
        return at, at + FIXED_SIZES[kind], None

    def _next(self, at: Numbers, ends: Numbers) -> tuple[Numbers, Numbers]:
        tags, behind = tags_at(self._buffer, at)
        tags[at >= ends] = _DONE
        return tags, behind

    def _leave(self, lanes: Numbers) -> None:
        self.left += lanes.tolist()
        self._tags[lanes] = _DONE
