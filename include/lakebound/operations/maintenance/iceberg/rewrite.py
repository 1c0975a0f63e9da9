"""Rewriting the small files of an Iceberg table without Spark: for tables in a catalog of which Spark is told nothing.

What is written is what the stream would write. Tables with delete files are left alone: a file holds more rows than the table
then.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.table import Table as Handle

from lakebound.control.folder import ControlFolder
from lakebound.errors import CommitRefusedError, LakeboundError
from lakebound.operations.maintenance.engines import StepLostError, TableGoneError
from lakebound.operations.maintenance.iceberg.groups import groups
from lakebound.operations.maintenance.iceberg.replacement import Replacement, replace
from lakebound.operations.maintenance.steps import Compact, StepEffect
from lakebound.redaction import redacted
from lakebound.spec.table import TableSpec
from lakebound.tables.datafiles import DataFileWriter, wait_stored
from lakebound.tables.iceberg.features import check_features
from lakebound.tables.iceberg.files import describe
from lakebound.tables.iceberg.health import partition_texts
from lakebound.tables.iceberg.live_files import KnownManifests, LiveFile, LiveFiles, has_deletes
from lakebound.tables.iceberg.open import open_catalog
from lakebound.tables.iceberg.replacing import FORMAT
from lakebound.tables.iceberg.rows import NotRewritableError, RowReader
from lakebound.tables.iceberg.table import IcebergTable
from lakebound.tables.places import Places
from lakebound.tables.table import DataFile

_ROW_GROUP_BYTES = 64 * 1024 * 1024
"""In memory."""
_SORTED_BYTES = 256 * 1024 * 1024
"""As much as is sorted at once, in memory."""
_STEP_SECONDS = 600.0
"""After the commit in which it has worked for so long, a step ends: a repair waits for its run, and the next run goes on."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Work:
    """A step, and what all of its commits use.

    Attributes:
        handle: The table, as it was when the files were chosen.
        ends_at: When it ends after a commit, by the monotonic clock.
    """

    table: TableSpec
    step: Compact
    handle: Handle
    reader: RowReader
    known: KnownManifests
    ends_at: float


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
        check_features(handle.metadata, table.id)
        reader = RowReader(handle, table.id, self._places)
        work = _Work(table, step, handle, reader, KnownManifests(), time.monotonic() + _STEP_SECONDS)
        done = StepEffect()
        for bins in groups(self._live_files.of(handle), step):
            if done.commits and time.monotonic() > work.ends_at:
                return done.plus(StepEffect(), note="stopped after ten minutes; the next run continues")
            try:
                done = done.plus(self._rewrite(work, bins))
            except StepLostError as exc:
                if not done.commits:
                    raise
                return done.plus(StepEffect(conflicts=exc.conflicts), note=str(exc))
            except Exception as exc:
                if not done.commits:
                    raise
                if not isinstance(exc, LakeboundError):
                    _log.exception("%s: compact failed after %d commits", table.id, done.commits)
                return done.model_copy(update={"problem": redacted(exc)})
        return done

    def _handle(self, table: TableSpec) -> Handle:
        try:
            return open_catalog(self._places).load_table((table.namespace, table.short_name))
        except NoSuchTableError as exc:
            raise TableGoneError(table.id) from exc

    def _rewrite(self, work: _Work, bins: Sequence[Sequence[LiveFile]]) -> StepEffect:
        table, inputs = work.table, [one for files in bins for one in files]
        opened = IcebergTable(table, self._places)
        layout = opened.layout()
        if not work.reader.columns.equals(layout.columns, check_metadata=True):
            raise StepLostError(table.id, "its columns were changed meanwhile")
        writer = DataFileWriter(layout, "compacted")
        try:
            for files in bins:
                for rows in _in_row_groups(work.reader, files, work.step.order_by):
                    writer.write(rows)
                writer.end_files()
            written = writer.close()
            _check_rows(table, inputs, written)
            _check_partition(work, written)
            wait_stored(written)
        except (FileNotFoundError, CommitRefusedError) as exc:
            writer.discard()
            self._check_not_missing(table, inputs)
            raise StepLostError(table.id, f"a file was removed meanwhile ({exc})") from exc
        except BaseException:
            writer.discard()
            raise
        replacement = Replacement({one.path for one in inputs}, written, work.ends_at)
        return StepEffect(
            files_before=len(inputs),
            files_after=len(written),
            bytes_rewritten=sum(one.size_bytes for one in inputs),
            commits=1,
            conflicts=replace(opened, replacement, work.known, self._control),
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


def _in_row_groups(reader: RowReader, files: Sequence[LiveFile], order_by: Sequence[str]) -> Iterator[pa.Table]:
    """Yield the rows of files some MB at a time; where they are sorted, as much at once as is held for it."""
    held, held_bytes, most = [], 0, _SORTED_BYTES if order_by else _ROW_GROUP_BYTES
    for one in files:
        for rows in reader.read(one.path):
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
        raise NotRewritableError(table.id, f"metadata counts {read:,} rows in its files, but {written:,} rows were read")


def _check_partition(work: _Work, files: Sequence[DataFile]) -> None:
    """Check that no row changes its partition: another engine may have told the table a wrong one of a file."""
    metadata = work.handle.metadata
    for one in describe(files, metadata, work.table.id):
        found = partition_texts(metadata, metadata.default_spec_id, tuple(one.partition._data))
        unlike = [name for name, value in found.items() if value != work.step.partition[name]]
        if unlike:
            raise NotRewritableError(
                work.table.id,
                f"in {', '.join(unlike)}, rows have values that do not belong to their partition; a rewrite would move them",
            )
