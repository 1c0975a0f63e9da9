"""Delta tables. ``deltalake`` is the engine; a plain append goes into the log without it, by the same rules."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, Schema, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError
from deltalake.transaction import AddAction

from lakebound.errors import BadEntryError, CommitRefusedError, NoLedgerError, TableRestoredError, VersionGoneError
from lakebound.ledger import ENTRY_KEY, Entry, encode
from lakebound.run_spec import Places
from lakebound.schema_change import SchemaPlan
from lakebound.spec import TableSpec
from lakebound.tables import (
    KAFKA_COLUMN,
    KAFKA_TYPE,
    CommittedEntry,
    DataFile,
    LedgerView,
    PastVersion,
    ReconstructedCoverage,
    TableVersion,
)
from lakebound.tables.delta_append import Append, is_committed, is_plain, put
from lakebound.tables.delta_log import (
    CHECKPOINT_INTERVAL,
    commits,
    counting_entry,
    entries,
    file_range,
    last_checkpoint,
    statistics_columns,
    with_kafka_statistics,
)
from lakebound.tables.delta_past import kept_until_ms, look_back
from lakebound.tables.delta_schema import add_columns
from lakebound.tables.entries import counting, newest_readable
from lakebound.tables.reconstruction import from_ranges, from_rows
from lakebound.tables.schemas import check_partitioning, normalise_schema
from lakebound.tables.statistics import delta_statistics

_EPOCH = 2**40
_CHECKPOINT_EVERY = 50
_HOOKS = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)


class DeltaLakeTable:
    """A ``lakebound.tables.Table`` in Delta's format.

    A commit is a compare-and-swap: it takes the version after the newest that this object has seen, or fails. Beside it stands
    the ``txn`` of one constant app id, which other engines honour, too. The handle may be older than that version: the table's
    columns and properties are the same, since all commits in between are this object's own.
    """

    def __init__(self, spec: TableSpec, places: Places) -> None:
        self._spec = spec
        self._path = places.delta_path(spec)
        self._handle: DeltaTable | None = None
        self._reloaded: DeltaTable | None = None
        self._number = 0
        self._epoch = 0
        self._is_seen = False
        self._columns: frozenset[tuple[str, ...]] | None = None
        self._version = -1

    @property
    def spec(self) -> TableSpec:
        """What the pipeline says of it."""
        return self._spec

    def exists(self) -> bool:
        """Whether there is such a table."""
        return DeltaTable.is_deltatable(str(self._path))

    def create(self, schema: pa.Schema, genesis: Entry) -> None:
        """Make the table with its ``genesis`` entry in one commit."""
        check_partitioning(self._spec, schema)
        columns = normalise_schema(schema)
        properties = {CHECKPOINT_INTERVAL: str(_CHECKPOINT_EVERY), **self._spec.properties}
        self._path.mkdir(parents=True, exist_ok=True)
        self._handle = DeltaTable.create(
            str(self._path),
            Schema.from_arrow(columns),
            mode="error",
            partition_by=list(self._spec.partition_by),
            configuration=dict(with_kafka_statistics(columns, properties)),
            commit_properties=self._properties(genesis),
            post_commithook_properties=_HOOKS,
            raise_if_key_not_exists=False,
        )
        self._is_seen = False

    def schema(self) -> pa.Schema:
        """The table's columns, ``_kafka`` included."""
        return normalise_schema(pa.schema(self._table().schema().to_arrow()))

    def read_ledger(self, *, to_reset: bool = False) -> LedgerView:
        """Refresh the handle and return the entry that counts."""
        handle = self._table()
        handle.update_incremental()
        version = handle.version()
        try:
            found = counting_entry(self._path, version, self._spec.id)
        except (TableRestoredError, BadEntryError):
            if not to_reset:
                raise
            found = newest_readable(entries(self._path, version))
        if found is None and not to_reset and _active_files(handle).num_rows:
            raise NoLedgerError(self._spec.id)
        self._is_seen = True
        self._version, self._columns = version, None
        self._epoch = found.entry.epoch if found else 0
        return LedgerView(found.entry if found else None, str(version))

    def commit(self, files: Sequence[DataFile], entry: Entry) -> str:
        """Commit files and entry as the version after the handle's."""
        if not self._is_seen:
            raise CommitRefusedError(self._spec.id, f"its ledger was not read at version {self._newest()}")
        if entry.epoch < self._epoch:
            raise CommitRefusedError(self._spec.id, f"it moved on to epoch {self._epoch}")
        expected = self._version + 1
        self._append(files, entry, expected)
        self._epoch, self._version = entry.epoch, expected
        if self._reloaded is not None:
            self._handle, self._reloaded = self._reloaded, None
        return str(expected)

    def has_moved_on(self) -> bool:
        """Whether the log has a version after the handle's."""
        return is_committed(self._path, self._version + 1)

    def entries(self) -> Iterator[CommittedEntry]:
        """Yield entries newest first, as far back as the log's JSON commits are kept."""
        return entries(self._path, self._newest())

    def versions(self) -> Iterator[TableVersion]:
        """Yield what the table was, newest first, as far back as the log's JSON commits are kept."""
        for commit in commits(self._path, self._newest()):
            yield TableVersion(str(commit.version), commit.timestamp_ms, commit.entry)

    def look_back(self, version: str) -> PastVersion:
        """Return what the table held at a version."""
        return look_back(self._path, version, self._spec.id)

    def restore(self, version: str, entry: Entry) -> str:
        """Restore a version in one commit, which takes the ``txn`` fence and the entry with it.

        A protocol that was raised since is kept. The version that is current already gets its entry by an empty commit:
        deltalake restores older ones only.
        """
        handle, self._is_seen = self._table(), False
        handle.update_incremental()
        found = counting(self.entries())
        if found is not None and found.entry.epoch > entry.epoch:
            raise CommitRefusedError(self._spec.id, f"it moved on to epoch {found.entry.epoch}")
        expected = handle.version() + 1
        try:
            if int(version) == handle.version():
                self._append([], entry, expected)
            else:
                handle.restore(int(version), commit_properties=self._properties(entry), post_commithook_properties=_HOOKS)
        except CommitFailedError as exc:
            raise CommitRefusedError(self._spec.id, str(exc)) from exc
        except DeltaError as exc:
            raise VersionGoneError(self._spec.id, version, str(exc)) from exc
        finally:
            self._handle = None
        return str(expected)

    def kept_until_ms(self, version: TableVersion, left_at_ms: int) -> int:
        """Return until when vacuum and log clean-up, by the table's settings, keep a version that is left at a time."""
        return kept_until_ms(self._table(), version, left_at_ms)

    def change_schema(self, plan: SchemaPlan, entry: Entry | None) -> None:
        """Add columns."""
        self._is_seen = False
        try:
            add_columns(_current(self._path), plan, entry, self._spec.id)
        finally:
            self._handle, self._reloaded = None, None

    def data_folder(self) -> Path:
        """The table's folder."""
        return self._path

    def file_columns(self) -> pa.Schema:
        """All columns but the partition columns."""
        return pa.schema([field for field in self.schema() if field.name not in self._spec.partition_by])

    def scan_kafka(self) -> pa.Table:
        """Read ``_kafka`` of every row, flattened."""
        columns = {field.name: ds.field(KAFKA_COLUMN, field.name).cast(field.type) for field in KAFKA_TYPE}
        return _current(self._path).to_pyarrow_dataset().to_table(columns=columns)

    def reconstruct(self) -> ReconstructedCoverage | None:
        """Work out coverage from the files' statistics, else from the rows."""
        files = _active_files(_current(self._path))
        if not files.num_rows:
            return None
        return from_ranges([file_range(row) for row in files.to_pylist()]) or from_rows(self.scan_kafka())

    def keep_cheap(self) -> None:
        """Write a log checkpoint when one is due, and have the next commit go on with a handle that starts from it."""
        interval = self._spec.properties.get(CHECKPOINT_INTERVAL, "")
        due = last_checkpoint(self._path) + (int(interval) if interval.isdigit() else _CHECKPOINT_EVERY)
        if self._version < due:
            return
        handle = _current(self._path)
        handle.create_checkpoint()
        self._reloaded = DeltaTable(str(self._path), version=handle.version())

    def _table(self) -> DeltaTable:
        if self._handle is None:
            self._handle = DeltaTable(str(self._path))
        return self._handle

    def _newest(self) -> int:
        return max(self._version, self._table().version())

    def _append(self, files: Sequence[DataFile], entry: Entry, version: int) -> None:
        """Append as exactly this version, which must be the one after the newest."""
        handle = self._table()
        columns = self._described_columns(handle)
        if not is_plain(handle):
            self._append_by_deltalake(files, entry, version, columns)
            return
        self._number += 1
        number = entry.epoch * _EPOCH + self._number
        put(
            self._path,
            version,
            Append(self._spec.partition_by, files, columns, encode(entry), ENTRY_KEY, number),
            self._spec.id,
        )

    def _append_by_deltalake(
        self, files: Sequence[DataFile], entry: Entry, version: int, columns: frozenset[tuple[str, ...]]
    ) -> None:
        handle = self._table()
        if handle.version() + 1 != version:
            handle.update_incremental()
        if handle.version() + 1 != version:
            raise CommitRefusedError(self._spec.id, f"it moved on to version {handle.version()}")
        try:
            handle.create_write_transaction(
                [self._action(file, columns) for file in files],
                "append",
                handle.schema(),
                list(self._spec.partition_by),
                commit_properties=self._properties(entry),
                post_commithook_properties=_HOOKS,
            )
        except CommitFailedError as exc:
            raise CommitRefusedError(self._spec.id, str(exc)) from exc

    def _properties(self, entry: Entry) -> CommitProperties:
        self._number += 1
        return CommitProperties(
            custom_metadata={"userMetadata": encode(entry)},
            max_commit_retries=0,
            app_transactions=[Transaction(ENTRY_KEY, entry.epoch * _EPOCH + self._number)],
        )

    def _described_columns(self, handle: DeltaTable) -> frozenset[tuple[str, ...]]:
        """Return the columns whose statistics go into the log; worked out again after each reading of the ledger."""
        if self._columns is None:
            self._columns = statistics_columns(self.schema(), handle.metadata().configuration)
        return self._columns

    def _action(self, file: DataFile, columns: frozenset[tuple[str, ...]]) -> AddAction:
        return AddAction(
            path=file.path.relative_to(self._path).as_posix(),  # deltalake itself encodes it as a URI
            size=file.size_bytes,
            partition_values=dict(file.partition),
            modification_time=int(time.time() * 1000),
            data_change=True,
            stats=delta_statistics(file.metadata, columns),
        )


def _current(path: Path) -> DeltaTable:
    """Return a handle of its own, so that reading never moves the one that commits."""
    return DeltaTable(str(path))


def _active_files(handle: DeltaTable) -> pa.Table:
    return pa.table(handle.get_add_actions(flatten=True))
