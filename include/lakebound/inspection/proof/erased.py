"""Rows that were erased by decision, against the rows that a table has. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from lakebound.inspection.proof.facts import OffsetArray
from lakebound.inspection.proof.offset_arrays import Arrays, found_offsets, index_rows, without
from lakebound.inspection.proof.result import Found
from lakebound.ledger.erased import ErasedRows
from lakebound.ledger.topics import TopicIdPartition
from lakebound.tables.erased import are_among, as_kafka_rows, erased_rows


@dataclass(frozen=True)
class Erased:
    """What was erased from a table and is not there.

    Attributes:
        records: Distinct offsets of which no row is left, sorted.
        rows: Offset of each row, sorted.
        again: Rows that were erased and are there again.
    """

    records: Arrays = field(default_factory=dict)
    rows: Arrays = field(default_factory=dict)
    again: Found = field(default_factory=Found)


def find_erased(erased: ErasedRows, rows: pa.Table) -> Erased:
    """Return what of the erased rows is not among a table's rows, as ``Table.scan_kafka`` gives them, and what is."""
    if not erased:
        return Erased()
    present = rows.filter(pa.array(are_among(rows, erased)))
    named = as_kafka_rows(erased)
    gone = index_rows(named.filter(pa.array(~are_among(named, erased_rows(present)))))
    again = found_offsets(index_rows(present).rows)
    return Erased(without(gone.records, index_rows(rows).records), gone.rows, again)


def together(left: Mapping[TopicIdPartition, OffsetArray], right: Mapping[TopicIdPartition, OffsetArray]) -> Arrays:
    """Return the offsets of the rows of both, sorted, each as often as there are rows."""
    return {
        key: np.sort(np.concatenate([one[key] for one in (left, right) if key in one]), kind="stable")
        for key in {**left, **right}
    }
