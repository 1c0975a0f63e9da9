"""Rows that the driver holds become Parquet files of each table, at once or slice by slice. Nothing is committed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from types import TracebackType

import pyarrow as pa

from lakebound.errors import TableMismatchError
from lakebound.tables.datafiles import DataFileWriter, write_data_files
from lakebound.tables.fitting import fit_rows
from lakebound.tables.table import DataFile
from lakebound.tables.target import LandingTarget
from lakebound_spark.batch.row_hours import HourColumn
from lakebound_spark.batch.row_numbers import KEY_FIELDS as KEY_FIELDS
from lakebound_spark.batch.row_numbers import numbered

LeftOut = Mapping[str, Collection[str]]
"""By table id, columns of a batch that the table does not get, as ``schema_evolution`` says."""

NOTHING: LeftOut = {}
ROW_GROUP_BYTES = 64 * 1024 * 1024
"""In Arrow, so that it takes as much memory while it is written: some 10 to 20 MiB of a file."""


@dataclass(frozen=True)
class Written:
    """Files that lie in the tables' folders, not committed yet.

    Attributes:
        files: Per table id.
        rows: Rows of one table (each gets the same).
        records: Kafka records that these rows came from.
        hours: To which hours the rows belong; None where that is not asked.
    """

    files: dict[str, list[DataFile]]
    rows: int
    records: int
    hours: frozenset[int] | None = None


class RowWriter:
    """Writes slices of one batch's rows to every table, in the background where there is more than one row group of them.

    As a context it deletes at its end what was not closed.
    """

    def __init__(
        self,
        tables: Sequence[LandingTarget],
        tag: str,
        left_out: LeftOut,
        pool: Executor,
        *,
        multiplies: bool = False,
        hour_column: HourColumn | None = None,
    ) -> None:
        """Write nothing yet.

        Args:
            tables: Where the rows go.
            tag: Unique per attempt; part of the files' names.
            left_out: Columns that a table does not get.
            pool: Writes to the tables side by side.
            multiplies: Whether one record may give several rows, all of them in one slice; only then they are numbered.
            hour_column: What gives the rows their hour; None where nobody asks.
        """
        self._writers = {table.spec.id: DataFileWriter(table.layout(), tag) for table in tables}
        self._schemas = {table.spec.id: table.schema() for table in tables}
        self._left_out = left_out
        self._pool = pool
        self._multiplies = multiplies
        self._hour_column = hour_column
        self._hours: set[int] = set()
        self._held: list[pa.Table] = []
        self._held_bytes = 0
        self._writing: list[Future[None]] = []
        self._rows = 0
        self._records = 0
        self._is_closed = False

    def __enter__(self) -> RowWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if not self._is_closed:
            for future in self._writing:
                future.exception()
            for writer in self._writers.values():
                writer.discard()

    def write(self, rows: pa.Table) -> None:
        """Take a slice. What a slice before it met while it was written is raised here.

        Raises:
            TableMismatchError: A table lacks a column.
        """
        rows, records = numbered(rows) if self._multiplies else (rows, rows.num_rows)
        self._rows += rows.num_rows
        self._records += records
        if self._hour_column is not None:
            self._hours |= self._hour_column.of_rows(rows)
        self._held.append(rows)
        self._held_bytes += rows.nbytes
        if self._held_bytes >= ROW_GROUP_BYTES:
            self._hand_over()

    def close(self) -> Written:
        """Write what is held, and return the files."""
        if self._held:
            self._hand_over()
        self._wait()
        files = {table_id: writer.close() for table_id, writer in self._writers.items()}
        self._is_closed = True
        hours = None if self._hour_column is None else frozenset(self._hours)
        return Written(files if self._rows else {}, self._rows, self._records, hours)

    def _hand_over(self) -> None:
        rows, self._held, self._held_bytes = pa.concat_tables(self._held), [], 0
        self._wait()
        self._writing = [self._pool.submit(self._write, table_id, rows) for table_id in self._writers]

    def _wait(self) -> None:
        writing, self._writing = self._writing, []
        errors = [error for future in writing if (error := future.exception()) is not None]
        if errors:
            raise errors[0]

    def _write(self, table_id: str, rows: pa.Table) -> None:
        check_housed(rows.column_names, self._schemas[table_id], table_id, self._left_out)
        self._writers[table_id].write(fit_rows(rows, self._schemas[table_id]))


def write_rows(
    rows: pa.Table,
    tables: Sequence[LandingTarget],
    tag: str,
    *,
    multiplies: bool,
    left_out: LeftOut = NOTHING,
    hour_column: HourColumn | None = None,
) -> Written:
    """Write rows that the driver holds as Parquet files of each table.

    Args:
        rows: Rows of the batch, with all columns of the pipeline.
        tables: Each of them gets every row.
        tag: Start of the files' names; it is unique per attempt.
        multiplies: Whether one record may give several rows; only then they are numbered.
        left_out: Columns that a table does not get, by table id.
        hour_column: What gives the rows their hour; None where nobody asks.
    """
    rows, records = numbered(rows) if multiplies else (rows, rows.num_rows)
    hours = None if hour_column is None else hour_column.of_rows(rows)
    files = {table.spec.id: _write_arrow(rows, table, tag, left_out) for table in tables} if rows.num_rows else {}
    return Written(files, rows.num_rows, records, hours)


def _write_arrow(rows: pa.Table, table: LandingTarget, tag: str, left_out: LeftOut) -> list[DataFile]:
    schema = table.schema()
    check_housed(rows.column_names, schema, table.spec.id, left_out)
    return write_data_files(fit_rows(rows, schema), table.layout(), tag)


def check_housed(columns: Collection[str], schema: pa.Schema, table: str, left_out: LeftOut) -> None:
    """Check that a table has a column for all that a batch gives it.

    Args:
        columns: Names of the columns that the batch has.
        schema: Columns of the table.
        table: Id of the table, as in ``left_out``.
        left_out: Columns that a table does not get, by table id.

    Raises:
        TableMismatchError: It lacks one that is not left out on purpose: its values would be lost silently.
    """
    unhoused = sorted({*columns} - {*schema.names} - {*left_out.get(table, ())})
    if unhoused:
        raise TableMismatchError(table, f"it has no column {', '.join(unhoused)} any more; restart the pipeline")
