"""Rewriting the small files of an Iceberg table without Spark: for tables in a catalog of which Spark is told nothing.

What is written is what the stream would write. Tables with delete files are left alone: a file holds more rows than the table
then.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.table import Table as Handle

from lakebound.control.folder import ControlFolder
from lakebound.control.turns import AskForTurn
from lakebound.errors import CommitRefusedError, TableMismatchError
from lakebound.ledger.entry import carried
from lakebound.operations.maintenance.engines import StepLostError, TableGoneError, UnknownLedgerError
from lakebound.operations.maintenance.iceberg.rows import NotRewritableError, RowReader
from lakebound.operations.maintenance.packing import even_bins, iceberg_files_written
from lakebound.operations.maintenance.steps import Compact, StepEffect
from lakebound.redaction import redacted
from lakebound.spec.table import TableSpec
from lakebound.storage.location import delete_all
from lakebound.tables.datafiles import DataFileWriter, wait_stored
from lakebound.tables.iceberg.live_files import LiveFile, LiveFiles, has_deletes
from lakebound.tables.iceberg.open import open_catalog
from lakebound.tables.iceberg.replacing import FORMAT, NotReplaceableError
from lakebound.tables.iceberg.table import IcebergTable
from lakebound.tables.places import Places
from lakebound.tables.table import DataFile

_COMMIT_ATTEMPTS = 60
_UNKNOWN_OUTCOMES = 3
_LONGEST_WAIT_SECONDS = 0.2
"""A turn that was asked for is short."""
_FILES_PER_COMMIT = 8
_ROW_GROUP_BYTES = 64 * 1024 * 1024
"""In memory."""
_SORTED_BYTES = 256 * 1024 * 1024
"""As much as is sorted at once, in memory."""
_STEP_SECONDS = 600.0
"""After the commit in which it has worked for so long, a step ends: a repair waits for its run, and the next run goes on."""


class FileRewriter:
    """Compacts one Iceberg table, a step at a time.

    Args:
        places: Where the table is.
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
            step: The partition, sizes in bytes, and by which columns rows are sorted, 256 MB of them at a time.

        Raises:
            TableGoneError: There is no such table.
            NotRewritableError: It has delete files, or what cannot be read or written without Spark.
            StepLostError: Others changed the table meanwhile, each time.
        """
        handle = self._handle(table)
        _check_rewritable(handle, table)
        reader = RowReader(handle, table.id, self._places)
        done, began = StepEffect(), time.monotonic()
        for bins in _commits(_chosen(self._live_files.of(handle), step), step):
            if done.commits and time.monotonic() - began > _STEP_SECONDS:
                return done.plus(StepEffect(), note="it has worked for ten minutes; the next run goes on")
            try:
                done = done.plus(self._rewrite(reader, table, bins, step))
            except Exception as exc:
                if not done.commits:
                    raise
                conflicts = exc.conflicts if isinstance(exc, StepLostError) else 0
                return done.plus(StepEffect(conflicts=conflicts), note=redacted(exc))
        return done

    def _handle(self, table: TableSpec) -> Handle:
        try:
            return open_catalog(self._places).load_table((table.namespace, table.short_name))
        except NoSuchTableError as exc:
            raise TableGoneError(table.id) from exc

    def _rewrite(self, reader: RowReader, table: TableSpec, bins: Sequence[Sequence[LiveFile]], step: Compact) -> StepEffect:
        opened, inputs = IcebergTable(table, self._places), [one for files in bins for one in files]
        writer = DataFileWriter(opened.layout(), "compacted")
        try:
            for files in bins:
                for rows in _in_row_groups(reader, files, step.order_by):
                    writer.write(rows)
                writer.end_files()
            written = writer.close()
            _check_rows(table, inputs, written)
            wait_stored(written)
        except (FileNotFoundError, CommitRefusedError) as exc:
            writer.discard()
            self._check_not_missing(table, inputs)
            raise StepLostError(table.id, f"a file was removed meanwhile ({exc})") from exc
        except BaseException:
            writer.discard()
            raise
        with AskForTurn(self._control, table.id) as turn:
            conflicts = _commit(opened, {one.path for one in inputs}, written, turn)
        return StepEffect(
            files_before=len(inputs),
            files_after=len(written),
            bytes_rewritten=sum(one.size_bytes for one in inputs),
            commits=1,
            conflicts=conflicts,
        )

    def _check_not_missing(self, table: TableSpec, inputs: Sequence[LiveFile]) -> None:
        """Check that the table does not name a file that is not there.

        Raises:
            NotRewritableError: It does, and waiting does not help.
        """
        live = {one.path for one in self._live_files.of(self._handle(table))}
        gone = [one.path for one in inputs if one.path in live and not self._places.file_at(one.path).exists()]
        if gone:
            raise NotRewritableError(table.id, f"its data file {gone[0].rpartition('/')[2]} is missing (see lakebound doctor)")


def _check_rewritable(handle: Handle, table: TableSpec) -> None:
    if handle.metadata.format_version != FORMAT:
        raise NotRewritableError(table.id, f"it has format version {handle.metadata.format_version}")
    if has_deletes(handle):
        raise NotRewritableError(table.id, "it has delete files")


def _chosen(files: Sequence[LiveFile], step: Compact) -> list[LiveFile]:
    found = [one for one in files if dict(one.partition) == step.partition]
    return [one for one in found if one.size_bytes < step.below_bytes]


def _commits(files: Sequence[LiveFile], step: Compact) -> Iterator[list[list[LiveFile]]]:
    """Yield the files in groups: what one commit replaces, by the file that takes their place. Pure."""
    sizes = [one.size_bytes for one in files]
    written = iceberg_files_written(sum(sizes), step.below_bytes, step.target_file_bytes) if sizes else 0
    bins = [[files[number] for number in joined] for joined in even_bins(sizes, written)] if written else []
    for first in range(0, len(bins), _FILES_PER_COMMIT):
        yield bins[first : first + _FILES_PER_COMMIT]


def _in_row_groups(reader: RowReader, files: Sequence[LiveFile], order_by: Sequence[str]) -> Iterator[pa.Table]:
    """Yield the rows of files some MB at a time; where they are sorted, as much at once as is held for it."""
    held, held_bytes, most = [], 0, _SORTED_BYTES if order_by else _ROW_GROUP_BYTES
    for one in files:
        for rows in reader.read(one):
            held.append(rows)
            held_bytes += rows.nbytes
            if held_bytes >= most:
                yield from _parts(pa.concat_tables(held), order_by)
                held, held_bytes = [], 0
    if held:
        yield from _parts(pa.concat_tables(held), order_by)


def _parts(rows: pa.Table, order_by: Sequence[str]) -> Iterator[pa.Table]:
    ordered = rows.take(_order(rows, order_by)) if order_by else rows
    each = max(1, ordered.num_rows * _ROW_GROUP_BYTES // max(ordered.nbytes, 1))
    for first in range(0, ordered.num_rows, each):
        yield ordered.slice(first, each)


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
    read, written = sum(one.rows for one in inputs), sum(one.rows for one in files)
    if read != written:
        raise NotRewritableError(table.id, f"its files should hold {read:,} rows, and {written:,} were read from them")


def _commit(opened: IcebergTable, removed: set[str], files: Sequence[DataFile], turn: AskForTurn) -> int:
    """Commit the replacement, and return how often somebody else was faster.

    The new files are deleted only where no snapshot names them; else they are left to the look for orphans.
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
            _discard(opened, files)
            raise StepLostError(opened.spec.id, str(exc), attempt) from exc
        except (UnknownLedgerError, StepLostError, TableMismatchError):
            _discard(opened, files)
            raise
        except CommitRefusedError:
            turn()
        except Exception:
            unknown += 1
            if unknown == _UNKNOWN_OUTCOMES:
                raise
        time.sleep(random.uniform(0, min(0.02 * 2**attempt, _LONGEST_WAIT_SECONDS)))
    _discard(opened, files)
    raise StepLostError(opened.spec.id, f"its commit was refused {_COMMIT_ATTEMPTS} times", _COMMIT_ATTEMPTS)


def _discard(opened: IcebergTable, files: Sequence[DataFile]) -> None:
    if not opened.may_hold_tried():
        delete_all(file.path for file in files)


def _check_there(opened: IcebergTable, files: Sequence[DataFile]) -> None:
    """Check that nobody has taken the new files for orphans, as happens to a process that was suspended for days."""
    gone = [file.path.name for file in files if not file.path.exists()]
    if gone:
        raise StepLostError(opened.spec.id, f"its new files were removed before they were committed ({', '.join(gone)})")
