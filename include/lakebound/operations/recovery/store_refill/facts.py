"""The facts from which a store is filled from a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from lakebound.ledger.entry import FormerCoverage, Offsets, high_water_marks
from lakebound.ledger.intervals import Intervals
from lakebound.ledger.marks import NextOffsets
from lakebound.operations.recovery.store_rebuild import StoreFacts
from lakebound.spec.table import TableSpec


@dataclass(frozen=True)
class Incarnation:
    """A topic from one creation to its deletion.

    Attributes:
        rank: Its place among the incarnations of the same topic, from 0 on; the present one is the last.
        partitions: The offsets that the table covers, per partition.
    """

    rank: int
    partitions: Mapping[int, Intervals]


@dataclass(frozen=True)
class SourceFacts:
    """A table as the source of rows.

    Attributes:
        spec: The table.
        refusal: Why it cannot be used, whatever it holds; None where it can.
        version: Delta version or Iceberg snapshot id that is read.
        coverage: What its ledger says of that version.
        former: Coverage of earlier incarnations of recreated topics.
        erased: How many of its rows were ever erased by decision.
        changes: Commits by which others changed rows, in words.
        acknowledged: Versions of such commits that a person has acknowledged, as far as the history is kept.
        is_whole_history: Whether the history goes back to the table's first entry.
        schema: Columns that the store needs, ``_kafka`` last; None where there is a refusal.
        notes: What a person should know of the columns.
    """

    spec: TableSpec
    refusal: str | None = None
    version: str = ""
    coverage: Offsets = field(default_factory=dict)
    former: FormerCoverage = field(default_factory=dict)
    erased: int = 0
    changes: tuple[str, ...] = ()
    acknowledged: tuple[str, ...] = ()
    is_whole_history: bool = True
    schema: pa.Schema | None = None
    notes: tuple[str, ...] = ()

    @property
    def marks(self) -> NextOffsets:
        """Next offset to read behind the table, per topic and partition."""
        return high_water_marks(self.coverage)

    @property
    def incarnations(self) -> dict[tuple[str, str], Incarnation]:
        """What the table covers, by topic and topic id."""
        found = {}
        for topic in {*self.coverage, *self.former}:
            every = [*self.former.get(topic, ()), *([self.coverage[topic]] if topic in self.coverage else [])]
            found.update({(topic, held.topic_id): Incarnation(rank, held.partitions) for rank, held in enumerate(every)})
        return found


@dataclass(frozen=True)
class RowFacts:
    """What the rows of the table are, after all were read.

    Attributes:
        rows: How many.
        keys: About how many keys; None where nobody counted.
        problems: Why they cannot be put into the store.
    """

    rows: int
    keys: int | None = None
    problems: tuple[str, ...] = ()


@dataclass(frozen=True)
class RefillFacts:
    """Everything from which the plan is made.

    Attributes:
        store: The store, and Kafka.
        source: The table.
        rows: Its rows; None where they were not read.
    """

    store: StoreFacts
    source: SourceFacts
    rows: RowFacts | None = None
