"""Rewriting the small files of an Iceberg table without Spark: for tables in a catalog of which Spark is told nothing.

PyIceberg reads the files, so columns that were added or renamed since are as in the table. What is written is what the stream
would write. Tables with delete files are left alone: a file holds more rows than the table then.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.io.pyarrow import ArrowScan
from pyiceberg.table import FileScanTask
from pyiceberg.table import Table as Handle

from lakebound.control.folder import ControlFolder
from lakebound.control.turns import AskForTurn
from lakebound.errors import CommitRefusedError, LakeboundError
from lakebound.ledger.entry import carried
from lakebound.operations.maintenance.engines import StepLostError, TableGoneError, UnknownLedgerError
from lakebound.operations.maintenance.steps import Compact, StepEffect
from lakebound.spec.table import TableSpec
from lakebound.storage.location import delete_all
from lakebound.tables.datafiles import DataFileWriter
from lakebound.tables.iceberg.live_files import LiveFile, LiveFiles, has_deletes
from lakebound.tables.iceberg.open import open_catalog
from lakebound.tables.iceberg.replacing import FORMAT, NotReplaceableError
from lakebound.tables.iceberg.table import IcebergTable
from lakebound.tables.places import Places
from lakebound.tables.table import DataFile

_COMMIT_ATTEMPTS = 60
_UNKNOWN_OUTCOMES = 3
_LONGEST_WAIT_SECONDS = 2.0
_FILES_PER_COMMIT = 8
_ROW_GROUP_BYTES = 64 * 1024 * 1024
"""In memory."""


class NotRewritableError(LakeboundError):
    """A table's files cannot be rewritten without Spark."""

    def __init__(self, table: str, reason: str) -> None:
        super().__init__(
            f"table {table} is not compacted: {reason}, and Spark, which could, is given the embedded catalog alone; rewrite "
            f"its files with an engine of your own"
        )


class FileRewriter:
    """Compacts Iceberg tables. For one step at a time.

    Args:
        places: Where the tables are.
        control: The pipeline's folder: its stream is asked for turns.
    """

    def __init__(self, places: Places, control: ControlFolder) -> None:
        self._places = places
        self._control = control
        self._live_files = LiveFiles()

    def compact(self, table: TableSpec, step: Compact) -> StepEffect:
        """Rewrite the files below ``below_bytes`` of a partition as larger ones; in several commits if they are many.

        Args:
            table: Table whose files are rewritten.
            step: The partition, sizes in bytes, and by which columns the rows of each new file are sorted.

        Raises:
            TableGoneError: There is no such table.
            NotRewritableError: It has delete files, or is of another format version.
            StepLostError: Others changed the table meanwhile, each time.
        """
        handle = self._handle(table)
        _check_rewritable(handle, table)
        done = StepEffect()
        for packs in _commits(_chosen(self._live_files.of(handle), step), step.target_file_bytes):
            try:
                done = done.plus(self._rewrite(handle, table, packs, step))
            except StepLostError as exc:
                if not done.commits:
                    raise
                return done.plus(StepEffect(conflicts=exc.conflicts), note=str(exc))
        return done

    def _handle(self, table: TableSpec) -> Handle:
        try:
            return open_catalog(self._places).load_table((table.namespace, table.short_name))
        except NoSuchTableError as exc:
            raise TableGoneError(table.id) from exc

    def _rewrite(self, handle: Handle, table: TableSpec, packs: Sequence[Sequence[LiveFile]], step: Compact) -> StepEffect:
        opened, inputs = IcebergTable(table, self._places), [one for pack in packs for one in pack]
        writer = DataFileWriter(opened.layout(), "compacted")
        try:
            for pack in packs:
                for rows in _in_row_groups(handle, opened.schema(), pack, step.order_by):
                    writer.write(rows)
                writer.end_files()
            files = writer.close()
            _check_rows(table, inputs, files)
        except (FileNotFoundError, CommitRefusedError) as exc:
            writer.discard()
            raise StepLostError(table.id, f"a file was removed meanwhile ({exc})") from exc
        except BaseException:
            writer.discard()
            raise
        with AskForTurn(self._control, table.id) as turn:
            conflicts = _commit(opened, {one.file.file_path for one in inputs}, files, turn)
        return StepEffect(
            files_before=len(inputs),
            files_after=len(files),
            bytes_rewritten=sum(one.file.file_size_in_bytes for one in inputs),
            commits=1,
            conflicts=conflicts,
        )


def _check_rewritable(handle: Handle, table: TableSpec) -> None:
    if handle.metadata.format_version != FORMAT:
        raise NotRewritableError(table.id, f"it has format version {handle.metadata.format_version}")
    if has_deletes(handle):
        raise NotRewritableError(table.id, "it has delete files")


def _chosen(files: Sequence[LiveFile], step: Compact) -> list[LiveFile]:
    found = [one for one in files if not step.partition or dict(one.partition) == step.partition]
    return [one for one in found if one.file.file_size_in_bytes < step.below_bytes]


def _commits(files: Sequence[LiveFile], target_bytes: int) -> Iterator[list[list[LiveFile]]]:
    """Yield the files in groups: what one commit replaces, by the file that takes their place. Pure."""
    packs: list[list[LiveFile]] = []
    for pack in _packs(files, target_bytes):
        packs.append(pack)
        if len(packs) == _FILES_PER_COMMIT:
            yield packs
            packs = []
    if packs:
        yield packs


def _packs(files: Sequence[LiveFile], target_bytes: int) -> Iterator[list[LiveFile]]:
    """Yield files of one partition, in their order, that one file takes the place of; none that stays alone."""
    by_partition: dict[tuple[tuple[str, str | None], ...], list[LiveFile]] = {}
    for file in files:
        by_partition.setdefault(tuple(file.partition.items()), []).append(file)
    for group in by_partition.values():
        pack: list[LiveFile] = []
        for file in group:
            if pack and sum(one.file.file_size_in_bytes for one in pack) + file.file.file_size_in_bytes > target_bytes:
                if len(pack) > 1:
                    yield pack
                pack = []
            pack.append(file)
        if len(pack) > 1:
            yield pack


def _in_row_groups(handle: Handle, schema: pa.Schema, pack: Sequence[LiveFile], order_by: Sequence[str]) -> Iterator[pa.Table]:
    """Yield the rows of files in the table's columns, some MB at a time; all at once where they are sorted."""
    waiting: list[pa.Table] = []
    for one in pack:
        waiting.append(_read(handle, schema, one))
        if not order_by and sum(rows.nbytes for rows in waiting) >= _ROW_GROUP_BYTES:
            yield pa.concat_tables(waiting)
            waiting = []
    if waiting:
        rows = pa.concat_tables(waiting)
        yield rows.take(_order(rows, order_by)) if order_by else rows


def _read(handle: Handle, schema: pa.Schema, one: LiveFile) -> pa.Table:
    scan = ArrowScan(handle.metadata, handle.io, handle.schema(), AlwaysTrue())
    return scan.to_table([FileScanTask(one.file)]).select(schema.names).cast(schema)


def _order(rows: pa.Table, order_by: Sequence[str]) -> Any:
    """Return the rows' numbers in the order of columns, or of fields of structs; nulls come first, as Iceberg sorts."""
    keys = [f"key{number}" for number in range(len(order_by))]
    values = [_values(rows, column) for column in order_by]
    found = pa.table(dict(zip(keys, values, strict=True)))
    return pc.sort_indices(found, sort_keys=[(key, "ascending", "at_start") for key in keys])


def _values(rows: pa.Table, column: str) -> pa.ChunkedArray:
    if column in rows.column_names:
        return rows[column]
    name, *inside = column.split(".")
    return pc.struct_field(rows[name], inside)


def _check_rows(table: TableSpec, inputs: Sequence[LiveFile], files: Sequence[DataFile]) -> None:
    read, written = sum(one.file.record_count for one in inputs), sum(one.rows for one in files)
    if read != written:
        raise NotRewritableError(table.id, f"its files should hold {read:,} rows, and {written:,} were read from them")


def _commit(opened: IcebergTable, removed: set[str], files: Sequence[DataFile], turn: AskForTurn) -> int:
    """Commit the replacement, and return how often somebody else was faster.

    The new files are deleted only while it is certain that no commit names them.
    """
    unknown = 0
    for attempt in range(_COMMIT_ATTEMPTS):
        try:
            entry = opened.read_ledger().entry
            if entry is None:
                raise UnknownLedgerError(opened.spec.id)
            _check_there(opened, files)
            opened.replace_files(removed, files, carried(entry))
            return attempt
        except NotReplaceableError as exc:
            if exc.is_replaced:
                return attempt
            delete_all(file.path for file in files)
            raise StepLostError(opened.spec.id, str(exc), attempt) from exc
        except CommitRefusedError:
            turn()
        except (UnknownLedgerError, StepLostError):
            raise
        except Exception:
            unknown += 1
            if unknown == _UNKNOWN_OUTCOMES:
                raise
        time.sleep(random.uniform(0, min(0.02 * 2**attempt, _LONGEST_WAIT_SECONDS)))
    raise StepLostError(opened.spec.id, f"its commit was refused {_COMMIT_ATTEMPTS} times", _COMMIT_ATTEMPTS)


def _check_there(opened: IcebergTable, files: Sequence[DataFile]) -> None:
    """Check that nobody has taken the new files for orphans, as happens to a process that was suspended for days."""
    gone = [file.path.name for file in files if (file.stored is None or file.stored.done()) and not file.path.exists()]
    if gone:
        raise StepLostError(opened.spec.id, f"its new files were removed before they were committed ({', '.join(gone)})")
