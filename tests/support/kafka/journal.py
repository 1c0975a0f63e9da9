"""The journal: what the broker acknowledged to the test's producer, and what must become of each record.

Like the oracle, it imports nothing of lakebound.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Place = tuple[str, int, int]
"""Topic, partition, offset."""

Fate = Literal["table", "quarantine", "nothing"]
"""Where a record must end: in rows of every table, in quarantine, or counted and dropped."""

NO_VALUE = "null"
"""Stands for the hash of a record without a value."""


@dataclass(frozen=True)
class Acknowledged:
    """A record that the broker has.

    Attributes:
        place: Where.
        sha256: Of the value's bytes.
        fate: What must become of it.
        rows: Hash of each row that a table must hold for it, in the order of ordinals.
    """

    place: Place
    sha256: str
    fate: Fate
    rows: tuple[str, ...]


class Journal:
    """All acknowledged records; delivery reports of several threads may write into it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._records: dict[Place, Acknowledged] = {}

    def write(self, records: Iterable[Acknowledged]) -> None:
        """Add records."""
        with self._lock:
            for record in records:
                assert record.place not in self._records, f"the broker acknowledged {record.place} twice"
                self._records[record.place] = record

    @property
    def records(self) -> list[Acknowledged]:
        """The records so far, sorted by place."""
        with self._lock:
            return [self._records[place] for place in sorted(self._records)]

    def keep_only(self, topic: str, places: set[Place]) -> None:
        """Forget the topic's records that the broker itself has compacted or deleted."""
        with self._lock:
            gone = [place for place in self._records if place[0] == topic and place not in places]
            for place in gone:
                del self._records[place]

    def after(self, starts: Mapping[tuple[str, int], int]) -> Journal:
        """Return a journal of the records at or after an offset per (topic, partition); others are kept whole."""
        part = Journal()
        part.write(r for r in self.records if r.place[2] >= starts.get((r.place[0], r.place[1]), 0))
        return part

    def before(self, ends: Mapping[tuple[str, int], int]) -> Journal:
        """Return a journal of the records before an offset per (topic, partition); others are left out."""
        part = Journal()
        part.write(r for r in self.records if r.place[2] < ends.get((r.place[0], r.place[1]), 0))
        return part

    def ends(self) -> dict[str, dict[int, int]]:
        """Return the offset after the last acknowledged record, per topic and partition."""
        ends: dict[str, dict[int, int]] = {}
        for topic, partition, offset in (record.place for record in self.records):
            known = ends.setdefault(topic, {})
            known[partition] = max(known.get(partition, 0), offset + 1)
        return ends

    def count(self, fate: Fate | None = None) -> int:
        """Return how many records there are, or how many of one fate."""
        fates = Counter(record.fate for record in self.records)
        return fates[fate] if fate else sum(fates.values())


def value_hash(value: bytes | None) -> str:
    """Return the hash of a record's value."""
    return NO_VALUE if value is None else hashlib.sha256(value).hexdigest()


def row_hash(row: Mapping[str, Any]) -> str:
    """Return the hash of a row's columns, whatever their order; ``_kafka`` is not among them."""
    columns = {name: value for name, value in row.items() if name != "_kafka"}
    return hashlib.sha256(json.dumps(columns, sort_keys=True, default=_plain).encode()).hexdigest()


def row_hashes(rows: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return the hash of each row."""
    return tuple(row_hash(row) for row in rows)


def _plain(value: Any) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)
