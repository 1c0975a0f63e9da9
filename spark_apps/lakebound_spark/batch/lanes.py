"""What Spark reads becomes files in one of two lanes: the driver collects and writes it, or the executors write it."""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_type, to_arrow_type
from pyspark.sql.types import StringType, StructField, StructType

from lakebound.spec.pipeline import KAFKA_COLUMN
from lakebound.spec.table import PartitionField
from lakebound.storage.location import Location, delete_all
from lakebound.tables.datafiles import HELPER_COLUMN, DataFileWriter, list_data_files, wait_stored
from lakebound.tables.fitting import fit_rows
from lakebound.tables.schemas import id_of, normalise_type
from lakebound.tables.table import DataFile
from lakebound.tables.target import LandingTarget
from lakebound_spark.batch.landable import LandableCheck
from lakebound_spark.batch.observation import Watched, watch
from lakebound_spark.batch.row_hours import HourColumn
from lakebound_spark.batch.row_numbers import numbered_parts
from lakebound_spark.batch.row_writer import KEY_FIELDS, LeftOut, Written, check_housed, write_rows
from lakebound_spark.column_names import column_named

WrittenBy = Literal["driver", "cluster"]


@dataclass
class RowNumbers:
    """Whether the rows of each record are numbered before they are written by executors."""

    are_made: bool = False


@dataclass(frozen=True)
class How:
    """How rows of a pipeline become files.

    Attributes:
        check: Finds rows that cannot land.
        multiplies: Whether a record may become several rows.
        left_out: Columns that a target does not get, by its id.
        hour_column: What gives a row its hour, where that is asked.
        numbers: What earlier batches showed of the numbers of a record's rows.
    """

    check: LandableCheck
    multiplies: bool = False
    left_out: LeftOut = field(default_factory=dict)
    hour_column: HourColumn | None = None
    numbers: RowNumbers = field(default_factory=RowNumbers)


PLAIN = How(LandableCheck(has_transform=False))
"""Of rows that Lakebound made itself."""


_SPARK_FIELD_ID = "parquet.field.id"
"""In the metadata of a column of Spark's."""

_TOO_LARGE = ("maxResultSize", "org.apache.arrow.memory.OutOfMemoryException")
"""In the text of a job's failure: its rows are more than the driver takes, or than a task has buffers for."""


class ResultTooLargeError(Exception):
    """The batch's rows do not fit through the driver; the cluster lane takes the same batch."""


class UnlandableRowsError(Exception):
    """Some of the batch's rows cannot land; no file was kept. Their records are to be found, and put into quarantine."""

    def __init__(self) -> None:
        super().__init__(
            "rows of the batch cannot land; if their records were already set aside, a function of the transform is not "
            "deterministic: it gave other rows when it was called again"
        )


def write_by_driver(output: DataFrame, tables: Sequence[LandingTarget], tag: str, how: How) -> Written:
    """Collect the rows as Arrow and write them as Parquet files of each table.

    Args:
        output: The batch's rows.
        tables: Where they go.
        tag: Unique per attempt; part of the files' names.
        how: How they become files.

    Raises:
        TableMismatchError: A table lacks a column that is not left out.
        ResultTooLargeError: They exceed ``spark.driver.maxResultSize``, or the memory for Arrow's buffers.
        UnlandableRowsError: Some of them cannot land.
    """
    rows = collect(output)
    if not how.check.holds(rows):
        raise UnlandableRowsError
    return write_rows(rows, tables, tag, multiplies=how.multiplies, left_out=how.left_out, hour_column=how.hour_column)


def collect(output: DataFrame) -> pa.Table:
    """Return the rows as Arrow.

    Raises:
        ResultTooLargeError: They exceed ``spark.driver.maxResultSize``, or the memory for Arrow's buffers.
    """
    try:
        return output.toArrow()
    except (PySparkException, Py4JJavaError) as exc:
        # Which of the two it is depends on where in Spark's hand-over of Arrow batches the job was when it was aborted.
        if any(text in str(exc) for text in _TOO_LARGE):
            raise ResultTooLargeError(str(exc)) from exc
        raise


def write_by_cluster(output: DataFrame, tables: Sequence[LandingTarget], tag: str, how: How) -> Written:
    """Have Spark's executors write the rows as Parquet files of each table; one file per core and partition value.

    To number the rows of each record takes a shuffle. So it is done only where the numbers that the transform gave are found
    not to be right, and the rows are written once more; the rows of later batches are numbered at once.

    Args:
        output: Rows of the batch; nothing of them is computed yet.
        tables: Each of them gets every row.
        tag: Start of the files' names; it is unique per attempt.
        how: Whether records multiply, which columns are left out, and which rows cannot land.

    Raises:
        TableMismatchError: A table lacks a column that is not left out.
        UnlandableRowsError: Some of the rows cannot land.
    """
    if how.multiplies and not how.numbers.are_made:
        written = _write_by_cluster(output, tables, tag, how)
        if written is not None:
            return written
        how.numbers.are_made, tag = True, f"{tag}-n"
    written = _write_by_cluster(_numbered(output) if how.multiplies else output, tables, tag, how)
    assert written is not None, "rows that were numbered are"
    return written


def _numbered(output: DataFrame) -> DataFrame:
    keys = [F.col(f"{KAFKA_COLUMN}.{name}") for name in KEY_FIELDS]
    together = output.repartition(output.sparkSession.sparkContext.defaultParallelism, *keys).sortWithinPartitions(*keys)
    return together.mapInArrow(numbered_parts, output.schema)


def _write_by_cluster(output: DataFrame, tables: Sequence[LandingTarget], tag: str, how: How) -> Written | None:
    """Return what was written; None where nothing was kept, as rows of a record are not numbered from 0 on."""
    output, unlandable = _landable(output, tag, how.check)
    hour_column = how.hour_column
    hours = None if hour_column is None else watch(output, f"hours-{tag}", hour_column.aggregate().alias("hours"))
    output = output if hours is None else hours.rows
    output = output.coalesce(output.sparkSession.sparkContext.defaultParallelism)
    frame = output.persist() if len(tables) > 1 else output
    try:
        # The first write fills the cache, so that Kafka is read once; the others can then go side by side.
        first, *others = tables
        files = {first.spec.id: _write_table(frame, first, tag, how.left_out)}
        with ThreadPoolExecutor(max_workers=len(tables)) as pool:
            written = {table.spec.id: pool.submit(_write_table, frame, table, tag, how.left_out) for table in others}
            files |= {table_id: future.result() for table_id, future in written.items()}
        if unlandable is not None and unlandable.seen()["rows"]:
            _discard(tables, tag, files)
            raise UnlandableRowsError
        rows = records = sum(file.rows for file in files[first.spec.id])
        if how.multiplies and rows:
            records, misnumbered = _counted(frame)
            if misnumbered:
                _discard(tables, tag, files)
                return None
        touched = None if hours is None else HourColumn.of_text(hours.seen()["hours"])
    finally:
        if len(tables) > 1:
            frame.unpersist()
    return Written(files if rows else {}, rows, records, touched)


def _counted(frame: DataFrame) -> tuple[int, int]:
    """Return of how many records the rows are, and of how many of these they are not numbered from 0 on."""
    ordinal = F.col(f"{KAFKA_COLUMN}.ordinal")
    keys = [F.col(f"{KAFKA_COLUMN}.{name}") for name in KEY_FIELDS]
    of_each = frame.groupBy(*keys).agg(F.count(F.lit(1)).alias("rows"), F.collect_set(ordinal).alias("numbers"))
    size, highest = F.size("numbers"), F.array_max("numbers")
    is_right = (size == F.col("rows")) & (F.array_min("numbers") == 0) & (highest == size - 1)
    [found] = of_each.agg(F.count(F.lit(1)), F.count_if(~F.coalesce(is_right, F.lit(False)))).collect()
    return int(found[0]), int(found[1])


def _landable(output: DataFrame, tag: str, check: LandableCheck) -> tuple[DataFrame, Watched | None]:
    """Return the rows that can land, and what counts the others while they are written."""
    if not check.is_needed:
        return output, None
    problem = check.problem(output)
    watched = watch(output, f"unlandable-{tag}", F.count_if(problem.isNotNull()).alias("rows"))
    return watched.rows.where(problem.isNull()), watched


def _discard(tables: Sequence[LandingTarget], tag: str, files: Mapping[str, Sequence[DataFile]]) -> None:
    for table in tables:
        if table.layout().folder.is_local:
            shutil.rmtree(_folder(table, tag), ignore_errors=True)
        else:
            delete_all(file.path for file in files[table.spec.id])


def _folder(table: LandingTarget, tag: str) -> Path:
    return table.layout().folder.path / f"lb-{tag}"


def _write_table(frame: DataFrame, table: LandingTarget, tag: str, left_out: LeftOut) -> list[DataFile]:
    layout = table.layout()
    if layout.folder.is_local and not (layout.columns is not None and has_collections(layout.columns)):
        return _write_spark(frame, table, tag, left_out)
    return _write_by_executors(frame, table, tag, left_out)


def _write_by_executors(frame: DataFrame, table: LandingTarget, tag: str, left_out: LeftOut) -> list[DataFile]:
    """Have each executor put its own files under names that are no other's, and tell them.

    Spark's own writer renames files at the end, which a store does by copying; and it gives no ids to what is in lists and
    maps. What a task that was tried again has put is told by nobody, and so never committed.
    """
    layout, schema = table.layout(), table.schema()
    if layout.folder.is_local:
        layout = replace(layout, folder=Location(str(_folder(table, tag))))
    check_housed(frame.columns, schema, table.spec.id, left_out)
    columns = [_as_in_table(frame, field, layout.told_by_log) for field in schema if field.name in frame.columns]

    def put(batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
        writer = DataFileWriter(layout, tag)
        for batch in batches:
            writer.write(fit_rows(pa.Table.from_batches([batch]), schema))
        files = writer.close()
        wait_stored(files)
        yield pa.record_batch([pa.array([pickle.dumps(replace(file, stored=None)) for file in files], pa.binary())], ["file"])

    told = frame.select(*columns).mapInArrow(put, "file binary").collect()
    return [pickle.loads(row["file"]) for row in told]  # made by the function above


def _write_spark(frame: DataFrame, table: LandingTarget, tag: str, left_out: LeftOut) -> list[DataFile]:
    layout, schema = table.layout(), table.schema()
    folder = _folder(table, tag)
    check_housed(frame.columns, schema, table.spec.id, left_out)
    columns = [_as_in_table(frame, field, layout.told_by_log) for field in schema if field.name in frame.columns]
    folders = _partition_folders(frame, layout.fields)
    names = [f"{HELPER_COLUMN}{number}" for number in range(len(folders))]
    rows = frame.select(*columns, *(value.alias(name) for name, value in zip(names, folders, strict=True)))
    if layout.columns is not None:
        rows = rows.to(with_field_ids(rows.schema, layout.columns))
    writer = rows.write.mode("overwrite")
    (writer.partitionBy(*names) if names else writer).parquet(str(folder))
    shutil.rmtree(folder / "_temporary", ignore_errors=True)
    return list_data_files(layout, folder)


def has_collections(fields: Iterable[pa.Field]) -> bool:
    """Whether there is a list or a map among fields, or in them."""
    kinds = [field.type for field in fields]
    return any(
        pa.types.is_list(kind) or pa.types.is_map(kind) or (pa.types.is_struct(kind) and has_collections(kind))
        for kind in kinds
    )


def with_field_ids(rows: StructType, columns: Iterable[pa.Field]) -> StructType:
    """Return Spark's schema with the ids that its Parquet writer gives to columns, and to fields of structs.

    Args:
        rows: Schema of the rows; what is not a column of the table gets none.
        columns: Of the table, with their ids.
    """
    told = {field.name: field for field in columns}
    return StructType([_with_field_id(field, told.get(field.name)) for field in rows])


def _with_field_id(field: StructField, told: pa.Field | None) -> StructField:
    if told is None:
        return field
    kind = with_field_ids(field.dataType, told.type) if isinstance(field.dataType, StructType) else field.dataType
    ids = {_SPARK_FIELD_ID: id_of(told)}
    return StructField(field.name, kind, field.nullable, {**field.metadata, **ids})


def _as_in_table(frame: DataFrame, field: pa.Field, told_by_log: Collection[str]) -> Column:
    """Return a column in the table's type, which may be a wider one.

    An empty text is null in a Delta partition column, by the protocol of its log: so it is in the file, too.
    """
    column = column_named(field.name)
    if field.name in told_by_log and pa.types.is_string(field.type):
        column = F.when(column != "", column).alias(field.name)
    kind = normalise_type(to_arrow_type(frame.schema[field.name].dataType))
    if kind == field.type or pa.types.is_nested(kind):
        return column
    return column.cast(from_arrow_type(field.type)).alias(field.name)


def _partition_folders(frame: DataFrame, fields: Sequence[PartitionField]) -> list[Column]:
    """One helper column per partition field: it has one value per partition, and only names the folder.

    A text is in it as its hash: a name has up to 255 bytes.
    """
    formats = {"year": "yyyy", "month": "yyyy-MM", "day": "yyyy-MM-dd", "hour": "yyyy-MM-dd-HH"}
    folders = []
    for one in fields:
        if one.transform in formats:
            folders.append(F.date_format(column_named(one.column), formats[one.transform]))
            continue
        value = _truncated(frame, one) if one.transform == "truncate" else column_named(one.column)
        is_text = isinstance(frame.schema[one.column].dataType, StringType)
        folders.append(F.sha2(value.cast("binary"), 256) if is_text else F.concat(F.lit("v"), value.cast("string")))
    return folders


def _truncated(frame: DataFrame, field: PartitionField) -> Column:
    """Iceberg's truncate: a prefix of a string; v - (((v % W) + W) % W) of a number (Iceberg spec, partition transforms)."""
    width = field.width or 1
    if isinstance(frame.schema[field.column].dataType, StringType):
        return F.substring(column_named(field.column), 1, width)
    return column_named(field.column) - F.pmod(column_named(field.column), F.lit(width))
