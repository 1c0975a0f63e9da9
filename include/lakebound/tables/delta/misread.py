"""Which columns of a Delta table's files readers do not see as they were meant.

With column mapping, readers find a file's columns by physical names. A file that Lakebound wrote has the names that people knew
when it was committed; one of a tool that knows column mapping has physical names, and field ids. So files without ids are
compared with the columns that the table had in the version that added them, as far back as the log's JSON commits are kept.
Mode ``id`` is taken for mode ``name`` here, as readers take it for files without ids.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable

from lakebound.storage.location import Location
from lakebound.tables.delta.column_mapping import is_mapped
from lakebound.tables.delta.open import on_disk
from lakebound.tables.delta.written_for import WrittenFor, columns_of_handle, read_written_for
from lakebound.tables.footers import read_footers
from lakebound.tables.misread import MOST_FILES, Column, ColumnsLook, Compared, HeldColumn, Misreading, compare, merged
from lakebound.tables.schemas import FIELD_ID, nested_arrow

_PARTITION = "partition."
_OF_ROW_TRACKING = ("_row-id-col-", "_row-commit-version-col-")
"""How Spark's names of columns begin in which files keep row tracking; no table has them among its columns.
Source: https://github.com/delta-io/delta/blob/master/PROTOCOL.md#row-tracking."""


@dataclass(frozen=True)
class _Live:
    """A live file, as the log has it.

    Attributes:
        null_partitions: Physical names of partition columns of which the log says that they are null in the file.
    """

    path: str
    rows: int | None
    modified_ms: int
    null_partitions: frozenset[str]


def misread_columns(handle: DeltaTable, folder: Location, most_files: int = MOST_FILES) -> ColumnsLook:
    """Return what readers make of the columns of a version's files.

    Args:
        handle: The table at that version.
        folder: The table's.
        most_files: How many files are looked at, the newest ones.
    """
    live = sorted(_live_files(handle), key=lambda one: (one.modified_ms, one.path), reverse=True)
    chosen = live[:most_files]
    footers = read_footers([on_disk(folder, one.path) for one in chosen])
    look = _Look(columns_of_handle(handle), is_mapped(handle.metadata().configuration))
    # One footer after the other: that of a file with 300 columns takes 0.5 MiB.
    files = [look.at(one, footer) for one, footer in zip(chosen, footers, strict=True) if footer is not None]
    doubtful = {one.live.path for one in files if one.doubtful is not None}
    added = read_written_for(folder, handle.version(), doubtful) if doubtful else WrittenFor()
    return merged(((one.live.path, one.live.rows, look.compared(one, added)) for one in files), len(live))


def _live_files(handle: DeltaTable) -> Iterator[_Live]:
    files = pa.RecordBatchReader.from_stream(handle.get_add_actions(flatten=True)).read_all()
    partitions = [name for name in files.column_names if name.startswith(_PARTITION)]
    for row in files.select(["path", "num_records", "modification_time", *partitions]).to_pylist():
        nulls = frozenset(name.removeprefix(_PARTITION) for name in partitions if row[name] is None)
        yield _Live(row["path"], row["num_records"], row["modification_time"] or 0, nulls)


@dataclass(frozen=True)
class _File:
    """What counts of a file.

    Attributes:
        live: The file, as the log has it.
        lost: Partition columns that are null by the log alone.
        doubtful: Its columns, where it may have been written for other ones than readers find in it; else None.
    """

    live: _Live
    lost: tuple[Misreading, ...]
    doubtful: tuple[HeldColumn, ...] | None


@dataclass(frozen=True)
class _Look:
    """What the table is like at the version that is looked at.

    Attributes:
        now: Its columns.
        is_mapped: Whether readers go by physical names.
    """

    now: tuple[Column, ...]
    is_mapped: bool

    def at(self, live: _Live, footer: pq.FileMetaData) -> _File:
        """Look at a file."""
        own = footer.schema.to_arrow_schema()
        schema = pa.schema([field for field in own if not field.name.startswith(_OF_ROW_TRACKING)])
        return _File(live, tuple(_lost_partitions(live, footer, self.now)), _held(schema) if self._doubts(schema) else None)

    def _doubts(self, schema: pa.Schema) -> bool:
        if any(FIELD_ID in (one.metadata or {}) for one in schema):
            return False  # its writer knows column mapping
        return _are_renamed(self.now) if self.is_mapped else not _holds_only(schema, self.now)

    def compared(self, file: _File, written: WrittenFor) -> Compared:
        """Return what readers make of the columns of a file."""
        found = Compared() if file.doubtful is None else self._compared(file.live.path, file.doubtful, written)
        return Compared((*file.lost, *found.misread), found.is_undecided)

    def _compared(self, path: str, held: Sequence[HeldColumn], written: WrittenFor) -> Compared:
        if not self.is_mapped:
            return Compared(() if path in written.foreign else tuple(_hidden((), held, self.now)))
        known = written.columns.get(path)
        # Before column mapping was switched on, each name was its column's physical name.
        return compare(held, [_as_named(held), self.now] if known is None else [known], self.now)


def _lost_partitions(live: _Live, footer: pq.FileMetaData, now: Iterable[Column]) -> Iterator[Misreading]:
    """Yield partition columns that are null by the log and have values in the file: it was written for other partitions."""
    if not live.null_partitions:
        return
    places = {footer.schema.column(number).path: number for number in range(len(footer.schema))}
    names = {str(one.key): one.name for one in now}
    for key in sorted(live.null_partitions & places.keys()):
        chunks = [footer.row_group(group).column(places[key]).statistics for group in range(footer.num_row_groups)]
        nulls = [one.null_count for one in chunks if one is not None and one.has_null_count]
        if len(nulls) == len(chunks) and sum(nulls) < footer.num_rows:
            yield Misreading(key, names.get(key, key), None)


def _are_renamed(columns: Iterable[Column]) -> bool:
    return any(one.name != one.key or _are_renamed(one.inside) for one in columns)


def _holds_only(fields: Iterable[pa.Field], columns: Sequence[Column]) -> bool:
    inside = {one.key: one.inside for one in columns}
    return all(one.name in inside and _holds_only(nested_arrow(one.type) or (), inside[one.name]) for one in fields)


def _hidden(path: tuple[str, ...], held: Sequence[HeldColumn], now: Sequence[Column]) -> Iterator[Misreading]:
    """Yield columns that the table does not have: without column mapping, none can have been renamed or dropped."""
    inside = {one.key: one.inside for one in now}
    for one in held:
        if one.name not in inside:
            yield Misreading(".".join((*path, one.name)), None, None)
        else:
            yield from _hidden((*path, one.name), one.inside, inside[one.name])


def _held(fields: Iterable[pa.Field]) -> tuple[HeldColumn, ...]:
    return tuple(HeldColumn(one.name, one.name, _held(nested_arrow(one.type) or ())) for one in fields)


def _as_named(held: Iterable[HeldColumn]) -> tuple[Column, ...]:
    return tuple(Column(one.name, one.name, _as_named(one.inside)) for one in held)
