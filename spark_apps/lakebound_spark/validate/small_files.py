"""Rows of many small files, read by pyarrow and handed to Spark at once.

A range of a fast stream is hundreds of files with a few rows each. Spark opens each file again for every question that needs
its rows; pyarrow reads all of them once, in less time than Spark needs for one pass.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import LongType, StringType, StructType

from lakebound.inspection.validation.landed_files import LandedFile

MAX_ROWS = 50_000
MAX_BYTES = 32 * 1024 * 1024
"""Maximum size of the compressed files; their rows are in memory as Arrow data, and once more in the JVM."""

_log = logging.getLogger(__name__)


class _OtherColumnsError(Exception):
    """A file calls a column otherwise than the table does."""


def are_small(files: Sequence[LandedFile]) -> bool:
    """Whether all rows of the files fit into memory, as far as is known."""
    if any(file.rows is None for file in files) or sum(file.rows or 0 for file in files) > MAX_ROWS:
        return False
    return sum(file.path.path.stat().st_size for file in files) <= MAX_BYTES


def read_small_files(
    session: SparkSession,
    files: Sequence[LandedFile],
    schema: pa.Schema,
    columns: StructType,
    *,
    committed_at: str | None = None,
) -> DataFrame | None:
    """Return the rows of files with the text of their partition values; None where only Spark can read them.

    Args:
        session: Spark's.
        files: At least one.
        schema: The columns inside the files.
        columns: The same, as Spark's types.
        committed_at: Name of a further column for when the row's commit was made; None: no such column.
    """
    partitions = list(files[0].partition)
    try:
        # A file is read once, as Spark does it, even where two commits name it.
        tables = [_read(file, schema, partitions, committed_at) for file in {file.path: file for file in files}.values()]
        whole = pa.concat_tables(tables)
    except (pa.ArrowException, _OtherColumnsError) as exc:
        _log.info("the files are left to Spark: %s", exc)
        return None
    wanted = StructType(list(columns.fields))
    for name in partitions:
        wanted = wanted.add(name, StringType())
    if committed_at is not None:
        wanted = wanted.add(committed_at, LongType())
    return session.createDataFrame(whole, wanted)


def _read(file: LandedFile, schema: pa.Schema, partitions: Sequence[str], committed_at: str | None) -> pa.Table:
    with pq.ParquetFile(file.path.path) as opened:
        inside = opened.schema_arrow.names
    # A column that a file lacks is null in it; Spark, which ignores case, might still find it.
    missing = {field.name.lower() for field in schema if field.name not in inside}
    if missing & {name.lower() for name in inside}:
        raise _OtherColumnsError(f"{file.path.name} has {', '.join(sorted(missing))} in another case")
    rows = pq.read_table(file.path.path, schema=schema, partitioning=None)
    for name in partitions:
        rows = rows.append_column(name, pa.array([file.partition[name]] * rows.num_rows, pa.string()))
    if committed_at is not None:
        rows = rows.append_column(committed_at, pa.array([file.committed_at_ms] * rows.num_rows, pa.int64()))
    return rows
