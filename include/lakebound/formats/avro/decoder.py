"""Decodes payloads of one writer's schema to columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa

from lakebound.formats.avro.bytes_read import MalformedError
from lakebound.formats.avro.makers import Struct
from lakebound.formats.avro.making import ZEROS, Chosen, Making
from lakebound.formats.avro.many import Lanes, read_many
from lakebound.formats.avro.resolution import Resolved
from lakebound.formats.avro.shape import Part
from lakebound.formats.avro.single import Found, SingleReader, write_down
from lakebound.formats.avro.tape import Numbers, Tape
from lakebound.formats.contract import NO_VALUE, Decoded, Problem
from lakebound.formats.room import Room, TooLargeError, decoded_in_pieces

_FEW = 20
"""Records that are read faster by themselves."""
_BEHIND = b"\0" * (1 + ZEROS)


class AvroDecoder:
    """Decodes payloads that were all written with one schema."""

    def __init__(self, part: Part, resolved: Resolved, columns: pa.Schema) -> None:
        """Decode nothing yet.

        Args:
            part: What is read of a record.
            resolved: What is made of it: a struct of the columns.
            columns: Their names and types.
        """
        self._part, self._resolved, self._columns = part, resolved, columns
        self._single = SingleReader(part, resolved.wanted)

    def decode(self, payloads: Sequence[bytes]) -> Decoded:
        """Return what becomes of payloads.

        Raises:
            TooMuchAtOnceError: They take too much together.
        """
        return decoded_in_pieces(payloads, self._decoded, self._columns)

    def _decoded(self, payloads: Sequence[bytes]) -> Decoded:
        """Return what becomes of a piece of the payloads.

        Raises:
            TooLargeError: Some take too much memory.
        """
        lengths = np.fromiter(map(len, payloads), np.int64, len(payloads))
        ends = np.cumsum(lengths)
        starts = ends - lengths
        making = Making(b"".join([*payloads, _BEHIND]), Tape(self._resolved.wanted))
        usable = np.zeros(len(payloads), np.bool_)
        if len(payloads) >= _FEW:
            usable = read_many(self._part, Lanes(making.data, making.words, starts.copy(), ends.copy()), making.tape)
        places = np.arange(len(payloads))
        problems: dict[int, Problem] = {}
        if not usable.all():
            left = np.flatnonzero(~usable)
            records = zip(left.tolist(), starts[left].tolist(), ends[left].tolist(), strict=True)
            alone = self._one_by_one(making, records, problems)
            if len(payloads) < _FEW:
                places, usable = places[:0], usable[:0]
            places, usable = np.concatenate([places, alone]), np.concatenate([usable, np.ones(len(alone), np.bool_)])
        making.room = Room(lengths[places])
        try:
            arrays = self._arrays(making, np.arange(len(places)))
        except TooLargeError as exc:
            raise TooLargeError(places[[*exc.records]].tolist()) from None
        for row, problem in making.wrong.items():
            if usable[row]:
                problems[int(places[row])] = problem
                usable[row] = False
        return Decoded(dict(zip(self._columns.names, _kept(arrays, places, usable), strict=True)), problems, len(payloads))

    def _one_by_one(self, making: Making, records: Iterable[tuple[int, int, int]], problems: dict[int, Problem]) -> Numbers:
        """Read records by themselves; return the positions of those that could be read."""
        found: Found = {}
        read = []
        for place, start, end in records:
            try:
                self._single.read(making.raw, start, end, found)
            except MalformedError as exc:
                problems[place] = Problem("malformed_avro", str(exc))
            else:
                read.append(place)
        write_down(found, making.tape, self._resolved.lists)
        return np.array(read, np.int64)

    def _arrays(self, making: Making, rows: Numbers) -> list[pa.Array]:
        maker = self._resolved.maker
        if isinstance(maker, Struct):
            return maker.arrays(making, rows)
        made = maker.make(making, rows)
        for row in np.flatnonzero(made.is_null()).tolist():
            making.wrong.setdefault(row, NO_VALUE)
        return list(made.flatten())


def _kept(arrays: Sequence[pa.Array], places: Numbers, usable: Chosen) -> Sequence[pa.Array]:
    """Return the usable rows of columns, in the order of their records."""
    in_order = bool((places[1:] > places[:-1]).all())
    if in_order and usable.all():
        return arrays
    rows = np.flatnonzero(usable)
    taken = pa.array(rows if in_order else rows[np.argsort(places[rows])])
    return [array.take(taken) for array in arrays]
