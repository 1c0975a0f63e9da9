"""SQL on the tables of all pipelines, by Polars and without Spark. It only reads.

A table is called by its name (``sales.orders``), or with its format before the name (``delta.sales.orders``): a pipeline may
have a table of the same name in each format.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from deltalake.exceptions import DeltaProtocolError

from lakebound.errors import LakeboundError
from lakebound.inspection.query_headings import headings
from lakebound.inspection.query_maps import with_map_values
from lakebound.spec.table import TableSpec
from lakebound.spec.table_format import TABLE_FORMATS, TableFormat
from lakebound.tables.contents import contents_of
from lakebound.tables.places import Places
from lakebound.tables.table import open_table

_READS = re.compile(r"\s*(\(\s*)*(select|with|from|values|explain|show\s+tables)\b", re.IGNORECASE)
_FILE_FUNCTION = re.compile(r"\b(?:read|scan)_(?:avro|csv|excel|delta|iceberg|ipc|json|lines|ndjson|parquet)\b", re.I)
"""By these, Polars reads any file and any address. They are looked for in the whole text, comments and quotes included: a
second reader of SQL could be led to read it otherwise than Polars does."""
_NO_PART_OF_A_NAME = re.compile(r"[\s\"`]+")
_COMMENT = re.compile(r"--[^\n]*|/\*.*?\*/", re.DOTALL)
_NO_FORMAT_BEFORE = "".join(rf"(?<!{name}\.)" for name in TABLE_FORMATS)
_TABLE_ID = re.compile(rf"\b(?:{'|'.join(TABLE_FORMATS)}):[\w.]+")
"""A table as other commands and the YAML name it; a query has a dot there."""
_NOT_FOUND = re.compile(r"relation '([^']*)' was not found")


class QueryError(LakeboundError):
    """The query cannot be run."""


class NotAQueryError(QueryError):
    """The statement does not only read."""

    def __init__(self, sql: str) -> None:
        word = (sql.split() or ["nothing"])[0]
        super().__init__(f"this command only reads: a query begins with SELECT or WITH, but this one begins with {word}")


class QueryOfFilesError(QueryError):
    """The query would read a file or an address."""

    def __init__(self, function: str) -> None:
        super().__init__(
            f"this command reads only the pipelines' tables, so the query must not contain the word {function}; read a file "
            f"with Polars or DuckDB themselves"
        )


class UnknownQueryTableError(QueryError):
    """The query names a table that no pipeline has."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        names = ", ".join(sorted(known)) or "none"
        super().__init__(f"no pipeline has a table {name!r}; the pipelines' tables are: {names}")


class NoTableYetError(QueryError):
    """The query names a table that was not created yet."""

    def __init__(self, table: TableSpec, pipeline: str) -> None:
        super().__init__(
            f"table {table.id} does not exist yet: pipeline {pipeline} creates it at its first start; "
            f"`lakebound status {pipeline}` shows the pipeline's state"
        )


class AmbiguousTableError(QueryError):
    """The query names a table that there is in both formats."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"there are a Delta table and an Iceberg table named {name!r}; write delta.{name} or iceberg.{name} "
            f"in the query, or give --format delta or --format iceberg"
        )


@dataclass(frozen=True)
class Answer:
    """What a query gave.

    Attributes:
        columns: Their names and Polars' types.
        rows: At most as many as were asked for.
        is_cut: Whether there are more.
    """

    columns: tuple[tuple[str, str], ...]
    rows: tuple[tuple[Any, ...], ...]
    is_cut: bool


@dataclass(frozen=True)
class PipelineTables:
    """The tables of a pipeline, and where they are."""

    tables: Sequence[TableSpec]
    places: Places


def names_of(table: TableSpec) -> tuple[str, ...]:
    """Return how a query may call a table without its format: a table without a namespace is in ``default``."""
    full = f"{table.namespace}.{table.short_name}"
    return (full,) if table.name == full else (table.name, full)


def resolve(tables: Iterable[TableSpec], chosen: TableFormat | None) -> dict[str, TableSpec | None]:
    """Return what each name means in a query; None where it means two tables.

    Args:
        tables: Those that there are.
        chosen: The format of names without one; None: whichever there is.
    """
    found: dict[str, TableSpec | None] = {}
    for table in tables:
        for name in names_of(table):
            found[f"{table.format}.{name}"] = table
            if chosen in (None, table.format):
                found[name] = None if name in found else table
    return found


def check_reads_only(sql: str) -> None:
    """Refuse a statement that does not begin as a query does: Polars would do it to what is in its memory, and say nothing.

    Raises:
        NotAQueryError: It does not.
        QueryOfFilesError: It names a function that reads files.
    """
    check_reads_no_file(sql)
    bare = _COMMENT.sub(" ", sql)
    if not _READS.match(bare):
        raise NotAQueryError(bare)


def check_reads_no_file(sql: str) -> None:
    """Refuse a query, or a part of one, that names a function by which Polars reads any file.

    Raises:
        QueryOfFilesError: It does.
    """
    if found := _FILE_FUNCTION.search(sql):
        raise QueryOfFilesError(found[0])


def run_query(sql: str, tables: Mapping[str, PipelineTables], *, chosen: TableFormat | None = None, limit: int = 0) -> Answer:
    """Return what a query gives.

    Args:
        sql: The query.
        tables: Those of each pipeline, and where they are.
        chosen: The format of tables that are called without one.
        limit: Maximum number of rows; 0 means all.

    Raises:
        QueryError: The query cannot be run; the sentence says why.
    """
    import polars as pl

    check_reads_only(sql)
    every = [(table, one.places.read_only()) for one in tables.values() for table in one.tables]
    meant = [(table, places) for table, places in every if may_be_named(sql, table, chosen)]
    there = [(table, places) for table, places in meant if _exists(table, places)]
    names, held = resolve((table for table, _ in there), chosen), {table.id: contents_of(table, at) for table, at in there}
    try:
        frames = {name: held[table.id].frame() for name, table in names.items() if table is not None}
        with warnings.catch_warnings():
            # Polars plans an Iceberg scan with PyIceberg, and recommends a plugin of its own.
            warnings.simplefilter("ignore", pl.exceptions.PerformanceWarning)
            sql, frames = with_map_values(sql, frames)
            found = pl.SQLContext(frames).execute(sql)
            frame = (found.limit(limit + 1) if limit else found).collect()
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, DeltaProtocolError, OSError) as exc:
        raise _explained(exc, sql, tables, names, chosen) from exc
    rows = frame.rows()
    shown = headings(sql, frame.columns)
    columns = tuple((name, str(kind)) for name, kind in zip(shown, frame.dtypes, strict=True))
    return Answer(columns, tuple(rows[:limit] if limit else rows), bool(limit) and len(rows) > limit)


def may_be_named(sql: str, table: TableSpec, chosen: TableFormat | None) -> bool:
    """Whether a query may mean a table; one that it does not mean need not be opened, and may be broken.

    Args:
        sql: The query.
        table: The table.
        chosen: The format of tables that are called without one.
    """
    text = _NO_PART_OF_A_NAME.sub("", sql)
    for name in names_of(table):
        bare = f"{_NO_FORMAT_BEFORE}{re.escape(name)}"
        if f"{table.format}.{name}" in text or (chosen in (None, table.format) and re.search(bare, text)):
            return True
    return False


def _exists(table: TableSpec, places: Places) -> bool:
    return open_table(table, places).exists()


def _explained(
    exc: BaseException,
    sql: str,
    tables: Mapping[str, PipelineTables],
    names: Mapping[str, TableSpec | None],
    chosen: TableFormat | None,
) -> QueryError:
    """Return what is wrong with a query in words that name a way out."""
    missing = _NOT_FOUND.search(str(exc))
    if missing is None:
        lines = [line.strip() for line in str(exc).splitlines() if line.strip()]
        as_told = _TABLE_ID.search(sql)
        todo = (
            f"; write {as_told[0].replace(':', '.')} instead of {as_told[0]}" if as_told and "parser error" in str(exc) else ""
        )
        return QueryError(f"the query cannot be run: {(lines or [type(exc).__name__])[0]}{todo}")
    name = missing[1]
    if name in names:
        return AmbiguousTableError(name)
    declared = [(pipeline, table) for pipeline, one in tables.items() for table in one.tables]
    for pipeline, table in declared:
        if name in resolve([table], chosen):
            return NoTableYetError(table, pipeline)
    return UnknownQueryTableError(name, {f"{table.format}.{table.name}" for _, table in declared})
