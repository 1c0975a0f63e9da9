"""Rows that were erased by decision: where in Kafka they came from. Pure.

A set is cumulative, as a coverage is. It is too large for every entry, so it is a file beside the table's data that an entry
names by its digest (``lakebound.tables.erased``). It holds offsets only, no values.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import Field, ValidationError

from lakebound.frozen import Frozen, FrozenRecord
from lakebound.ledger.intervals import Intervals, merge, total
from lakebound.ledger.packing import pack, unpack
from lakebound.ledger.topics import TopicIdPartition

MAX_BYTES = 8 * 1024 * 1024
"""Of a set's file."""


class ErasedFile(FrozenRecord):
    """How an entry names the set of all rows that were ever erased from its table."""

    digest: str = Field(pattern=r"^[0-9a-f]{64}$", description="SHA-256 of the file's content, and part of its name.")
    rows: int = Field(ge=0)


class ErasedPart(Frozen):
    """Erased rows of one partition that have the same ordinal."""

    topic: str
    topic_id: str
    partition: int = Field(ge=0)
    ordinal: int
    offsets: Intervals

    @property
    def key(self) -> tuple[str, str, int, int]:
        """What the offsets are of."""
        return self.topic, self.topic_id, self.partition, self.ordinal


class ErasedRows(Frozen):
    """A set of erased rows. Parts are sorted, each key once, their offsets merged."""

    parts: tuple[ErasedPart, ...] = ()

    @classmethod
    def of(cls, offsets: Mapping[tuple[str, str, int, int], Iterable[tuple[int, int]]]) -> ErasedRows:
        """Return the set of some intervals per topic, topic id, partition and ordinal."""
        merged = {key: merge(intervals) for key, intervals in sorted(offsets.items())}
        return cls(
            parts=tuple(
                ErasedPart(topic=topic, topic_id=topic_id, partition=partition, ordinal=ordinal, offsets=intervals)
                for (topic, topic_id, partition, ordinal), intervals in merged.items()
                if total(intervals)
            )
        )

    def __bool__(self) -> bool:
        return bool(self.parts)

    @property
    def rows(self) -> int:
        """How many rows."""
        return sum(total(part.offsets) for part in self.parts)

    @property
    def records(self) -> dict[TopicIdPartition, Intervals]:
        """Offsets of which any row was erased."""
        found: dict[TopicIdPartition, list[tuple[int, int]]] = {}
        for part in self.parts:
            found.setdefault((part.topic, part.topic_id, part.partition), []).extend(part.offsets)
        return {key: merge(intervals) for key, intervals in found.items()}

    def plus(self, other: ErasedRows) -> ErasedRows:
        """Return both sets as one."""
        found: dict[tuple[str, str, int, int], list[tuple[int, int]]] = {}
        for part in (*self.parts, *other.parts):
            found.setdefault(part.key, []).extend(part.offsets)
        return ErasedRows.of(found)

    def encode(self) -> bytes:
        """Return the content of the set's file: the same for the same set."""
        parts = [{**part.model_dump(mode="json"), "offsets": pack(part.offsets)} for part in self.parts]
        return json.dumps({"erased": parts}, sort_keys=True, separators=(",", ":")).encode()

    @property
    def file(self) -> ErasedFile:
        """How an entry names this set."""
        return ErasedFile(digest=digest_of(self.encode()), rows=self.rows)


def decode_erased(content: bytes) -> ErasedRows:
    """Return the set in a file's content.

    Raises:
        ValueError: It holds none.
    """
    try:
        body: Any = json.loads(content)
        parts = [{**part, "offsets": _offsets(part["offsets"])} for part in body["erased"]]
        return ErasedRows.model_validate({"parts": parts})
    except (ValidationError, KeyError, TypeError) as exc:
        raise ValueError(f"it holds no set of erased rows: {exc}") from exc


def digest_of(content: bytes) -> str:
    """Return the digest by which an entry names a file with this content."""
    return hashlib.sha256(content).hexdigest()


def _offsets(packed: Any) -> Any:
    return unpack(packed) if isinstance(packed, str) else packed
