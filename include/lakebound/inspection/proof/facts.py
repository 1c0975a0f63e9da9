"""What a proof is judged by: a table's ledger and rows, and what Kafka still has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakebound.landing.to_topics.ledger_record import TargetTotals
from lakebound.ledger.entry import Offsets, TopicOffsets
from lakebound.ledger.erased import ErasedRows
from lakebound.spec.table import TableRole
from lakebound.tables.misread import ColumnsLook
from lakebound.tables.table import CommittedEntry

OffsetArray = npt.NDArray[np.int64]
Readable = dict[tuple[str, int], OffsetArray]
"""Per topic and partition, the offsets that a read_committed consumer gets, sorted."""

CoverageSource = Literal["entry", "statistics", "scan", "none"]


@dataclass(frozen=True)
class TableAsFound:
    """One table as it was found.

    Attributes:
        table: Its id.
        role: What it is to the pipeline.
        source: What the coverage was read from; ``none`` where nothing could be, or is there.
        coverage: As the counting entry says it, read before the rows.
        entries: Newest first, read together with the coverage.
        rows: ``_kafka`` of every row, flattened; None unless the rows are to be judged.
        later_coverage: Read after the rows: what a running stream landed meanwhile is in it.
        error: Why the table could not be read.
        exists: Whether there is such a table.
        former: Of earlier incarnations of recreated topics, as the counting entry says it.
        released: How many offsets were released from quarantine so far, as the counting entry says it.
        later_releases: Offsets released after the ledger was read, per commit.
        totals: Of a topic: what all its entries have counted, those included that are no longer kept.
        bad_rows: Of a topic that was written in real time: where the records in the quarantine topic come from.
        note: What is to be said of the rows.
        columns: What readers make of the columns of its files; None where they were not looked at.
        erased: Rows that were erased by decision, as the counting entry names them.
    """

    table: str
    role: TableRole = "target"
    source: CoverageSource = "none"
    coverage: Offsets = field(default_factory=dict)
    entries: tuple[CommittedEntry, ...] = ()
    rows: pa.Table | None = None
    later_coverage: Offsets = field(default_factory=dict)
    error: str | None = None
    exists: bool = True
    former: Mapping[str, tuple[TopicOffsets, ...]] = field(default_factory=dict)
    released: int = 0
    later_releases: tuple[Offsets, ...] = ()
    totals: TargetTotals | None = None
    bad_rows: pa.Table | None = None
    note: str | None = None
    erased: ErasedRows = field(default_factory=ErasedRows)
    columns: ColumnsLook | None = None
