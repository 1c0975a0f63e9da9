"""Decodes payloads of one message: many at once, and each by itself where one of them cannot be read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from google.protobuf.descriptor import Descriptor, FileDescriptor
from google.protobuf.message import DecodeError

from lakebound.formats.contract import Decoded, Problem
from lakebound.formats.protobuf.explained import why_malformed
from lakebound.formats.protobuf.leaves import Wrong
from lakebound.formats.protobuf.plan import Plan
from lakebound.formats.protobuf.records import Indexes, indexes_of, message_at, read_indexes, varint, written

MALFORMED = "malformed_protobuf"
"""Reason of a record whose bytes are no message."""
NO_INDEXES = "no_message_indexes"
"""Reason of a record whose bytes do not say which message it is."""
OTHER_MESSAGE = "other_message"
"""Reason of a record that is another message than the one that is read."""
MISSING_FIELD = "missing_field"
"""Reason of a record without a field that is required."""
_PIECE = 500
"""Records: between pieces other threads get their turn; Python gives it to nobody within one."""


class _Lengths(dict[int, bytes]):
    """By the length of a payload, what stands before it in a message of many."""

    def __missing__(self, length: int) -> bytes:
        """Return the field's tag and the length; what is usual is kept."""
        made = b"\n" + varint(length)
        if length < 1 << 14:
            self[length] = made
        return made


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

    def without(self, payload: bytes) -> bytes | Problem:
        """Return a payload without its indexes, or why it is none of the message."""
        if payload.startswith(self.usual):
            return payload[len(self.usual) :]
        found = read_indexes(payload)
        if found is None:
            return Problem(
                NO_INDEXES, "the record does not say which message of its schema it is: its indexes are cut or wrong"
            )
        if found[0] in self.indexes:
            return payload[found[1] :]
        other = message_at(self.file, found[0])
        if other is None:
            return Problem(NO_INDEXES, f"the schema has no message with the indexes {[*found[0]]}")
        return Problem(OTHER_MESSAGE, f"the record is a {other.full_name}, and {self.name} is read")


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
        self._lengths = _Lengths()
        # The columns of no records: the parts of a batch are put behind them.
        self._none = {name: column([], Wrong()) for name, column in plan.columns}

    def decode(self, payloads: Sequence[bytes]) -> Decoded:
        """Return what becomes of payloads."""
        problems: dict[int, Problem] = {}
        parts = [self._none]
        for first in range(0, len(payloads), _PIECE):
            parts.append(self._piece(payloads[first : first + _PIECE], first, problems))
        columns = parts[1] if len(parts) == 2 else {name: pa.concat_arrays([one[name] for one in parts]) for name in self._none}
        return Decoded(columns, problems, len(payloads))

    def _piece(self, payloads: Sequence[bytes], first: int, problems: dict[int, Problem]) -> dict[str, pa.Array]:
        """Return the columns of some payloads, and note the problems of the others.

        Args:
            payloads: Some of a batch.
            first: Position of the first one.
            problems: Of the batch.
        """
        found = Wrong()
        places, bodies = self._bodies(payloads, found)
        places, rows = self._rows(places, bodies, found)
        wrong = Wrong()
        columns = {name: column(rows, wrong) for name, column in self._plan.columns}
        for name in self._plan.required:
            for at in np.flatnonzero(columns[name].is_null()).tolist() if columns[name].null_count else ():
                wrong.setdefault(at, Problem(MISSING_FIELD, f"{name}: it is required, and the record does not have it"))
        problems.update((first + at, problem) for at, problem in found.items())
        problems.update((first + places[at], problem) for at, problem in wrong.items())
        if not wrong:
            return columns
        kept = pa.array([at for at in range(len(rows)) if at not in wrong], pa.int64())
        return {name: column.take(kept) for name, column in columns.items()}

    def _bodies(self, payloads: Sequence[bytes], found: Wrong) -> tuple[Sequence[int], Sequence[bytes]]:
        """Return the positions of payloads of the message, and what stands behind their indexes."""
        if self._framed is None:
            return range(len(payloads)), payloads
        places, bodies = [], []
        for at, payload in enumerate(payloads):
            body = self._framed.without(payload)
            if isinstance(body, Problem):
                found[at] = body
            else:
                places.append(at)
                bodies.append(body)
        return places, bodies

    def _rows(self, places: Sequence[int], bodies: Sequence[bytes], found: Wrong) -> tuple[Sequence[int], Sequence[Any]]:
        """Return the positions of payloads that can be decoded, and the messages that they are."""
        lengths = self._lengths
        try:
            # One message of all takes two thirds of the time that one of each takes.
            many = b"".join([part for body in bodies for part in (lengths[len(body)], body)])
            return places, [*self._plan.payloads.many.FromString(many).records]
        except DecodeError:
            pass
        good, rows = [], []
        for at, body in zip(places, bodies, strict=True):
            try:
                rows.append(self._plan.payloads.one.FromString(body))
                good.append(at)
            except DecodeError:
                found[at] = Problem(MALFORMED, why_malformed(body, self._plan.writer))
        return good, rows
