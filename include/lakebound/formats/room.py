"""How much memory the columns of one record may take: few bytes must not become many values, or long texts many times. Pure.

What a record takes depends on its bytes and on the schemas alone, never on the records beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakebound.formats.contract import Decoded, Problem

LEAST_BYTES = 32 << 20
"""That each record may take."""
PER_BYTE = 100
"""Bytes that a longer record may take for each of its own."""
_PIECE_RECORDS = 4096
"""Of 80 bytes each: what is read of them stays in the processor's cache."""
_PIECE_BYTES = 16 << 20
MOST_AT_ONCE_BYTES = 1 << 30
"""That the columns of all records may take that are decoded at once."""
VALUE_BYTES = 8
"""That a value takes, or one that is missing; bytes of texts lie in the record."""
Numbers = npt.NDArray[np.int64]
Made = TypeVar("Made")
_TOLD = "what the record becomes would take more than {:,} bytes; a record may take {} for each of its own bytes"


class TooMuchAtOnceError(Exception):
    """Records would take too much together, and nothing is wrong with any of them: fewer are to be decoded at once."""


class TooLargeError(Exception):
    """Records would take too much; their positions."""

    def __init__(self, records: Collection[int]) -> None:
        self.records = frozenset(records)
        super().__init__(f"records take too much: {sorted(self.records)[:10]}")


class Room:
    """What records may take, and what their columns took so far."""

    def __init__(self, lengths: Numbers) -> None:
        """Nothing is taken yet.

        Args:
            lengths: Bytes of each record.
        """
        self._lengths = lengths
        self._pending: list[tuple[Numbers, Numbers | int]] = []
        self._total = 0
        self._taken = np.zeros(0, np.int64)

    def take(self, owners: Numbers, sizes: Numbers | int) -> None:
        """Take bytes of records before they are taken of the machine.

        Args:
            owners: Positions of records; one may come several times.
            sizes: What is taken of each, or of all of them.

        Raises:
            TooLargeError: Records have no more.
            TooMuchAtOnceError: All of them together have no more.
        """
        self._total += sizes * len(owners) if isinstance(sizes, int) else int(sizes.sum())
        self._pending.append((owners, sizes))
        if self._total <= min(LEAST_BYTES, MOST_AT_ONCE_BYTES):  # so has each record
            return
        if not self._taken.size:
            self._taken = np.zeros(len(self._lengths), np.int64)
        for some, own in self._pending:
            np.add.at(self._taken, some, own)
        self._pending.clear()
        above = np.flatnonzero(self._taken > most_bytes(self._lengths))
        if above.size:
            raise TooLargeError(above.tolist())
        if self._total > MOST_AT_ONCE_BYTES and len(self._lengths) > 1:
            raise TooMuchAtOnceError


def most_bytes(lengths: Numbers) -> Numbers:
    """Return what records of so many bytes may take."""
    return np.maximum(PER_BYTE * lengths, LEAST_BYTES)


def value_bytes(kind: pa.DataType) -> int:
    """Return what a value of a type takes, whatever it is: items of lists and bytes of texts come on top."""
    if pa.types.is_struct(kind):
        return VALUE_BYTES + sum(value_bytes(field.type) for field in kind.fields)
    return VALUE_BYTES


def problem_of(length: int) -> Problem:
    """Return what is wrong with a record of so many bytes that would take too much."""
    return Problem("does_not_fit", _TOLD.format(max(PER_BYTE * length, LEAST_BYTES), PER_BYTE))


def decoded_in_room(payloads: Sequence[bytes], decode: Callable[[Sequence[bytes]], Decoded], columns: pa.Schema) -> Decoded:
    """Return what becomes of payloads; those that take too much, or that Arrow cannot hold, are problems, and only those.

    Args:
        payloads: Of records.
        decode: Decodes them; raises where there is one too large.
        columns: What it makes.

    Raises:
        MemoryError: The machine has too little memory for one record, which is no fault of the record.
        TooMuchAtOnceError: They take too much together.
    """
    try:
        return decode(payloads)
    except TooLargeError as exc:
        if len(payloads) == 1:
            return Decoded(nothing(columns).columns, {0: problem_of(len(payloads[0]))}, 1)
        # Each of them by itself, so that its problem is the same whatever lies beside it.
        cuts = sorted({0, len(payloads), *exc.records, *(at + 1 for at in exc.records)})
        some = [payloads[first:last] for first, last in pairwise(cuts)]
        return joined([decoded_in_room(one, decode, columns) for one in some], columns)
    except (pa.ArrowInvalid, pa.ArrowCapacityError, MemoryError) as exc:
        if len(payloads) > 1:
            middle = len(payloads) // 2
            halves = [decoded_in_room(some, decode, columns) for some in (payloads[:middle], payloads[middle:])]
            return joined(halves, columns)
        if isinstance(exc, MemoryError) or not payloads:
            raise
        return Decoded(nothing(columns).columns, {0: Problem("does_not_fit", f"Arrow cannot hold the record: {exc}")}, 1)


def in_parts(count: int, decode: Callable[[range], Made]) -> Iterator[Made]:
    """Yield what is made of records, in their order: of all at once, or of halves where that would take too much.

    Args:
        count: Of the records.
        decode: Makes it of those at some places.
    """
    waiting = [range(count)]
    while waiting:
        places = waiting.pop()
        try:
            made = decode(places)
        except TooMuchAtOnceError:
            middle = (places.start + places.stop) // 2
            waiting += [range(middle, places.stop), range(places.start, middle)]
            continue
        yield made


def decoded_in_pieces(payloads: Sequence[bytes], decode: Callable[[Sequence[bytes]], Decoded], columns: pa.Schema) -> Decoded:
    """Return what becomes of payloads, of so many at a time that what is read of them stays in the processor's cache.

    Args:
        payloads: Of records.
        decode: As for ``decoded_in_room``.
        columns: What it makes.

    Raises:
        MemoryError: As of ``decoded_in_room``.
        TooMuchAtOnceError: They take too much together.
    """
    lengths = np.fromiter(map(len, payloads), np.int64, len(payloads))
    return joined((decoded_in_room(payloads[one], decode, columns) for one in _pieces(lengths)), columns)


def _pieces(lengths: Numbers) -> Iterator[slice]:
    """Yield which payloads are decoded together: number and bytes are bounded; a longer one is a piece of its own."""
    ends = np.cumsum(lengths)
    first = before = 0
    while first < len(ends):
        last = min(first + _PIECE_RECORDS, int(np.searchsorted(ends, before + _PIECE_BYTES, side="right")))
        last = max(last, first + 1)
        yield slice(first, last)
        first, before = last, int(ends[last - 1])


def joined(decoded: Iterable[Decoded], columns: pa.Schema) -> Decoded:
    """Return what became of records in pieces as one.

    Raises:
        TooMuchAtOnceError: It takes too much.
    """
    pieces: list[Decoded] = []
    size = 0
    for one in decoded:
        pieces.append(one)
        size += sum(column.nbytes for column in one.columns.values())
        if size > MOST_AT_ONCE_BYTES and len(pieces) > 1:
            raise TooMuchAtOnceError
    if len(pieces) == 1:
        return pieces[0]
    if not pieces:
        return nothing(columns)
    problems: dict[int, Problem] = {}
    first = 0
    for piece in pieces:
        problems |= {first + at: problem for at, problem in piece.problems.items()}
        first += piece.count
    made = {name: pa.concat_arrays([one.columns[name] for one in pieces]) for name in columns.names}
    return Decoded(made, problems, first)


def nothing(columns: pa.Schema) -> Decoded:
    """Return what becomes of no records."""
    return Decoded({field.name: pa.array([], field.type) for field in columns}, {}, 0)
