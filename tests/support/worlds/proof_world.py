"""A small world of landed batches with its ledger, and the proof of it: what the tests of the proof plant faults in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from lakebound.inspection.proof.facts import TableAsFound
from lakebound.inspection.proof.judgement import judge
from lakebound.inspection.proof.result import Proof, TableProof
from lakebound.ledger.entry import Entry, Offsets, TopicOffsets, add
from lakebound.ledger.intervals import Interval, merge
from lakebound.ledger.topics import TopicFacts
from lakebound.tables.table import KAFKA_TYPE, CommittedEntry

PIPELINE, TOPIC, TOPIC_ID = "orders", "orders", "id-1"
TARGET, OTHER, QUARANTINE = "delta:orders", "iceberg:orders", "delta:quarantine.orders"
SCHEMA = pa.schema(list(KAFKA_TYPE))
Fate = Literal["unreadable", "landed", "exploded", "filtered", "quarantined"]
Row = tuple[int, int, int]
"""Partition, offset, ordinal."""


def offsets(*places: tuple[int, int, int], topic_id: str = TOPIC_ID) -> Offsets:
    """Return (partition, start, end) as coverage."""
    held: dict[int, list[Interval]] = {}
    for partition, start, end in places:
        held.setdefault(partition, []).append((start, end))
    return {TOPIC: TopicOffsets(topic_id=topic_id, partitions={p: merge(found) for p, found in held.items()})} if held else {}


def kafka_rows(rows: Sequence[Row], topic_id: str = TOPIC_ID) -> pa.Table:
    """Return rows as ``scan_kafka`` does."""
    at = datetime(2026, 1, 1, tzinfo=UTC)
    columns = [[TOPIC] * len(rows), [topic_id] * len(rows), [r[0] for r in rows], [r[1] for r in rows]]
    return pa.table([*columns, [at] * len(rows), [r[2] for r in rows]], schema=SCHEMA)


def born(kind: str = "genesis", coverage: Offsets | None = None, epoch: int = 1, **counts: Any) -> CommittedEntry:
    """Return an entry that lands nothing."""
    body = {"kind": kind, "pipeline": PIPELINE, "epoch": epoch, "commit": f"{kind}-{epoch}", "coverage": coverage or {}}
    return CommittedEntry(kind, 0, Entry.model_validate(body | counts))


@dataclass
class World:
    """Batches of one partition as an application lands them, in a target and its quarantine."""

    partition: int = 0
    batches: list[list[Fate]] = field(default_factory=list)
    start: int = 0
    rows: list[Row] = field(default_factory=list)
    bad: list[Row] = field(default_factory=list)
    readable: list[int] = field(default_factory=list)
    entries: list[CommittedEntry] = field(default_factory=lambda: [born()])
    quarantine: list[CommittedEntry] = field(default_factory=lambda: [born()])
    earliest: int | None = None

    def __post_init__(self) -> None:
        first = self.start
        for fates in self.batches:
            self._land(first, fates)
            first += len(fates)
        self.end = first

    def _land(self, first: int, fates: Sequence[Fate]) -> None:
        rows: list[Row] = []
        bad: list[Row] = []
        for offset, fate in enumerate(fates, first):
            if fate != "unreadable":
                self.readable.append(offset)
            if fate in ("landed", "exploded"):
                rows += [(self.partition, offset, ordinal) for ordinal in range(3 if fate == "exploded" else 1)]
            if fate == "quarantined":
                bad.append((self.partition, offset, 0))
        span = offsets((self.partition, first, first + len(fates)))
        landed = len({row[1] for row in rows})
        counts = {"filtered": fates.count("filtered"), "landed": landed, "quarantined": len(bad), "rows": len(rows)}
        if bad:
            own = {"quarantined": len(bad), "rows": len(bad), "read": len(bad)}
            self.quarantine.append(self._entry(self.quarantine, span, **own))
        self.entries.append(self._entry(self.entries, span, read=len(fates) - fates.count("unreadable"), **counts))
        self.rows += rows
        self.bad += bad

    def _entry(self, entries: Sequence[CommittedEntry], span: Offsets, **counts: int) -> CommittedEntry:
        number = len(entries)
        coverage = add(entries[-1].entry.coverage, span)
        body = {"kind": "land", "pipeline": PIPELINE, "epoch": 1, "commit": f"c{number}", "range": span, "coverage": coverage}
        return CommittedEntry(str(number), number, Entry.model_validate(body | {"lane": "driver"} | counts))

    @property
    def topics(self) -> dict[str, TopicFacts | None]:
        earliest = self.start if self.earliest is None else self.earliest
        return {TOPIC: TopicFacts(TOPIC_ID, {self.partition: earliest}, {self.partition: self.end + 5})}

    def target(self, **changes: Any) -> TableAsFound:
        return replace(self._facts(TARGET, self.entries, self.rows), **changes)

    def _facts(self, table: str, entries: list[CommittedEntry], rows: list[Row]) -> TableAsFound:
        coverage = entries[-1].entry.coverage
        newest_first = tuple(reversed(entries))
        return TableAsFound(table, "target", "entry", coverage, newest_first, kafka_rows(rows), later_coverage=coverage)

    def prove(self, *targets: TableAsFound, deep: bool = True, **options: Any) -> Proof:
        """Return the proof of the targets (default: the one of this world) and the quarantine."""
        quarantine = replace(self._facts(QUARANTINE, self.quarantine, self.bad), role="quarantine")
        kept = [offset for offset in self.readable if offset >= (self.earliest or 0)]
        readable = {(TOPIC, self.partition): np.array(kept, dtype=np.int64)} if deep else None
        chosen = targets or (self.target(),)
        return judge(PIPELINE, [*chosen, quarantine], **{"topics": self.topics, "readable": readable} | options)


def proof_of(proof: Proof, table: str = TARGET) -> TableProof:
    """Return the part of one table."""
    return next(found for found in proof.tables if found.table == table)


def at(*intervals: Interval, partition: int = 0) -> dict[str, dict[int, tuple[Interval, ...]]]:
    """Return ranges of the topic."""
    return {TOPIC: {partition: intervals}}


SIMPLE: list[list[Fate]] = [["landed"] * 10, ["landed"] * 10, ["landed"] * 5 + ["unreadable"] * 3 + ["landed"] * 2]
MIXED: list[list[Fate]] = [["landed", "quarantined", "exploded"], ["filtered"] * 4, ["quarantined"] * 3, ["landed", "filtered"]]
