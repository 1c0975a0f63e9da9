"""Many values of a simple type one after the other, as long lists have them. Pure."""

from __future__ import annotations

import numpy as np

from lakebound.formats.avro.shape import ChoicePart, FixedPart, NumberPart, Part
from lakebound.formats.avro.tape import Numbers

LEAST_ITEMS = 24
"""For fewer it does not pay."""
MOST_ITEMS = 1 << 16
"""At once: it takes 50 bytes for each."""
_MOST_BYTES = 10
"""Of a number."""


def is_run(part: Part) -> bool:
    """Whether many values of a part can be read at once."""
    return isinstance(part, NumberPart | FixedPart) or (isinstance(part, ChoicePart) and part.is_byte)


def read_run(part: Part, data: bytes, at: int, end: int, items: int) -> tuple[Numbers, int] | None:
    """Return what many values give on the tape, and the position behind them; None where one of them is wrong.

    Args:
        part: Of each; ``is_run``.
        data: The bytes.
        at: Where they begin.
        end: Of the record; there are enough bytes up to it for the least that the values take.
        items: Their number.
    """
    if isinstance(part, FixedPart):
        return at + np.arange(items, dtype=np.int64) * part.size, at + items * part.size
    if isinstance(part, ChoicePart):
        found = np.frombuffer(data, np.uint8, items, at)
        return (found.astype(np.int64), at + items) if items and found.max() < part.choices else None
    return _numbers(part, np.frombuffer(data, np.uint8, min(end - at, items * _MOST_BYTES), at), at, items)


def _numbers(part: Part, raw: np.ndarray[tuple[int], np.dtype[np.uint8]], at: int, items: int) -> tuple[Numbers, int] | None:
    last = np.flatnonzero(raw < 0x80)[:items]
    if len(last) < items:
        return None
    first = np.concatenate([[0], last[:-1] + 1])
    lengths = last - first + 1
    if lengths.max() > _MOST_BYTES or (raw[last[lengths == _MOST_BYTES]] > 1).any():
        return None
    found = (raw[first] & 0x7F).astype(np.uint64)
    for place in range(1, int(lengths.max())):
        longer = np.flatnonzero(lengths > place)
        found[longer] |= (raw[first[longer] + place] & 0x7F).astype(np.uint64) << np.uint64(7 * place)
    numbers = (found >> np.uint64(1)).view(np.int64) ^ -(found & np.uint64(1)).view(np.int64)
    if isinstance(part, NumberPart) and part.bits == 32 and (numbers != numbers.astype(np.int32)).any():
        return None
    return numbers, at + int(last[-1]) + 1
