"""Rows of data files as DataFrames, and the columns that say of each row what needs more than the row to be known."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import reduce
from operator import and_

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import LongType, StringType, StructField, StructType

from lakebound.inspection.validation.expectations import UniqueOverWindow, ValuesInTable
from lakebound.inspection.validation.landed_files import LandedFile, LineReader, files_there
from lakebound.inspection.validation.line import LineCommit
from lakebound.spec.pipeline import KAFKA_COLUMN
from lakebound.spec.table import TableSpec
from lakebound.tables.contents import contents_of
from lakebound.tables.places import Places
from lakebound.tables.table import open_table
from lakebound_spark.column_names import column_named
from lakebound_spark.validate.copies import Copies
from lakebound_spark.validate.small_files import are_small, read_small_files

KEY = ("topic", "partition", "offset", "ordinal")
COMMITTED_AT_MS = "_lakebound_committed_at_ms"
_FILE = "_lakebound_file"
_VALUES = "_lakebound_values"


def read_files(
    session: SparkSession, files: Sequence[LandedFile], schema: pa.Schema, copies: Copies, *, with_commits: bool = False
) -> DataFrame:
    """Return the rows of the files as the table's columns.

    Args:
        session: Spark's.
        files: At least one; Delta's partition columns, which no file holds, come from what is known of each.
        schema: The table's columns.
        copies: Of files that lie in a store.
        with_commits: Also add ``COMMITTED_AT_MS``, when the row's commit was made.
    """
    files, partitions = copies.here(files), list(files[0].partition)
    columns = from_arrow_schema(schema, prefer_timestamp_ntz=True)
    inside = StructType([field for field in columns.fields if field.name not in partitions])
    wanted = [column_named(field.name).cast(field.dataType).alias(field.name) for field in columns.fields]
    wanted += [F.col(COMMITTED_AT_MS)] if with_commits else []
    if are_small(files):
        held = pa.schema([field for field in schema if field.name not in partitions])
        committed_at = COMMITTED_AT_MS if with_commits else None
        small = read_small_files(session, files, held, inside, committed_at=committed_at)
        if small is not None:
            return small.select(*wanted) if partitions else small
    rows = session.read.schema(inside).parquet(*dict.fromkeys(str(file.path) for file in files))
    if not (partitions or with_commits):
        return rows
    known = StructType(
        [
            StructField(_FILE, StringType()),
            StructField(COMMITTED_AT_MS, LongType()),
            *(StructField(name, StringType()) for name in partitions),
        ]
    )
    said = session.createDataFrame(
        [(file.path.name, file.committed_at_ms, *(file.partition[name] for name in partitions)) for file in files], known
    )
    joined = rows.withColumn(_FILE, F.col("_metadata.file_name")).join(F.broadcast(said), _FILE)
    return joined.select(*wanted)


def read_table(
    session: SparkSession, spec: TableSpec, places: Places, copies: Copies, *, since_ms: int | None = None
) -> DataFrame | None:
    """Return a table's rows, without files that hold only older records; None where there are none."""
    files = [LandedFile(one.path, "", 0, one.rows, one.partition) for one in contents_of(spec, places).files(since_ms)]
    return read_files(session, files, open_table(spec, places).schema(), copies) if files else None


def helper_name(label: str, number: int) -> str:
    """Return the name of an expectation's own column: any engine takes it, and a person knows it again."""
    return f"{re.sub(r'[^A-Za-z0-9]+', '_', label).strip('_')[:60]}_{number}"


def key_columns() -> list[Column]:
    """Return where in Kafka a row came from, as columns of its own."""
    return [F.col(f"{KAFKA_COLUMN}.{name}").alias(f"kafka_{name}") for name in KEY]


def with_copy_number(rows: DataFrame, window: DataFrame, expected: UniqueOverWindow, name: str) -> DataFrame:
    """Return the rows with which copy of its values each is: 1 for the first, by Kafka's time; null where a value is null.

    Args:
        rows: Those that are validated, which are among ``window``.
        window: Those among which values must be unique.
        expected: Which columns.
        name: Of the new column.
    """
    values = F.struct(*(F.col(column) for column in expected.columns))
    whole = reduce(and_, (F.col(column).isNotNull() for column in expected.columns))
    narrow = [values.alias(_VALUES), F.col(f"{KAFKA_COLUMN}.timestamp").alias("_at"), *key_columns()]
    candidates = window.where(whole).select(*narrow)
    asked = rows.where(whole).select(values.alias(_VALUES)).distinct()
    among = candidates.join(asked, _VALUES, "left_semi")
    order = Window.partitionBy(_VALUES).orderBy("_at", *(f"kafka_{part}" for part in KEY))
    numbered = among.select(*(f"kafka_{part}" for part in KEY), F.row_number().over(order).alias(name))
    keys = [F.col(f"{KAFKA_COLUMN}.{part}").eqNullSafe(numbered[f"kafka_{part}"]) for part in KEY]
    return rows.join(numbered, reduce(and_, keys), "left").drop(*(f"kafka_{part}" for part in KEY))


def unique_window(
    session: SparkSession,
    expected: UniqueOverWindow,
    table: TableSpec,
    places: Places,
    copies: Copies,
    rows: DataFrame,
    reader: LineReader,
    newest: LineCommit,
) -> DataFrame:
    """Return the rows among which the values of ``rows`` must be unique, these included.

    Args:
        session: Spark's.
        expected: Its window: seconds of Kafka's time, or a number of commits.
        table: The table of the rows.
        places: Where tables are.
        copies: Of files that lie in a store.
        rows: Those that are validated.
        reader: Reads the table's commits and files.
        newest: Newest commit of the validated range; the window ends there.
    """
    if expected.window_seconds is not None:
        last = rows.agg(F.max(f"{KAFKA_COLUMN}.timestamp").cast("double")).collect()[0][0] or 0.0
        since = last - expected.window_seconds
        found = read_table(session, table, places, copies, since_ms=int(since * 1000))
        recent = F.col(f"{KAFKA_COLUMN}.timestamp") >= F.timestamp_seconds(F.lit(since))
        # A rewind may have taken the range's own rows from the table since.
        return rows if found is None else found.where(recent).unionByName(rows).dropDuplicates([KAFKA_COLUMN])
    files = reader.files(_last_landings(reader, newest, expected.over_commits or 1))
    landed = read_files(session, files_there(files), open_table(table, places).schema(), copies)
    return landed.unionByName(rows).dropDuplicates([KAFKA_COLUMN])


def with_presence(
    session: SparkSession, rows: DataFrame, expected: ValuesInTable, places: Places, copies: Copies, name: str
) -> DataFrame:
    """Return the rows with whether their values stand in the other table; null where one of them is null.

    Args:
        session: Spark's.
        rows: Those that are validated.
        expected: The other table, and which of its columns belongs to which column of the rows.
        places: Where tables are.
        copies: Of files that lie in a store.
        name: Name of the new column.
    """
    format_, _, other_name = expected.table.partition(":")
    other = read_table(session, TableSpec.model_validate({"format": format_, "name": other_name}), places, copies)
    own = list(expected.columns)
    whole = reduce(and_, (F.col(column).isNotNull() for column in own))
    if other is None:
        return rows.withColumn(name, F.when(whole, F.lit(False)))
    theirs = other.select(*(F.col(their).alias(f"_their_{column}") for column, their in expected.columns.items())).distinct()
    same = reduce(and_, (F.col(column) == F.col(f"_their_{column}") for column in own))
    found = rows.join(theirs.withColumn("_is_there", F.lit(True)), same, "left")
    presence = F.when(whole, F.coalesce(F.col("_is_there"), F.lit(False)))
    return found.withColumn(name, presence).drop("_is_there", *(f"_their_{column}" for column in own))


def _last_landings(reader: LineReader, newest: LineCommit, commits: int) -> list[LineCommit]:
    """Return the last commits that landed rows, up to the range's newest; the line is read hardly further than that."""
    wanted = commits
    while True:
        seen = 0

        def is_enough(position: int, wanted: int = wanted) -> bool:
            nonlocal seen
            seen += position <= newest.position
            return seen >= wanted

        landings = [step for step in reader.line(is_enough).steps if step.lands and step.position <= newest.position]
        if len(landings) >= commits or seen < wanted:
            return landings[:commits]
        wanted *= 2
