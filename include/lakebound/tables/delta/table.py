"""Delta tables. ``deltalake`` reads them and says what a commit holds; each commit goes into the log by ``delta_put``."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, Schema
from deltalake.exceptions import DeltaError

from lakebound.durable import make_folder, sync_new
from lakebound.errors import BadEntryError, CommitRefusedError, NoLedgerError, TableMismatchError, TableRestoredError
from lakebound.ledger.entry import Entry
from lakebound.spec.table import PartitionField, TableSpec
from lakebound.tables.datafiles import wait_stored
from lakebound.tables.delta.append import Append, append_text, commit_properties
from lakebound.tables.delta.checkpoints import list_log
from lakebound.tables.delta.draft import NO_HOOKS, draft_commit, draft_table, write_checkpoint
from lakebound.tables.delta.features import Act, TableShape, check_known, check_may, check_restorable
from lakebound.tables.delta.fitting import check_columns, check_not_null, check_partitioned
from lakebound.tables.delta.foreign_changes import foreign_changes
from lakebound.tables.delta.history import DeltaHistory, counting_entry
from lakebound.tables.delta.log import (
    CHECKPOINT_INTERVAL,
    file_range,
    last_checkpoint,
    statistics_columns,
    with_kafka_statistics,
)
from lakebound.tables.delta.misread import misread_columns
from lakebound.tables.delta.open import check_inside, newest_features, on_disk, open_at, open_delta, read_shape
from lakebound.tables.delta.past import files_of_commit, kept_until_ms, look_back, missing, version_at
from lakebound.tables.delta.put import put
from lakebound.tables.delta.replace import check_replaceable, replacement_text
from lakebound.tables.delta.scan import scan_kafka
from lakebound.tables.delta.schema import add_columns, set_properties
from lakebound.tables.delta.statistics import columns_described, delta_statistics
from lakebound.tables.delta.tip import NO_TABLE, Tip, has_version, read_tip
from lakebound.tables.entries import counting, newest_readable
from lakebound.tables.erasing import LiveDataFile
from lakebound.tables.fence import fence_number
from lakebound.tables.layout import FileLayout
from lakebound.tables.misread import ColumnsLook
from lakebound.tables.outages import tells_nothing
from lakebound.tables.partition_values import delta_partition_texts
from lakebound.tables.places import Places
from lakebound.tables.prepared import AddedFile, DeltaReplacement, Prepared, RemovedFile, StalePreparedError
from lakebound.tables.reconstruction import from_ranges, from_rows
from lakebound.tables.schema_change import SchemaPlan
from lakebound.tables.schemas import check_partitioning, normalise_schema
from lakebound.tables.table import (
    CommittedEntry,
    DataFile,
    LedgerView,
    PastVersion,
    ReconstructedCoverage,
    TableVersion,
    VersionGoneError,
)

_CHECKPOINT_EVERY = 50


class DeltaLakeTable:
    """A ``lakebound.tables.table.Table`` in Delta's format.

    A commit is a compare-and-swap: it takes the version after the newest that this object has seen, or fails. Beside it stands
    the ``txn`` of one constant app id, which other engines honour, too. The handle may be older than that version: the table's
    columns and properties are the same, since all commits in between are this object's own. So what the table asks of its
    writers is read with the ledger, and is true for each commit until the next reading.
    """

    def __init__(self, spec: TableSpec, places: Places) -> None:
        self._spec = spec
        self._folder = places.folder(spec)
        self._handle: DeltaTable | None = None
        self._reloaded: DeltaTable | None = None
        self._number = 0
        self._epoch = 0
        self._is_seen = False
        self._columns: dict[tuple[str, ...], pa.DataType] | None = None
        self._tip = NO_TABLE
        self._checkpoint: int | None = None
        self._shape = TableShape(frozenset())
        self._first_columns: pa.Schema | None = None

    @property
    def spec(self) -> TableSpec:
        """What the pipeline says of it."""
        return self._spec

    def exists(self) -> bool:
        """Whether there is such a table."""
        if self._folder.is_local:
            return DeltaTable.is_deltatable(self._folder.address)
        return bool(list_log(self._folder))

    def create(self, schema: pa.Schema, genesis: Entry) -> None:
        """Make the table with its ``genesis`` entry in one commit."""
        if self._folder.is_local:
            make_folder(self._folder.path)
        text = draft_table(self._folder, lambda address: self._create(address, schema, genesis))
        put(self._folder, NO_TABLE, text, self._spec.id)
        self._handle = None
        self._is_seen = False

    def check_new(self, schema: pa.Schema) -> None:
        """Create the table in a scratch folder."""
        with TemporaryDirectory(prefix="lakebound-") as folder:
            self._create(folder, schema, None)

    def _create(self, address: str, schema: pa.Schema, genesis: Entry | None) -> None:
        check_partitioning(self._spec.id, self._spec.format, self._spec.partition_fields(), schema)
        columns = normalise_schema(schema)
        properties = {CHECKPOINT_INTERVAL: str(_CHECKPOINT_EVERY), **self._spec.properties}
        try:
            DeltaTable.create(
                address,
                Schema.from_arrow(columns),
                mode="error",
                partition_by=list(self._spec.partition_by),
                configuration=dict(with_kafka_statistics(columns, properties)),
                commit_properties=None if genesis is None else commit_properties(genesis, self._next_number(genesis)),
                post_commithook_properties=NO_HOOKS,
                raise_if_key_not_exists=False,
            )
        except (DeltaError, ValueError, TypeError) as exc:
            raise TableMismatchError(self._spec.id, f"such a Delta table cannot be created: {exc}") from exc

    def partition_names(self) -> tuple[str, ...]:
        """None: Delta's partition fields are columns."""
        return ()

    def properties(self) -> dict[str, str]:
        """The properties in the table's metadata."""
        return {name: value for name, value in self._table().metadata().configuration.items() if value is not None}

    def schema(self) -> pa.Schema:
        """The table's columns, ``_kafka`` included."""
        return normalise_schema(pa.schema(self._table().schema().to_arrow()))

    def layout(self) -> FileLayout:
        """Where data files go; the partitioning is that of the table's metadata."""
        columns = self._table().metadata().partition_columns
        fields = tuple(PartitionField("identity", None, name) for name in columns)
        return FileLayout(self._spec.id, "delta", self._folder, fields)

    def read_ledger(self, *, to_reset: bool = False) -> LedgerView:
        """Refresh the handle and return the entry that counts."""
        handle = self._refreshed()
        version = handle.version()
        try:
            found = counting_entry(self._folder, version, self._spec.id)
        except (TableRestoredError, BadEntryError):
            if not to_reset:
                raise
            found = newest_readable(DeltaHistory(self._folder, version).entries())
        if found is None and not to_reset and _active_files(handle).num_rows:
            raise NoLedgerError(self._spec.id)
        self._is_seen = True
        self._checkpoint = None
        self._tip, self._columns = read_tip(self._folder, version, self._spec.id), None
        self._shape = read_shape(handle)
        if self._first_columns is None:
            self._first_columns = self._shape.columns
        self._epoch = found.entry.epoch if found else 0
        if found is None or int(found.version) == version:
            return LedgerView(found.entry if found else None, str(version))
        return LedgerView(found.entry, str(version), foreign_changes(self._folder, int(found.version), version))

    def _refreshed(self) -> DeltaTable:
        """Return the handle at the newest version."""
        handle = self._table()
        try:
            handle.update_incremental()
        except OSError:
            self._handle = None  # its keys may have been renewed since
            raise
        except (DeltaError, ValueError):
            check_known(self._spec.id, newest_features(self._folder))
            raise
        return handle

    def commit(self, files: Sequence[DataFile], entry: Entry) -> str:
        """Commit files and entry as the version after the handle's."""
        self._check_may_commit(entry, "append")
        self._check_fit(files)
        self._tip = self._append(files, entry, self._tip, self._shape)
        self._epoch = entry.epoch
        if self._reloaded is not None:
            self._handle, self._reloaded = self._reloaded, None
        return str(self._tip.version)

    def commit_prepared(self, prepared: Prepared, entry: Entry) -> str:
        """Commit a replacement of files as the version after the handle's."""
        self._check_may_commit(entry, "replace")
        if not isinstance(prepared, DeltaReplacement):
            raise StalePreparedError(self._spec.id, f"a Delta table has no {prepared.kind}")
        if self._shape.has_vectors:
            raise StalePreparedError(self._spec.id, "rows of its files may be deleted by deletion vectors")
        check_replaceable(self._folder, prepared, self._tip, self._spec.id)
        self._tip = put(self._folder, self._tip, replacement_text(prepared, entry), self._spec.id)
        self._epoch = entry.epoch
        return str(self._tip.version)

    def check_may_erase(self) -> None:
        """Check what the table asks of whoever takes rows out of it."""
        check_may(self._spec.id, self._shape, "erase")
        check_inside(self._spec.id, _active_files(self._table())["path"].to_pylist())

    def live_data_files(self, version: str | None = None) -> list[LiveDataFile]:
        """Return the data files of the handle's version, or of an earlier one."""
        handle = self._table() if version is None else version_at(self._folder, version, self._spec.id)
        files, partition_by = _active_files(handle), handle.metadata().partition_columns
        texts = {name: delta_partition_texts(files[f"partition.{name}"]) for name in partition_by} if files.num_rows else {}
        return [
            LiveDataFile(
                name=row["path"],
                path=on_disk(self._folder, row["path"]),
                size_bytes=row["size_bytes"],
                partition={name: values[number] for name, values in texts.items()},
                range=file_range(row),
            )
            for number, row in enumerate(files.to_pylist())
        ]

    def rows_of(self, file: LiveDataFile) -> Iterator[pa.Table]:
        """Yield the rows of a live file, in its own columns: they have names, and other engines may write other Arrow types."""
        with file.path.open() as opened, pq.ParquetFile(opened) as parquet:
            schema = normalise_schema(parquet.schema_arrow)
            for number in range(parquet.num_row_groups):
                yield parquet.read_row_group(number).cast(schema)

    def take_out(
        self,
        removed: Collection[LiveDataFile],
        copies: Sequence[DataFile],
        entry: Entry,
        new: Sequence[DataFile] = (),
    ) -> str:
        """Commit copies of files that lack some of their rows, and new files, in the place of these files."""
        self._check_may_commit(entry, "erase")
        if entry.kind == "redo":
            # Rows come, too. The new files may have been written for another handle, so their columns are looked at each time.
            check_may(self._spec.id, self._shape, "append")
            self._check_fit(new, always=True)
        files = [*copies, *new]
        wait_stored(files)
        if self._table().version() != self._tip.version:
            raise CommitRefusedError(self._spec.id, "its ledger was not read since its last commit")
        live = {str(row["path"]) for row in _active_files(self._table()).select(["path"]).to_pylist()}
        gone = sorted({one.name for one in removed} - live)
        if gone:
            raise StalePreparedError(self._spec.id, f"{gone[0]} was removed meanwhile")
        if self._folder.is_local:
            sync_new((file.path.path for file in files), self._folder.path)
        prepared = DeltaReplacement(
            version=self._tip.version,
            digest=self._tip.digest.hex(),
            operation="DELETE" if entry.kind == "erase" else "WRITE",
            changes_data=True,
            metrics={"numRemovedFiles": len(removed), "numAddedFiles": len(files), "numDeletedRows": entry.erases},
            removed=tuple(RemovedFile(path=f.name, size_bytes=f.size_bytes, partition=f.partition) for f in removed),
            added=tuple(
                AddedFile(
                    name=file.path.relative_to(self._folder),
                    size_bytes=file.size_bytes,
                    partition=file.partition,
                    stats=self._statistics(file),
                )
                for file in files
            ),
        )
        return self.commit_prepared(prepared, entry)

    def check_may_append(self) -> None:
        """Check what the table asks of whoever appends to it."""
        check_may(self._spec.id, self._shape, "append")

    def _check_may_commit(self, entry: Entry, act: Act) -> None:
        if not self._is_seen:
            raise CommitRefusedError(self._spec.id, f"its ledger was not read at version {self._newest()}")
        if entry.epoch < self._epoch:
            raise CommitRefusedError(self._spec.id, f"it moved on to epoch {self._epoch}")
        check_may(self._spec.id, self._shape, act)

    def _check_fit(self, files: Sequence[DataFile], *, always: bool = False) -> None:
        """Check that the files are for the table as it is now; whoever wrote them may have seen it as it was."""
        check_partitioned(self._spec.id, self._shape, files)
        check_not_null(self._spec.id, self._shape, files)
        if always or self._shape.columns != self._first_columns:
            check_columns(self._spec.id, self._shape, files)

    def has_moved_on(self) -> bool:
        """Whether the log has a version after the handle's."""
        return has_version(self._folder, self._tip.version + 1)

    def entries(self) -> Iterator[CommittedEntry]:
        """Yield entries newest first, as far back as the log's JSON commits are kept."""
        return self.history().entries()

    def history(self) -> DeltaHistory:
        """Return the log's JSON commits up to the version that was last seen."""
        return DeltaHistory(self._folder, self._newest())

    def look_back(self, version: str) -> PastVersion:
        """Return what the table held at a version."""
        return look_back(self._folder, version, self._spec.id)

    def restore(self, version: str, entry: Entry) -> str:
        """Restore a version in one commit, which takes the ``txn`` fence and the entry with it.

        A protocol that was raised since is kept. The version that is current already gets its entry by an empty commit:
        deltalake restores older ones only.
        """
        handle, self._is_seen = self._refreshed(), False
        found = counting(self.entries())
        if found is not None and found.entry.epoch > entry.epoch:
            raise CommitRefusedError(self._spec.id, f"it moved on to epoch {found.entry.epoch}")
        tip, shape = read_tip(self._folder, handle.version(), self._spec.id), read_shape(handle)
        try:
            if int(version) == tip.version:
                check_may(self._spec.id, shape, "append")
                return str(self._append([], entry, tip, shape).version)
            text = self._draft_of_restore(int(version), entry, tip.version, shape)
            return str(put(self._folder, tip, text, self._spec.id).version)
        finally:
            self._handle = None

    def _draft_of_restore(self, version: int, entry: Entry, newest: int, shape: TableShape) -> str:
        def restore(scratch: DeltaTable) -> None:
            scratch.restore(
                version,
                ignore_missing_files=True,  # the scratch table has none; they are looked for below
                commit_properties=commit_properties(entry, self._next_number(entry)),
                post_commithook_properties=NO_HOOKS,
            )

        try:
            check_restorable(self._spec.id, shape, read_shape(open_at(self._folder, version)))
            text = draft_commit(self._folder, newest, restore, back_to=version)
        except DeltaError as exc:
            if tells_nothing(exc):
                raise
            raise VersionGoneError(self._spec.id, str(version), str(exc)) from exc
        gone = missing(self._folder, files_of_commit(text))
        if gone:
            raise VersionGoneError(self._spec.id, str(version), f"{len(gone)} of its files are gone, such as {gone[0]}")
        return text

    def kept_until_ms(self, version: TableVersion, left_at_ms: int) -> int:
        """Return until when vacuum and log clean-up, by the table's settings, keep a version that is left at a time."""
        return kept_until_ms(self._table(), version, left_at_ms)

    def change_schema(self, plan: SchemaPlan, entry: Entry | None) -> None:
        """Add columns."""
        self._is_seen = False
        try:
            add_columns(self._folder, plan, entry, self._spec.id)
        finally:
            self._handle, self._reloaded = None, None

    def set_properties(self, properties: Mapping[str, str], entry: Entry | None) -> None:
        """Set properties."""
        self._is_seen = False
        try:
            set_properties(self._folder, properties, entry, self._spec.id)
        finally:
            self._handle, self._reloaded = None, None

    def scan_kafka(self) -> pa.Table:
        """Read ``_kafka`` of every row, flattened."""
        return scan_kafka(self._folder, self._spec.id)

    def misread_columns(self) -> ColumnsLook:
        """Compare the columns of the files with those of the table."""
        return misread_columns(open_delta(self._folder, self._spec.id), self._folder)

    def reconstruct(self) -> ReconstructedCoverage | None:
        """Work out coverage from the files' statistics, else from the rows."""
        files = _active_files(open_delta(self._folder, self._spec.id))
        if not files.num_rows:
            return None
        return from_ranges([file_range(row) for row in files.to_pylist()]) or from_rows(self.scan_kafka())

    def keep_cheap(self) -> None:
        """Write a log checkpoint when one is due; the next commit uses a handle that starts from it."""
        interval = self._spec.properties.get(CHECKPOINT_INTERVAL, "")
        every = int(interval) if interval.isdigit() else _CHECKPOINT_EVERY
        version = self._tip.version
        if self._checkpoint is None or version >= self._checkpoint + every:
            self._checkpoint = last_checkpoint(self._folder)
        if version < self._checkpoint + every:
            return
        write_checkpoint(self._folder, version)
        self._checkpoint = version
        self._reloaded = open_at(self._folder, version)

    def _table(self) -> DeltaTable:
        if self._handle is None:
            self._handle = open_delta(self._folder, self._spec.id)
        return self._handle

    def _newest(self) -> int:
        return max(self._tip.version, self._table().version())

    def _append(self, files: Sequence[DataFile], entry: Entry, tip: Tip, shape: TableShape) -> Tip:
        """Append as exactly the version after the newest, which the tip must be."""
        described = [(file, self._statistics(file)) for file in files]
        text = append_text(self._folder, shape.partition_by, Append(described, entry, self._next_number(entry)))
        return put(self._folder, tip, text, self._spec.id, files)

    def _next_number(self, entry: Entry) -> int:
        self._number += 1
        return fence_number(entry.epoch, self._number)

    def _statistics(self, file: DataFile) -> str:
        return delta_statistics(file.rows, file.facts, self._described_columns())

    def _described_columns(self) -> dict[tuple[str, ...], pa.DataType]:
        """Return the columns whose statistics go into the log; worked out again after each reading of the ledger."""
        if self._columns is None:
            schema, metadata = self.schema(), self._table().metadata()
            wanted = statistics_columns(schema, metadata.configuration, metadata.partition_columns)
            self._columns = columns_described(schema, wanted)
        return self._columns


def _active_files(handle: DeltaTable) -> pa.Table:
    return pa.table(handle.get_add_actions(flatten=True))


def open_table(spec: TableSpec, places: Places) -> DeltaLakeTable:
    """Return the table of a spec; nothing is read or made yet."""
    return DeltaLakeTable(spec, places)
