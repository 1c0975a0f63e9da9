"""What Spark reads becomes files in one of two lanes: the driver collects and writes it, or the executors write it."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Literal, TypedDict

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_type, to_arrow_type
from pyspark.sql.types import StringType

from lakebound.spec import TableSpec
from lakebound.tables import KAFKA_COLUMN, DataFile, Table
from lakebound.tables.datafiles import list_data_files
from lakebound.tables.schemas import normalise_type
from lakebound_spark.row_writer import KEY_FIELDS, NOTHING, LeftOut, Written, check_housed, write_rows

Lane = Literal["driver", "cluster"]


class How(TypedDict):
    """How rows of a pipeline become files: whether a record may become several, and what is left out."""

    multiplies: bool
    left_out: LeftOut


_TOO_LARGE = ("maxResultSize", "org.apache.arrow.memory.OutOfMemoryException")
"""In the text of a job's failure: its rows are more than the driver takes, or than a task has buffers for."""


class ResultTooLargeError(Exception):
    """The batch's rows do not fit through the driver; the cluster lane takes the same batch."""


def write_by_driver(
    output: DataFrame, tables: Sequence[Table], tag: str, *, multiplies: bool, left_out: LeftOut = NOTHING
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


def write_by_cluster(
    output: DataFrame, tables: Sequence[Table], tag: str, *, multiplies: bool, left_out: LeftOut = NOTHING
) -> Written:
    """Have Spark's executors write the rows as Parquet files of each table; one file per core and partition value."""
    output = output.coalesce(output.sparkSession.sparkContext.defaultParallelism)
    frame = output.persist() if len(tables) > 1 else output
    try:
        # The first write fills the cache, so that Kafka is read once; the others can then go side by side.
        first, *others = tables
        files = {first.spec.id: _write_spark(frame, first, tag, left_out)}
        with ThreadPoolExecutor(max_workers=len(tables)) as pool:
            written = {table.spec.id: pool.submit(_write_spark, frame, table, tag, left_out) for table in others}
            files |= {table_id: future.result() for table_id, future in written.items()}
        rows = sum(file.rows for file in files[first.spec.id])
        keys = [F.col(f"{KAFKA_COLUMN}.{name}") for name in KEY_FIELDS]
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
