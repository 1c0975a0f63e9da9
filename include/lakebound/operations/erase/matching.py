"""Which rows a condition means: Polars reads the table, as ``lakebound query`` does, and says where in Kafka they are from."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from deltalake.exceptions import DeltaProtocolError

from lakebound.errors import LakeboundError, RowsNotReadError
from lakebound.first_line import first_line
from lakebound.inspection.query import check_reads_no_file
from lakebound.ledger.marks import NextOffsets
from lakebound.spec.pipeline import KAFKA_COLUMN
from lakebound.spec.table import TableSpec
from lakebound.tables.contents import contents_of
from lakebound.tables.places import Places
from lakebound.tables.table import KAFKA_TYPE

if TYPE_CHECKING:
    import polars as pl

_POSITION = ("topic", "topic_id", "partition", "offset", "ordinal")


class BadConditionError(LakeboundError):
    """The condition cannot be evaluated."""

    def __init__(self, table: str, reason: str) -> None:
        super().__init__(
            f"--where cannot be evaluated on {table}: {reason}. Give a condition as it stands after WHERE, on the table's "
            f"columns, such as customer_id = 42; try it with `lakebound query`"
        )


@dataclass(frozen=True)
class Matches:
    """The rows of one table that a condition means.

    Attributes:
        kafka: Where they are from, as ``Table.scan_kafka`` gives it.
        later: How many more there are at or above the bound.
        without_origin: How many more do not say where they are from.
    """

    kafka: pa.Table
    later: int = 0
    without_origin: int = 0


def matches(spec: TableSpec, places: Places, where: str, below: NextOffsets, topic_ids: Mapping[str, str]) -> Matches:
    """Return the rows for which the condition is true; not those for which it is null.

    Args:
        spec: The table, which exists.
        places: Where it is.
        where: The condition, in SQL.
        below: Only offsets below these, of the topics' present incarnations.
        topic_ids: The ids of these.

    Raises:
        BadConditionError: It cannot be evaluated.
        RowsNotReadError: Polars cannot read the table.
        QueryOfFilesError: It names a function that reads files.
    """
    import polars as pl

    check_reads_no_file(where)
    try:
        with warnings.catch_warnings():
            # Polars plans an Iceberg scan with PyIceberg, and recommends a plugin of its own.
            warnings.simplefilter("ignore", pl.exceptions.PerformanceWarning)
            found = _matching(contents_of(spec, places.read_only()).frame(), where, spec.id)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as exc:
        lines = [line.strip() for line in str(exc).splitlines() if line.strip()]
        raise BadConditionError(spec.id, (lines or [type(exc).__name__])[0]) from exc
    except DeltaProtocolError as exc:
        what_to_do = "No rows can be erased from it; the runbook table-feature says how to remove a feature"
        raise RowsNotReadError(spec.id, first_line(exc), what_to_do) from exc
    kafka = pa.table({name: found[name].cast(KAFKA_TYPE.field(name).type) for name in _POSITION})
    known = kafka.drop_null()
    inside = known.filter(_is_below(known, below, topic_ids))
    return Matches(inside, known.num_rows - inside.num_rows, kafka.num_rows - known.num_rows)


def _matching(frame: pl.LazyFrame, where: str, table: str) -> pa.Table:
    import polars as pl

    condition = pl.sql_expr(where)
    kind = frame.select(condition.alias("condition")).collect_schema()["condition"]
    if kind != pl.Boolean:
        raise BadConditionError(table, f"it is no condition, but has values of the type {kind}")
    origin = pl.col(KAFKA_COLUMN).struct
    return frame.filter(condition).select(*(origin.field(name) for name in _POSITION)).collect().to_arrow()


def _is_below(kafka: pa.Table, below: NextOffsets, topic_ids: Mapping[str, str]) -> pa.ChunkedArray:
    """Return which rows are below the bound; what is of an earlier incarnation of a topic always is."""
    later = pa.chunked_array([pa.array([False] * kafka.num_rows)]) if kafka.num_rows else pa.chunked_array([], pa.bool_())
    for topic, topic_id in topic_ids.items():
        of_topic = pc.and_(pc.equal(kafka["topic"], topic), pc.equal(kafka["topic_id"], topic_id))
        inside = pa.chunked_array([pa.array([False] * kafka.num_rows)]) if kafka.num_rows else later
        for partition, end in below.get(topic, {}).items():
            in_partition = pc.and_(pc.equal(kafka["partition"], partition), pc.less(kafka["offset"], end))
            inside = pc.or_(inside, in_partition)
        later = pc.or_(later, pc.and_(of_topic, pc.invert(inside)))
    return pc.invert(later)
