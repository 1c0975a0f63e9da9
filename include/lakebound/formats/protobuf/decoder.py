"""Decodes payloads of one message: each field in all of them, before the next one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from google.protobuf.descriptor import Descriptor, FileDescriptor

from lakebound.formats.contract import Decoded, Problem
from lakebound.formats.protobuf.buffer import Buffer, Numbers
from lakebound.formats.protobuf.fields import Spans
from lakebound.formats.protobuf.level import Batch, Level
from lakebound.formats.protobuf.plan import Plan
from lakebound.formats.protobuf.records import Indexes, indexes_of, messages_at, read_indexes, written
from lakebound.formats.room import Room, decoded_in_pieces

NO_INDEXES = "no_message_indexes"
"""Reason of a record whose bytes do not say which message it is."""
OTHER_MESSAGE = "other_message"
"""Reason of a record that is another message than the one that is read."""
MISSING_FIELD = "missing_field"
"""Reason of a record without a field that is required."""


@dataclass(frozen=True)
class Framed:
    """What stands before payloads: which message each is.

    Attributes:
        file: Of the writer.
        name: Full name of the message that is read.
        usual: Bytes with which payloads of it begin, mostly.
        indexes: All by which it is named.
    """

    file: FileDescriptor
    name: str
    usual: bytes
    indexes: frozenset[Indexes]

    @classmethod
    def of(cls, message: Descriptor) -> Framed:
        """Return what stands before payloads that are a message."""
        indexes = indexes_of(message)
        return cls(message.file, message.full_name, written(min(indexes)), indexes)

    def start(self, payload: bytes) -> int | Problem:
        """Return where the message of a payload begins, or why it is none."""
        found = read_indexes(payload)
        if found is None:
            return Problem(NO_INDEXES, "the record does not say which message it is: its indexes are cut or wrong")
        if found[0] in self.indexes:
            return found[1]
        others = [one.full_name for one in messages_at(self.file, found[0])]
        if not others:
            return Problem(NO_INDEXES, f"the schema has no message with the indexes {[*found[0]]}")
        if self.name in others:
            named = " or ".join(others)
            told = f"the indexes {[*found[0]]} name {named}: serialisers differ in whether messages of maps and groups count"
            return Problem(NO_INDEXES, told)
        return Problem(OTHER_MESSAGE, f"the record is a {' or '.join(others)}, and {self.name} is read")


class ProtobufDecoder:
    """Decodes payloads of one message."""

    def __init__(self, plan: Plan, framed: Framed | None = None) -> None:
        """Decode nothing yet.

        Args:
            plan: How payloads become columns.
            framed: What stands before each; None: nothing does.
        """
        self._plan = plan
        self._framed = framed
        self._columns: pa.Schema | None = None

    def decode(self, payloads: Sequence[bytes]) -> Decoded:
        """Return what becomes of payloads.

        Raises:
            TooMuchAtOnceError: They take too much together.
        """
        return decoded_in_pieces(payloads, self._piece, self._schema())

    def _schema(self) -> pa.Schema:
        """Return the columns: as no payloads make them."""
        if self._columns is None:
            made = self._piece([]).columns
            self._columns = pa.schema([pa.field(name, column.type) for name, column in made.items()])
        return self._columns

    def _piece(self, payloads: Sequence[bytes]) -> Decoded:
        """Return what becomes of some payloads.

        Raises:
            TooLargeError: Some take too much memory.
        """
        lengths = np.fromiter(map(len, payloads), np.int64, len(payloads))
        ends = np.cumsum(lengths)
        batch = Batch(Buffer.of(payloads), self._plan.record, Room(lengths))
        starts = ends - lengths
        places = self._places(payloads, batch, starts, ends)
        spans = Spans(np.arange(len(places)), starts[places], ends[places])
        level = Level.read(batch, self._plan.shape, places, spans)
        columns = {name: column(level) for name, column in self._plan.columns}
        for name in self._plan.required:
            for at in places[columns[name].is_null()].tolist() if columns[name].null_count else ():
                batch.wrong.setdefault(at, Problem(MISSING_FIELD, f"{name}: it is required, and the record does not have it"))
        if not batch.wrong:
            return Decoded(columns, {}, len(payloads))
        problems = {at: batch.wrong[at] for at in sorted(batch.wrong)}
        kept = pa.array(np.flatnonzero(~np.isin(places, [*batch.wrong])))
        return Decoded({name: column.take(kept) for name, column in columns.items()}, problems, len(payloads))

    def _places(self, payloads: Sequence[bytes], batch: Batch, starts: Numbers, ends: Numbers) -> Numbers:
        """Return the positions of payloads of the message; their starts are moved behind what stands before it."""
        if self._framed is None:
            return np.arange(len(payloads))
        usual = ends - starts >= len(self._framed.usual)
        for at, byte in enumerate(self._framed.usual):
            usual &= batch.buffer.data[starts + at] == byte
        starts[usual] += len(self._framed.usual)
        for at in np.flatnonzero(~usual).tolist():
            found = self._framed.start(payloads[at])
            if isinstance(found, Problem):
                batch.wrong[at] = found
            else:
                starts[at] += found
        return np.flatnonzero(~np.isin(np.arange(len(payloads)), [*batch.wrong])) if batch.wrong else np.arange(len(payloads))
