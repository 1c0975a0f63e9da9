"""Bytes of many records one after the other, and the numbers that lie in them. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Numbers = npt.NDArray[np.int64]
Chosen = npt.NDArray[np.bool_]

_BEHIND = bytes(32)
"""What lies behind the last record, so that a word can be read from each position."""
_MOST_BYTES = 10
_U = np.uint64
_STOPS, _SEVENS = _U(0x8080808080808080), _U(0x7F7F7F7F7F7F7F7F)
_FIRST_STOP, _FIRST_SEVEN = _U(0x80), _U(0x7F)
_JOINED = (
    (_U(0x007F007F007F007F), _U(0x7F007F007F007F00), _U(1)),
    (_U(0x00003FFF00003FFF), _U(0x3FFF00003FFF0000), _U(2)),
    (_U(0x000000000FFFFFFF), _U(0x0FFFFFFF00000000), _U(4)),
)
"""Which bits stay, which are moved, and by how many, so that groups of seven bits lie together."""


@dataclass(frozen=True)
class Buffer:
    """Bytes of many records.

    Attributes:
        raw: The bytes, and zeros behind them.
    """

    raw: bytes

    @classmethod
    def of(cls, payloads: Iterable[bytes]) -> Buffer:
        """Return the bytes of payloads, one after the other."""
        return cls(b"".join((*payloads, _BEHIND)))

    @cached_property
    def data(self) -> npt.NDArray[np.uint8]:
        """The bytes as numbers."""
        return np.frombuffer(self.raw, np.uint8)

    @cached_property
    def words(self) -> npt.NDArray[np.uint64]:
        """The eight bytes that begin at each position, the lowest first."""
        return np.ndarray((len(self.raw) - 7,), "<u8", self.raw, 0, (1,))

    def varints(self, at: Numbers) -> tuple[Numbers, Numbers, Chosen | None]:
        """Return the numbers of 64 bits that begin at positions, where they end, and which have no end; None: all have one."""
        words = self.words[at]
        if not (words & _FIRST_STOP).any():
            return (words & _FIRST_SEVEN).view(np.int64), at + 1, None
        stops = ~words & _STOPS
        stop = stops & (~stops + _U(1))
        sizes = (np.bitwise_count(stop - _U(1)) >> 3).astype(np.int64) + 1
        found = words & (stop | (stop - _U(1))) & _SEVENS
        for stay, move, by in _JOINED:
            found = (found & stay) | ((found & move) >> by)
        long = np.flatnonzero(stops == 0)
        if not len(long):
            return found.view(np.int64), at + sizes, None
        # Of nine or ten bytes, as negative numbers have them.
        more = self.words[at[long] + 8]
        ninth, tenth = more & _U(0xFF), more >> _U(8) & _U(0xFF)
        has_tenth = ninth >= _FIRST_STOP
        found[long] |= (ninth & _FIRST_SEVEN) << _U(56) | np.where(has_tenth, (tenth & _U(1)) << _U(63), _U(0))
        sizes[long] = np.where(has_tenth, _MOST_BYTES, _MOST_BYTES - 1)
        endless = np.zeros(len(at), np.bool_)
        endless[long] = has_tenth & (tenth >= _FIRST_STOP)
        return found.view(np.int64), at + sizes, endless if endless.any() else None

    def varint(self, at: int, end: int) -> tuple[int, int] | None:
        """Return the number that begins at a position, and where it ends; None where it has no end before ``end``."""
        if at < end and self.raw[at] < 0x80:
            return self.raw[at], at + 1
        found = 0
        for place, byte in enumerate(self.raw[at : min(end, at + _MOST_BYTES)]):
            found |= (byte & 0x7F) << 7 * place
            if byte < 0x80:
                return found & 0xFFFFFFFFFFFFFFFF, at + place + 1
        return None

    def binary(self, starts: Numbers, ends: Numbers) -> pa.Array:
        """Return the bytes between positions; no two values share one."""
        count = len(starts)
        if not count:
            return pa.array([], pa.binary())
        offsets = np.empty(2 * count, np.int32)
        taken = np.arange(0, 2 * count, 2)
        order = None if (starts[1:] >= ends[:-1]).all() else np.argsort(starts, kind="stable")
        if order is not None:
            starts, ends = starts[order], ends[order]
            taken[order] = taken.copy()
        offsets[0::2], offsets[1::2] = starts, ends
        # Every other value is what lies between two of them.
        between = pa.Array.from_buffers(pa.binary(), 2 * count - 1, [None, pa.py_buffer(offsets), pa.py_buffer(self.raw)])
        return between.take(pa.array(taken))
