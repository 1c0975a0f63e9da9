"""What would change, column by column, if records that have landed were landed again by today's code. Nothing is written."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lakebound.landing.run_spec import RunSpec
from lakebound.landing.sampling import TopicSample
from lakebound.ledger.entry import high_water_marks
from lakebound.ledger.marks import NextOffsets
from lakebound.spec.pipeline import KAFKA_COLUMN
from lakebound.spec.table import TableSpec
from lakebound.tables.contents import Selection, contents_of
from lakebound.tables.table import Table, open_table

_POSITION = ("topic", "partition", "offset", "ordinal")
_EXAMPLES = 3

Position = tuple[Any, ...]
Row = Mapping[str, Any]


@dataclass
class ChangedColumn:
    """A column that differs.

    Attributes:
        rows: In how many rows.
        becomes_null: How many of these are null now, and were not.
        examples: Of the first ones: topic, partition, offset, the landed value and the new one.
    """

    rows: int = 0
    becomes_null: int = 0
    examples: list[dict[str, Any]] = field(default_factory=list)


@dataclass
class LandedComparison:
    """The rows of one table against those that the same records give now.

    Attributes:
        table: Its id.
        same: Rows that are the same.
        different: Rows with another value in a column.
        no_longer: Landed rows that the records do not give any more.
        new: Rows that the records give now, and that did not land: filtered, in quarantine or erased.
        columns: Which differ.
        not_compared: Columns that only the table, or only the new rows have.
    """

    table: str
    same: int = 0
    different: int = 0
    no_longer: int = 0
    new: int = 0
    columns: dict[str, ChangedColumn] = field(default_factory=dict)
    not_compared: list[str] = field(default_factory=list)


def first_table(run: RunSpec) -> Table | None:
    """Return the first table that is there: the tables of a pipeline get the same rows."""
    places = run.places.read_only()
    return next((one for spec in run.spec.tables if (one := open_table(spec, places)).exists()), None)


def landed_until(table: Table) -> NextOffsets:
    """Return up to which offsets the records of a table have landed.

    Raises:
        BadEntryError: Its ledger cannot be read.
    """
    return high_water_marks(table.read_ledger().coverage)


def compared(table: TableSpec, made: pa.Table, landed: pa.Table) -> LandedComparison:
    """Compare rows by their position in Kafka. Pure.

    Args:
        table: The table.
        made: What the records give now.
        landed: What the table has of them.
    """
    found = LandedComparison(table.id)
    columns = [name for name in made.column_names if name in landed.column_names and name != KAFKA_COLUMN]
    found.not_compared = sorted({*made.column_names, *landed.column_names} - {*columns, KAFKA_COLUMN})
    now, before = _by_position(made, columns), _by_position(landed, columns)
    found.no_longer, found.new = len(before.keys() - now.keys()), len(now.keys() - before.keys())
    for position in sorted(before.keys() & now.keys()):
        changed = [name for name in columns if not _same(before[position][name], now[position][name])]
        found.different += bool(changed)
        found.same += not changed
        for name in changed:
            _count(found.columns.setdefault(name, ChangedColumn()), position, before[position][name], now[position][name])
    return found


def landed_rows(table: Table, run: RunSpec, sample: TopicSample) -> pa.Table:
    """Return what a table has of the sampled records.

    Args:
        table: The table, which is there.
        run: The pipeline's orders.
        sample: The records; at least one.
    """
    schema = table.schema()
    spans = [*sample.ranges.values()]
    offsets = min(first for first, _ in spans), max(end for _, end in spans) - 1
    batches = contents_of(table.spec, run.places.read_only()).rows(Selection((), schema.names, offsets=offsets))
    kept = [one for one in (_of_sample(batch, sample) for batch in batches) if one.num_rows]
    return pa.Table.from_batches(kept) if kept else schema.empty_table()


def _of_sample(batch: pa.RecordBatch, sample: TopicSample) -> pa.RecordBatch:
    kafka = batch.column(KAFKA_COLUMN)
    wanted = pa.array([False] * len(batch))
    for (topic, partition), (first, end) in sample.ranges.items():
        conditions = (
            pc.equal(kafka.field("topic"), topic),
            pc.equal(kafka.field("topic_id"), sample.topic_ids[topic]),
            pc.equal(kafka.field("partition"), partition),
            pc.greater_equal(kafka.field("offset"), first),
            pc.less(kafka.field("offset"), end),
        )
        wanted = pc.or_(wanted, reduce(pc.and_, conditions).fill_null(False))
    return batch.filter(wanted)


def _by_position(rows: pa.Table, columns: Sequence[str]) -> dict[Position, Row]:
    """Return the rows by their place in Kafka; two of one place are a defect that ``prove`` tells."""
    kafka = rows[KAFKA_COLUMN].to_pylist()
    places = [tuple(one[name] for name in _POSITION) for one in kafka]
    return dict(zip(places, rows.select(columns).to_pylist(), strict=True))


def _same(before: Any, now: Any) -> bool:
    if isinstance(before, float) and isinstance(now, float) and math.isnan(before) and math.isnan(now):
        return True
    if isinstance(before, list | tuple) and isinstance(now, list | tuple):
        return len(before) == len(now) and all(map(_same, before, now))
    if isinstance(before, dict) and isinstance(now, dict):
        return before.keys() == now.keys() and all(_same(before[name], now[name]) for name in before)
    return bool(before == now)


def _count(column: ChangedColumn, position: Position, before: Any, now: Any) -> None:
    column.rows += 1
    column.becomes_null += now is None
    if len(column.examples) < _EXAMPLES:
        column.examples.append({**dict(zip(_POSITION, position, strict=True)), "landed": before, "now": now})
