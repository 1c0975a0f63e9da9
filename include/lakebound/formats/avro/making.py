"""What makers of columns share: the bytes, what was read of them, and what does not fit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakebound.formats.avro.tape import Numbers, Tape
from lakebound.formats.contract import Problem
from lakebound.formats.room import Room

ZEROS = 16
"""Bytes that have to lie behind the last record: more than one number takes."""
FEW = 200
"""Values that Python cuts out faster than Arrow."""
MOST_GATHERED = 64
"""Bytes of a text, in the mean, that are faster taken one by one than text by text."""
Bytes = npt.NDArray[np.uint8]
Words = npt.NDArray[np.uint64]
Chosen = npt.NDArray[np.bool_]


@dataclass
class Making:
    """Columns of records that were read.

    Attributes:
        raw: Bytes of all records, and zeros.
        tape: What was read.
        room: What the records may take; None: any.
        wrong: What is wrong with records, by their number; of several things the first one.
    """

    raw: bytes
    tape: Tape
    room: Room | None = None
    wrong: dict[int, Problem] = field(default_factory=dict)

    @cached_property
    def data(self) -> Bytes:
        """The bytes as numbers."""
        return np.frombuffer(self.raw, np.uint8)

    @cached_property
    def words(self) -> Words:
        """The eight bytes that begin at each byte, the first one the least."""
        return np.ndarray((len(self.raw) - 7,), "<u8", self.raw, strides=(1,))

    def note(self, bad: Chosen, owners: Numbers, path: str, told: Callable[[int], str], reason: str = "does_not_fit") -> None:
        """Note values that do not fit.

        Args:
            bad: Which they are.
            owners: The record of each value.
            path: Of the part that they are of.
            told: Says of a value, by its position, what is wrong with it.
            reason: Of the problem.
        """
        if not np.count_nonzero(bad):
            return
        for at in np.flatnonzero(bad).tolist():
            owner = int(owners[at])
            if owner not in self.wrong:
                self.wrong[owner] = Problem(reason, f"{path}: {told(at)}" if path else told(at))

    def take(self, owners: Numbers, sizes: Numbers) -> None:
        """Take bytes of the records of values.

        Raises:
            TooLargeError: Records have no more.
        """
        if self.room is not None:
            self.room.take(owners, sizes)

    def fixed(self, starts: Numbers, size: int) -> Bytes:
        """Return the bytes that begin at positions: as many rows, and size columns."""
        count = -(-size // 8)
        starts = np.minimum(starts, len(self.words) - 8 * count + 7)
        return np.stack([self.words[starts + 8 * at] for at in range(count)], axis=1).view(np.uint8)[:, :size]

    def few_texts(self, spans: Numbers) -> pa.Array:
        """Return the texts between positions, of which there are few.

        Raises:
            UnicodeDecodeError: One is not UTF-8.
        """
        first = spans[:, 0]
        lengths = spans[:, 1] - first
        offsets = np.zeros(len(spans) + 1, np.int64)
        np.cumsum(lengths, out=offsets[1:])
        if offsets[-1] < MOST_GATHERED * len(spans):
            found = self.data[np.arange(offsets[-1]) + np.repeat(first - offsets[:-1], lengths)]
            if not found.size or found.max() < 0x80:
                buffers = [None, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(found)]
                return pa.Array.from_buffers(pa.string(), len(spans), buffers)
        return pa.array([self.raw[first:last].decode() for first, last in spans.tolist()], pa.string())

    def binary(self, spans: Numbers) -> pa.Array:
        """Return the bytes between positions; no two spans share a byte."""
        if len(spans) < FEW:
            return pa.array([self.raw[first:last] for first, last in spans.tolist()], pa.binary())
        take = np.arange(0, spans.size, 2)
        offsets = spans.ravel()
        if (offsets[1:] < offsets[:-1]).any():
            order = np.argsort(spans[:, 0], kind="stable")
            offsets = spans[order].ravel()
            take[order] = take.copy()
        buffers = [None, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(self.raw)]
        # Every other value is what lies between two spans.
        return pa.Array.from_buffers(pa.binary(), len(offsets) - 1, buffers).take(pa.array(take))


def together(arrays: Sequence[pa.Array], places: Sequence[Numbers], count: int, kind: pa.DataType) -> pa.Array:
    """Return the values of arrays at their places; null where there is none."""
    order = np.full(count, -1)
    first = 0
    for array, own in zip(arrays, places, strict=True):
        order[own] = np.arange(first, first + len(array))
        first += len(array)
    if not first:
        return pa.nulls(count, kind)
    joined = arrays[0] if len(arrays) == 1 else pa.concat_arrays(arrays)
    return joined.take(pa.array(order, mask=order < 0))
