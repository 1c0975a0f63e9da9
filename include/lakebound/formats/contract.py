"""What a value format does: bytes of many records in, the columns that are needed out, and a reason for each other record.

The same decoder runs in the driver and in Spark's executors, once per batch. It knows nothing of Spark, Kafka or tables. What
it makes of a record never depends on the records beside it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import pyarrow as pa

Headers = Sequence[tuple[str, bytes | None]]
"""Of one record, in their order: names, of which some may be equal, and values."""


@dataclass(frozen=True)
class Records:
    """Records as Kafka has them; as many keys as values.

    Attributes:
        keys: Of each record.
        values: Of each record.
        headers: Of each record, in their order; None where nobody asked for them.
        topics: Of each record; None where nobody asked for them.
    """

    keys: Sequence[bytes | None]
    values: Sequence[bytes | None]
    headers: Sequence[Headers] | None = None
    topics: Sequence[str] | None = None


@dataclass(frozen=True)
class Problem:
    """Why a record has no columns.

    Attributes:
        reason: One of a fixed few words, such as ``does_not_fit``.
        detail: In words, for who has to mend it.
    """

    reason: str
    detail: str


NO_VALUE = Problem("null_value", "the record has no value")
"""Of a record without a value; the pipeline says whether that is a mistake."""


@dataclass(frozen=True)
class Decoded:
    """What became of records.

    Attributes:
        columns: Of the records that have columns, in their order, by name.
        problems: Why the others have none, by their position.
        count: Number of records.
    """

    columns: Mapping[str, pa.Array]
    problems: Mapping[int, Problem]
    count: int

    @property
    def good(self) -> list[int]:
        """Positions of the records that have columns."""
        return [position for position in range(self.count) if position not in self.problems]


class ValueDecoder(Protocol):
    """Decodes the values of one pipeline."""

    def decode(self, records: Records) -> Decoded:
        """Return what becomes of records; it raises on none of them."""
