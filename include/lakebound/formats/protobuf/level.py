"""Messages of one kind in all records of a batch: what was read of them, and what is wrong with their records."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from lakebound.formats.contract import Problem
from lakebound.formats.protobuf.buffer import Buffer, Chosen, Numbers
from lakebound.formats.protobuf.fields import Fields, Spans, read_fields
from lakebound.formats.protobuf.shape import Shape
from lakebound.formats.room import Room

MALFORMED = "malformed_protobuf"
"""Reason of a record whose bytes are no message."""
DOES_NOT_FIT = "does_not_fit"
"""Reason of a record with a value that its column cannot hold."""


@dataclass(frozen=True)
class Batch:
    """Records that are read together.

    Attributes:
        buffer: Their bytes.
        record: Full name of the message that they should be.
        room: What they may take.
        wrong: What is wrong with records, by their number; of several things the first one.
    """

    buffer: Buffer
    record: str
    room: Room
    wrong: dict[int, Problem] = field(default_factory=dict)


@dataclass(frozen=True)
class Level:
    """Messages of one kind.

    Attributes:
        batch: The records in which they lie.
        records: The record of each message.
        spans: Where they lie.
        fields: What was read of them.
    """

    batch: Batch
    records: Numbers
    spans: Spans
    fields: Fields

    @classmethod
    def read(cls, batch: Batch, shape: Shape | None, records: Numbers, spans: Spans) -> Level:
        """Read messages.

        Args:
            batch: The records.
            shape: What is read; None: nothing.
            records: The record of each message.
            spans: Where they lie.
        """
        if shape is None:
            return cls(batch, records, spans, Fields())
        level = cls(batch, records, spans, read_fields(batch.buffer, spans, shape))
        for owner, told in level.fields.broken.items():
            level.note_malformed(owner, told)
        return level

    def __len__(self) -> int:
        """Number of messages."""
        return len(self.records)

    def take(self, owners: Numbers, sizes: Numbers | int) -> None:
        """Take bytes of the records of values.

        Args:
            owners: The message of each value.
            sizes: What is taken of each, or of all of them.

        Raises:
            TooLargeError: Records have no more.
        """
        self.batch.room.take(self.records[owners], sizes)

    def note_malformed(self, owner: int, told: str) -> None:
        """Note a message whose bytes are wrong: before all that may be wrong with its values."""
        record = int(self.records[owner])
        known = self.batch.wrong.get(record)
        if known is None or known.reason != MALFORMED:
            self.batch.wrong[record] = Problem(MALFORMED, f"it is no {self.batch.record}: {told}")

    def note(self, bad: Chosen, owners: Numbers, told: Callable[[int], str], reason: str = DOES_NOT_FIT) -> None:
        """Note values that are wrong.

        Args:
            bad: Which they are.
            owners: The message of each value.
            told: Says of a value, by its position, what is wrong with it.
            reason: Of the problem.
        """
        for at in np.flatnonzero(bad).tolist():
            self.batch.wrong.setdefault(int(self.records[owners[at]]), Problem(reason, told(at)))
