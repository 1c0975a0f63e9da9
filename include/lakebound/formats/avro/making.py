"""What makers of columns share: the bytes, what was read of them, and what does not fit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakebound.formats.avro.tape import Numbers, Tape
from lakebound.formats.contract import Problem

Bytes = npt.NDArray[np.uint8]
Chosen = npt.NDArray[np.bool_]


@dataclass
class Making:
    """Columns of records that were read.

    Attributes:
        data: Bytes of all records, and zeros.
        tape: What was read.
        wrong: What is wrong with records, by their number; of several things the first one.
    """

    data: Bytes
    tape: Tape
    wrong: dict[int, Problem] = field(default_factory=dict)

    def note(self, bad: Chosen, owners: Numbers, path: str, told: Callable[[int], str], reason: str = "does_not_fit") -> None:
        """Note values that do not fit.

        Args:
            bad: Which they are.
            owners: The record of each value.
            path: Of the part that they are of.
            told: Says of a value, by its position, what is wrong with it.
            reason: Of the problem.
        """
        for at in np.flatnonzero(bad).tolist():
            owner = int(owners[at])
            if owner not in self.wrong:
                self.wrong[owner] = Problem(reason, f"{path}: {told(at)}" if path else told(at))

    def fixed(self, starts: Numbers, size: int) -> Bytes:
        """Return the bytes that begin at positions: as many rows, and size columns."""
        return self.data[np.minimum(starts, len(self.data) - size)[:, None] + np.arange(size)]

    def binary(self, spans: Numbers) -> pa.Array:
        """Return the bytes between positions; no two spans share a byte."""
        take = np.arange(0, spans.size, 2)
        offsets = spans.ravel()
        if not len(spans):
            return pa.array([], pa.binary())
        if (offsets[1:] < offsets[:-1]).any():
            order = np.argsort(spans[:, 0], kind="stable")
            offsets = spans[order].ravel()
            take[order] = take.copy()
        buffers = [None, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(self.data)]
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
