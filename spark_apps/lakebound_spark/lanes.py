"""The two lanes: a small batch's files are written by the driver, a large one's by Spark's executors. Neither commits."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal, TypedDict

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_type, to_arrow_type
from pyspark.sql.types import StringType

from lakebound.errors import TableMismatchError
from lakebound.spec import DriverLaneSpec, TableSpec
from lakebound.tables import KAFKA_COLUMN, DataFile, Table
from lakebound.tables.datafiles import list_data_files, write_data_files
from lakebound.tables.schemas import normalise_type

Lane = Literal["driver", "cluster"]
LeftOut = Mapping[str, Collection[str]]
"""By table id, columns of a batch that the table does not get, as ``schema_evolution`` says."""

_NOTHING: LeftOut = {}


class How(TypedDict):
    """How rows of a pipeline become files: whether a record may become several, and what is left out."""

    multiplies: bool
    left_out: LeftOut


_KEY_FIELDS = ("topic", "partition", "offset")
_TOO_LARGE = ("maxResultSize", "org.apache.arrow.memory.OutOfMemoryException")
"""In the text of a job's failure: its rows are more than the driver takes, or than a task has buffers for."""


class ResultTooLargeError(Exception):
    """The batch's rows do not fit through the driver; the cluster lane takes the same batch."""


@dataclass(frozen=True)
class Written:
    """Files that lie in the tables' folders, not committed yet.

    Attributes:
        files: Per table id.
        rows: Rows of one table (each gets the same).
        records: Kafka records that these rows came from.
    """

    files: dict[str, list[DataFile]]
    rows: int
    records: int


@dataclass
class LaneChooser:
    """Chooses by the size of what a batch becomes; a record's width and its rows are learned from the batches before it.

    A row counts as wide as its record, because an explode repeats the other columns.
    """

    limits: DriverLaneSpec
    bytes_per_record: float | None = None
    rows_per_record: float = 1.0

    def choose(self, offsets: int) -> Lane:
        """Return the lane for a batch of so many offsets. The first batch, of unknown width, takes the cluster lane."""
        if self.bytes_per_record is None:
            return "cluster"
        rows = offsets * self.rows_per_record
        fits = rows <= self.limits.max_rows and rows * self.bytes_per_record <= self.limits.max_bytes
        return "driver" if fits else "cluster"

    def learn(self, records: int, value_bytes: int, rows: int) -> None:
        """Take a batch's size into account: wider records and more rows count at once, less of either slowly."""
        if records == 0:
            return
        width = value_bytes / records
        self.bytes_per_record = width if self.bytes_per_record is None else _no_less_soon(self.bytes_per_record, width)
        self.rows_per_record = _no_less_soon(self.rows_per_record, max(1.0, rows / records))


def _no_less_soon(known: float, seen: float) -> float:
    return max(seen, 0.8 * known + 0.2 * seen)


def write_by_driver(
    output: DataFrame, tables: Sequence[Table], tag: str, *, multiplies: bool, left_out: LeftOut = _NOTHING
) -> Written:
    """Collect the rows as Arrow and write them as Parquet files of each table.

    Args:
        output: The batch's rows.
        tables: Where they go.
        tag: Unique per attempt; part of the files' names.
        multiplies: Whether one record may have become several rows.
        left_out: Columns that a table does not get.

    Raises:
        TableMismatchError: A table lacks another column.
        ResultTooLargeError: They exceed ``spark.driver.maxResultSize``, or the memory for Arrow's buffers.
    """
    try:
        rows = output.toArrow()
    except (PySparkException, Py4JJavaError) as exc:
        # Which of the two it is depends on where in Spark's hand-over of Arrow batches the job was when it was aborted.
        if any(text in str(exc) for text in _TOO_LARGE):
            raise ResultTooLargeError(str(exc)) from exc
        raise
    return write_rows(rows, tables, tag, multiplies=multiplies, left_out=left_out)


def write_rows(rows: pa.Table, tables: Sequence[Table], tag: str, *, multiplies: bool, left_out: LeftOut = _NOTHING) -> Written:
    """Write rows that the driver holds as Parquet files of each table."""
    files = {table.spec.id: _write_arrow(rows, table, tag, left_out) for table in tables} if rows.num_rows else {}
    return Written(files, rows.num_rows, _count_records(rows) if multiplies else rows.num_rows)


def write_by_cluster(
    output: DataFrame, tables: Sequence[Table], tag: str, *, multiplies: bool, left_out: LeftOut = _NOTHING
) -> Written:
    """Have Spark's executors write the rows as Parquet files of each table; one file per task and partition value."""
    frame = output.persist() if len(tables) > 1 else output
    try:
        # The first write fills the cache, so that Kafka is read once; the others can then go side by side.
        first, *others = tables
        files = {first.spec.id: _write_spark(frame, first, tag, left_out)}
        with ThreadPoolExecutor(max_workers=len(tables)) as pool:
            written = {table.spec.id: pool.submit(_write_spark, frame, table, tag, left_out) for table in others}
            files |= {table_id: future.result() for table_id, future in written.items()}
        rows = sum(file.rows for file in files[first.spec.id])
        keys = [F.col(f"{KAFKA_COLUMN}.{name}") for name in _KEY_FIELDS]
        records = frame.select(*keys).distinct().count() if multiplies and rows else rows
    finally:
        if len(tables) > 1:
            frame.unpersist()
    return Written(files if rows else {}, rows, records)


def write_in_lane(output: DataFrame, table: Table, tag: str, lane: Lane) -> Written:
    """Write the rows of one table in this lane, or in the cluster's where they do not fit through the driver."""
    if lane == "driver":
        with suppress(ResultTooLargeError):
            return write_by_driver(output, [table], tag, multiplies=False)
    return write_by_cluster(output, [table], f"{tag}-c", multiplies=False)


def _write_arrow(rows: pa.Table, table: Table, tag: str, left_out: LeftOut) -> list[DataFile]:
    schema = table.schema()
    check_housed(rows.column_names, schema, table.spec.id, left_out)
    return write_data_files(fit(rows, schema), table.data_folder(), table.spec, tag)


def fit(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return the rows with the table's columns, in its order and types; a column that only the table has is null."""
    columns = [
        rows.column(field.name).cast(field.type) if field.name in rows.column_names else pa.nulls(rows.num_rows, field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def check_housed(columns: Collection[str], schema: pa.Schema, table: str, left_out: LeftOut) -> None:
    """Check that a table has a column for all that a batch gives it.

    Raises:
        TableMismatchError: It lacks one that is not left out on purpose: its values would be lost without a word.
    """
    unhoused = sorted({*columns} - {*schema.names} - {*left_out.get(table, ())})
    if unhoused:
        raise TableMismatchError(table, f"it has no column {', '.join(unhoused)} any more; restart the pipeline")


def _count_records(rows: pa.Table) -> int:
    kafka = rows.column(KAFKA_COLUMN).combine_chunks()
    keys = pa.table({name: kafka.field(name) for name in _KEY_FIELDS})
    return int(keys.group_by(list(_KEY_FIELDS)).aggregate([]).num_rows)


def _write_spark(frame: DataFrame, table: Table, tag: str, left_out: LeftOut) -> list[DataFile]:
    folder = table.data_folder() / f"lb-{tag}"
    schema = table.schema()
    check_housed(frame.columns, schema, table.spec.id, left_out)
    columns = [_as_in_table(frame, field) for field in schema if field.name in frame.columns]
    folders = _partition_folders(frame, table.spec)
    if table.spec.format == "delta":
        rows, names = frame.select(*columns), [column for _, _, column in table.spec.partition_fields()]
    else:
        rows, names = frame.select(*columns, *folders), [f"_lb_p{i}" for i in range(len(folders))]
    writer = rows.write.mode("overwrite")
    (writer.partitionBy(*names) if names else writer).parquet(str(folder))
    shutil.rmtree(folder / "_temporary", ignore_errors=True)
    return list_data_files(table.data_folder(), table.spec, folder)


def _as_in_table(frame: DataFrame, field: pa.Field) -> Column:
    """Return a column in the table's type, which may be a wider one."""
    column: Column = frame[field.name]
    kind = normalise_type(to_arrow_type(frame.schema[field.name].dataType))
    if kind == field.type or pa.types.is_nested(kind):
        return column
    return column.cast(from_arrow_type(field.type)).alias(field.name)


def _partition_folders(frame: DataFrame, spec: TableSpec) -> list[Column]:
    """One helper column per partition field: it has one value per partition, and only names the folder."""
    formats = {"year": "yyyy", "month": "yyyy-MM", "day": "yyyy-MM-dd", "hour": "yyyy-MM-dd-HH"}
    folders = []
    for index, (transform, width, column) in enumerate(spec.partition_fields()):
        if transform in formats:
            value = F.date_format(F.col(column), formats[transform])
        elif transform == "truncate":
            value = F.concat(F.lit("v"), _truncated(frame, column, width or 1))
        else:
            value = F.concat(F.lit("v"), F.col(column).cast("string"))
        folders.append(value.alias(f"_lb_p{index}"))
    return folders


def _truncated(frame: DataFrame, column: str, width: int) -> Column:
    """Iceberg's truncate: a prefix of a string; v - (((v % W) + W) % W) of a number (Iceberg spec, partition transforms)."""
    if isinstance(frame.schema[column].dataType, StringType):
        return F.substring(F.col(column), 1, width)
    return (F.col(column) - F.pmod(F.col(column), F.lit(width))).cast("string")
