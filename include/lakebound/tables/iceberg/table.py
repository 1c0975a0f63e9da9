"""Iceberg tables. PyIceberg is the one engine that commits data."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import CommitFailedException, ValidationError
from pyiceberg.partitioning import validate_partition_name
from pyiceberg.schema import Schema, assign_fresh_schema_ids
from pyiceberg.table import Table as PyIcebergTable
from pyiceberg.table import TableProperties
from pyiceberg.table.metadata import TableMetadata, new_table_metadata
from pyiceberg.table.snapshots import Operation, Snapshot
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER
from pyiceberg.typedef import Identifier

from lakebound.durable import make_folder, sync_new
from lakebound.errors import (
    BadEntryError,
    CommitRefusedError,
    FilesOutdatedError,
    NoLedgerError,
    RowsNotReadError,
    TableMismatchError,
)
from lakebound.first_line import first_line
from lakebound.ledger.entry import ENTRY_KEY, Entry, encode
from lakebound.spec.pipeline import KAFKA_COLUMN
from lakebound.spec.table import TableSpec
from lakebound.storage.location import delete_all
from lakebound.tables.datafiles import wait_stored
from lakebound.tables.entries import counting, newest_readable
from lakebound.tables.erasing import LiveDataFile, RowsNotInFilesError
from lakebound.tables.format_rules import rules_of
from lakebound.tables.iceberg.append import append
from lakebound.tables.iceberg.attempts import Attempts
from lakebound.tables.iceberg.catalog import LedgerCatalog, slim
from lakebound.tables.iceberg.expirable import expire
from lakebound.tables.iceberg.features import check_features
from lakebound.tables.iceberg.field_ids import check_name_mapping, has_ids_of, with_ids
from lakebound.tables.iceberg.files import describe, file_range, is_written_here, partition_fields, partition_spec
from lakebound.tables.iceberg.foreign_changes import foreign_changes
from lakebound.tables.iceberg.graft import graft
from lakebound.tables.iceberg.history import IcebergHistory, ancestors, history_of_metadata
from lakebound.tables.iceberg.live_files import KnownManifests, has_deletes
from lakebound.tables.iceberg.merging import EncodedEntries
from lakebound.tables.iceberg.metadata import metadata_location
from lakebound.tables.iceberg.misread import misread_columns
from lakebound.tables.iceberg.open import AnyCatalog, make_namespace, open_catalog
from lakebound.tables.iceberg.past import kept_until_ms, look_back, snapshot_at
from lakebound.tables.iceberg.pointer import check_forgotten, check_pointer
from lakebound.tables.iceberg.replacing import NotReplaceableError, replace_files
from lakebound.tables.iceberg.rows import RowReader
from lakebound.tables.iceberg.schema import arrow_columns, change
from lakebound.tables.layout import FileLayout
from lakebound.tables.misread import ColumnsLook
from lakebound.tables.places import Places
from lakebound.tables.prepared import DeltaReplacement, Prepared, SnapshotExpiry, StalePreparedError
from lakebound.tables.reconstruction import from_ranges, from_rows
from lakebound.tables.schema_change import SchemaPlan
from lakebound.tables.schemas import check_partitioning, normalise_schema
from lakebound.tables.table import (
    KAFKA_TYPE,
    CommittedEntry,
    DataFile,
    LedgerView,
    PastVersion,
    ReconstructedCoverage,
    TableVersion,
    VersionGoneError,
)

_DEFAULTS = {
    TableProperties.METADATA_DELETE_AFTER_COMMIT_ENABLED: "true",
    TableProperties.METADATA_PREVIOUS_VERSIONS_MAX: "20",
}
_FORCED = {
    TableProperties.FORMAT_VERSION: "2",
    **{f"{TableProperties.METRICS_MODE_COLUMN_CONF_PREFIX}.{KAFKA_COLUMN}.{field.name}": "full" for field in KAFKA_TYPE},
}


class IcebergTable:
    """A ``lakebound.tables.table.Table`` in Iceberg's format, in a catalog that may be shared with Spark.

    Arguments, results and errors are those of ``Table``.
    """

    def __init__(self, spec: TableSpec, places: Places) -> None:
        self._spec = spec
        self._places = places
        self._handle: PyIcebergTable | None = None
        self._is_seen = False
        self._epoch = 0
        self._history: TableMetadata | None = None
        self._encoded = EncodedEntries()
        self._layout: tuple[tuple[UUID, str, int, int], FileLayout] | None = None
        self._schema: tuple[tuple[UUID, int], pa.Schema] | None = None
        self._checked: tuple[int, int, dict[str, str]] | None = None
        self._attempts = Attempts()

    @property
    def spec(self) -> TableSpec:
        """What the pipeline says of it."""
        return self._spec

    def exists(self) -> bool:
        """Whether there is such a table."""
        return rules_of(self._spec.format).may_exist(self._places) and metadata_location(self._catalog, self._spec) is not None

    def create(self, schema: pa.Schema, genesis: Entry) -> None:
        """Make the table with its ``genesis`` entry in one commit."""
        columns = self._columns(schema)
        make_namespace(self._catalog, self._spec.namespace)
        transaction = self._catalog.create_table_transaction(
            self._identifier,
            columns,
            partition_spec=partition_spec(self._spec, columns),
            properties=self._new_properties(),
        )
        written = self._places.file_at(transaction.table_metadata.location) / "metadata"
        if isinstance(self._catalog, LedgerCatalog):
            check_forgotten(written, self._spec)
        if written.is_local:
            make_folder(written.path)
        with transaction.update_snapshot(snapshot_properties={ENTRY_KEY: encode(genesis)}).fast_append():
            pass
        if written.is_local:
            sync_new(written.path.iterdir(), written.path)
        transaction.commit_transaction()
        self._handle = None
        self._is_seen = False

    def check_new(self, schema: pa.Schema) -> None:
        """Make the table's metadata, in memory."""
        try:
            columns = self._columns(schema)
            fields, properties = partition_spec(self._spec, columns), self._new_properties()
            made = new_table_metadata(columns, fields, UNSORTED_SORT_ORDER, "file:///nowhere", properties)
            for field in made.spec().fields:
                validate_partition_name(field.name, field.transform, field.source_id, made.schema(), set())
        except (ValueError, ValidationError, NotImplementedError) as exc:
            raise TableMismatchError(self._spec.id, f"such an Iceberg table cannot be created: {exc}") from exc

    def _columns(self, schema: pa.Schema) -> Schema:
        check_partitioning(self._spec.id, self._spec.format, self._spec.partition_fields(), schema)
        return assign_fresh_schema_ids(Catalog._convert_schema_if_needed(normalise_schema(schema)))

    def _new_properties(self) -> dict[str, str]:
        return {**_DEFAULTS, **self._spec.properties, **_FORCED}

    def partition_names(self) -> tuple[str, ...]:
        """Names of the partition fields that are no columns."""
        metadata = self._table().metadata
        return tuple(field.name for field in metadata.spec().fields if field.name not in metadata.schema().column_names)

    def properties(self) -> dict[str, str]:
        """The properties in the table's metadata."""
        return dict(self._table().metadata.properties)

    def schema(self) -> pa.Schema:
        """The table's columns, ``_kafka`` included."""
        metadata = self._table().metadata
        made_for = (metadata.table_uuid, metadata.current_schema_id)
        if self._schema is None or self._schema[0] != made_for:
            self._schema = made_for, arrow_columns(metadata.schema())
        return self._schema[1]

    def set_properties(self, properties: Mapping[str, str], entry: Entry | None) -> None:
        """Set properties. It makes no snapshot, so the entry that counts stays where it is."""
        self._is_seen = False
        try:
            with self._newest().transaction() as transaction:
                transaction.set_properties(dict(properties))
        except CommitFailedException as exc:
            raise CommitRefusedError(self._spec.id, str(exc)) from exc
        finally:
            self._handle = None

    def layout(self) -> FileLayout:
        """Where data files go: the folder ``data`` in the table's location, by its default partitioning."""
        metadata = self._table().metadata
        self._check_features(metadata)
        made_for = (metadata.table_uuid, metadata.location, metadata.current_schema_id, metadata.default_spec_id)
        if self._layout is None or self._layout[0] != made_for:
            fields = partition_fields(metadata.spec(), metadata.schema(), self._spec.id)
            columns = with_ids(self.schema(), metadata.schema())
            folder = self._places.file_at(metadata.location) / "data"
            self._layout = made_for, FileLayout(self._spec.id, "iceberg", folder, fields, columns, metadata.default_spec_id)
        return self._layout[1]

    def read_ledger(self, *, to_reset: bool = False) -> LedgerView:
        """Refresh the handle and return the entry that counts."""
        handle = self._table()
        check_pointer(self._catalog, self._spec, self._places)
        handle.refresh()
        check_name_mapping(handle.metadata, self._spec.id)
        self._history, handle.metadata = handle.metadata, slim(handle.metadata)
        try:
            found = counting(self.entries())
        except BadEntryError:
            if not to_reset:
                raise
            found = newest_readable(self.entries())
        snapshot = handle.current_snapshot()
        if found is None and not to_reset and snapshot is not None and _has_rows(snapshot, handle):
            raise NoLedgerError(self._spec.id)
        self._is_seen = True
        self._epoch = found.entry.epoch if found else 0
        version = str(snapshot.snapshot_id) if snapshot else ""
        if found is None or found.version == version:
            return LedgerView(found.entry if found else None, version)
        walked = ancestors(self._read_history(), snapshot.snapshot_id if snapshot else None)
        return LedgerView(found.entry, version, foreign_changes(walked, found.version))

    def commit(self, files: Sequence[DataFile], entry: Entry) -> str:
        """Commit files and entry as a child of the handle's snapshot."""
        handle = self._table()
        self._check_may_commit(entry)
        described = describe(files, handle.metadata, self._spec.id)
        try:
            snapshot = append(
                handle, described, {ENTRY_KEY: encode(entry)}, known=self._encoded, wait_for_files=lambda: wait_stored(files)
            )
        except CommitFailedException as exc:
            raise CommitRefusedError(self._spec.id, str(exc)) from exc
        self._epoch = entry.epoch
        self._history = None
        return str(snapshot.snapshot_id)

    def commit_prepared(self, prepared: Prepared, entry: Entry) -> str:
        """Commit a replacement of manifests as a child of the handle's snapshot, or expire snapshots, which makes none."""
        handle = self._table()
        self._check_may_commit(entry)
        if isinstance(prepared, DeltaReplacement):
            raise StalePreparedError(self._spec.id, f"an Iceberg table has no {prepared.kind}")
        history = self._read_history()
        try:
            if isinstance(prepared, SnapshotExpiry):
                expire(handle, history, prepared.snapshot_ids, self._spec.id)
            else:
                graft(handle, history, prepared, encode(entry), self._encoded, self._spec.id)
        except CommitFailedException as exc:
            raise CommitRefusedError(self._spec.id, str(exc)) from exc
        self._epoch = entry.epoch
        self._history = None
        return str(handle.metadata.current_snapshot_id)

    def replace_files(self, removed: Collection[str], files: Sequence[DataFile], entry: Entry, known: KnownManifests) -> str:
        """Commit files in place of others with the same rows, and return the version; the entry is carried on.

        Args:
            removed: Paths of the files that go, as manifests name them.
            files: The files that come; they are where they belong.
            entry: The ledger's, as ``lakebound.ledger.entry.carried`` returns it.
            known: What was read for earlier replacements.

        Raises:
            NotReplaceableError: The table does not hold any more what was rewritten, or holds the new files already.
            TableMismatchError: The new files do not fit the table any more.
            CommitRefusedError: Somebody else was faster; of a catalog behind a network that is not certain.
            Exception: The outcome is unknown.
        """
        handle = self._table()
        self._check_may_commit(entry)
        try:
            snapshot = replace_files(handle, removed, files, {ENTRY_KEY: encode(entry)}, self._spec.id, known, self._attempts)
        except CommitFailedException as exc:
            raise CommitRefusedError(self._spec.id, str(exc)) from exc
        self._history = None
        return str(snapshot.snapshot_id)

    def take_out(
        self,
        removed: Collection[LiveDataFile],
        copies: Sequence[DataFile],
        entry: Entry,
        new: Sequence[DataFile] = (),
    ) -> str:
        """Commit copies of files that lack some of their rows, and new files, in the place of these files."""
        handle = self._table()
        self._check_may_commit(entry)
        # A copy may be of an earlier partitioning, as its file was. Whether columns are the table's is checked of all files.
        if any(file.spec_id not in (None, handle.metadata.default_spec_id) for file in new):
            raise FilesOutdatedError(self._spec.id, "the partitioning")
        files = [*copies, *new]
        wait_stored(files)
        properties, paths = {ENTRY_KEY: encode(entry)}, [one.name for one in removed]
        known, operation = KnownManifests(), Operation.OVERWRITE
        try:
            snapshot = replace_files(handle, paths, files, properties, self._spec.id, known, self._attempts, operation)
        except CommitFailedException as exc:
            raise CommitRefusedError(self._spec.id, str(exc)) from exc
        except NotReplaceableError as exc:
            raise StalePreparedError(self._spec.id, str(exc)) from exc
        self._epoch = entry.epoch
        self._history = None
        return str(snapshot.snapshot_id)

    def check_may_erase(self) -> None:
        """Check what the table asks of whoever takes rows out of it."""
        self._check_features(self._table().metadata)
        if has_deletes(self._table()):
            raise RowsNotInFilesError(self._spec.id, "it has delete files")

    def live_data_files(self, version: str | None = None) -> list[LiveDataFile]:
        """Return the data files of the handle's snapshot, or of an earlier one."""
        handle = self._table() if version is None else self._current()
        snapshot = handle.current_snapshot() if version is None else snapshot_at(handle.metadata, version, self._spec.id)
        found = [] if snapshot is None else [task.file for task in handle.scan(snapshot_id=snapshot.snapshot_id).plan_files()]
        schema, specs = handle.schema(), handle.metadata.specs()
        return [
            LiveDataFile(
                name=one.file_path,
                path=self._places.file_at(one.file_path),
                size_bytes=one.file_size_in_bytes,
                partition={},
                range=file_range(one, schema),
                spec_id=one.spec_id,
                is_replaceable=is_written_here(specs[one.spec_id], schema),
            )
            for one in found
        ]

    def rows_of(self, file: LiveDataFile) -> Iterator[pa.Table]:
        """Yield the rows of a live file, in the table's columns where these were renamed or dropped since."""
        handle = self._table()
        with file.path.open() as opened, pq.ParquetFile(opened) as parquet:
            if has_ids_of(parquet.schema_arrow, handle.schema()):
                yield from map(parquet.read_row_group, range(parquet.num_row_groups))
                return
        reader = RowReader(handle, self._spec.id, self._places, file.spec_id)
        yield from (rows.cast(reader.columns) for rows in reader.read(file.name))

    def delete_refused(self) -> bool:
        """Delete the manifests of replacements that were refused, and return whether all were: the new files are nobody's then.

        Where a SQL catalog did not answer, the metadata file of the attempt stays, and a catalog that is restored from a copy
        might come to name it: so its manifests stay, too.
        """
        if not self._attempts.are_refused and not isinstance(self._catalog, LedgerCatalog):
            written = self._attempts.take_refused(self._current().metadata)
            delete_all(self._places.file_at(address) for address in written)
        return self._attempts.are_refused

    def check_may_append(self) -> None:
        """Check what the table asks of whoever commits to it."""
        self._check_features(self._table().metadata)

    def _check_may_commit(self, entry: Entry) -> None:
        if not self._is_seen:
            raise CommitRefusedError(self._spec.id, "its ledger was not read by this handle")
        if entry.epoch < self._epoch:
            raise CommitRefusedError(self._spec.id, f"it moved on to epoch {self._epoch}")
        self._check_features(self._table().metadata)

    def _check_features(self, metadata: TableMetadata) -> None:
        checked = (metadata.format_version, metadata.current_schema_id, metadata.properties)
        if checked != self._checked:
            check_features(metadata, self._spec.id)
            self._checked = checked

    def has_moved_on(self) -> bool:
        """Whether the catalog names another metadata file than the handle's."""
        return metadata_location(self._catalog, self._spec) != self._table().metadata_location

    def entries(self) -> Iterator[CommittedEntry]:
        """Yield entries newest first, along the ancestry of the handle's snapshot."""
        return self.history().entries()

    def history(self) -> IcebergHistory:
        """Return the snapshots in the metadata at which the handle stands."""
        return self._history_in(self._read_history())

    def look_back(self, version: str) -> PastVersion:
        """Return what the table held at a snapshot."""
        current = self._current()
        snapshot = snapshot_at(current.metadata, version, self._spec.id)
        found = counting(self._history_in(current.metadata).entries(version))
        return look_back(current.metadata, snapshot, found.entry if found else None, current.io, self._spec.id)

    def restore(self, version: str, entry: Entry) -> str:
        """Commit a child of an old snapshot, with its manifests and with the entry, as the current snapshot.

        A rollback alone would leave the old snapshot's entry, and so its epoch, on top: it would let a zombie commit.
        """
        self._is_seen = False
        handle = self._newest()
        found = counting(self._history_in(handle.metadata).entries())
        if found is not None and found.entry.epoch > entry.epoch:
            raise CommitRefusedError(self._spec.id, f"it moved on to epoch {found.entry.epoch}")
        parent = snapshot_at(handle.metadata, version, self._spec.id)
        handle.metadata = slim(handle.metadata)
        try:
            snapshot = append(handle, [], {ENTRY_KEY: encode(entry)}, parent=parent)
        except CommitFailedException as exc:
            raise CommitRefusedError(self._spec.id, str(exc)) from exc
        except FileNotFoundError as exc:
            raise VersionGoneError(self._spec.id, version, f"it expired this moment, its files are gone ({exc})") from exc
        finally:
            self._handle = None
        return str(snapshot.snapshot_id)

    def kept_until_ms(self, version: TableVersion, left_at_ms: int) -> int:
        """Return until when expiry, by the table's settings, keeps a snapshot; its age counts from its commit."""
        history = self._read_history()
        return kept_until_ms(history, snapshot_at(history, version.version, self._spec.id))

    def change_schema(self, plan: SchemaPlan, entry: Entry | None) -> None:
        """Add columns and widen types. It makes no snapshot, so the entry that counts stays where it is."""
        self._is_seen = False
        try:
            change(self._newest(), plan, self._spec.id)
        finally:
            self._handle = None

    def scan_kafka(self) -> pa.Table:
        """Read ``_kafka`` of every row, flattened."""
        current = self._current()
        names = current.schema().column_names
        lost = next((name for name in KAFKA_TYPE.names if f"{KAFKA_COLUMN}.{name}" not in names), None)
        if lost is not None:
            why = f"it has no column {KAFKA_COLUMN}.{lost}, which says where a row came from"
            raise RowsNotReadError(
                self._spec.id, why, "Somebody renamed or dropped it: rename it back, or land into a new table"
            )
        try:
            rows = current.scan(selected_fields=(KAFKA_COLUMN,)).to_arrow()
        except ValueError as exc:
            what_to_do = "The runbook schema-changed says how to set schema.name-mapping.default"
            raise RowsNotReadError(self._spec.id, f"{first_line(exc)} (a file without field ids)", what_to_do) from exc
        flat = rows.flatten().rename_columns([name.partition(".")[2] for name in rows.flatten().column_names])
        return flat.select(KAFKA_TYPE.names).cast(pa.schema(list(KAFKA_TYPE)))

    def misread_columns(self) -> ColumnsLook:
        """Compare the columns of the files with those of the table."""
        return misread_columns(self._current(), self._places)

    def reconstruct(self) -> ReconstructedCoverage | None:
        """Work out coverage from the files' statistics, else from the rows."""
        current = self._current()
        snapshot = current.current_snapshot()
        files = [
            entry.data_file
            for manifest in (snapshot.manifests(current.io) if snapshot else [])
            for entry in manifest.fetch_manifest_entry(current.io, discard_deleted=True)
        ]
        if not files:
            return None
        return from_ranges([file_range(file, current.schema()) for file in files]) or from_rows(self.scan_kafka())

    def keep_cheap(self) -> None:
        """Nothing: metadata files are deleted by the commits themselves."""

    @property
    def _catalog(self) -> AnyCatalog:
        return open_catalog(self._places)

    @property
    def _identifier(self) -> Identifier:
        return (self._spec.namespace, self._spec.short_name)

    def _table(self) -> PyIcebergTable:
        if self._handle is None:
            check_pointer(self._catalog, self._spec, self._places)
            self._handle = self._current()
            self._history, self._handle.metadata = self._handle.metadata, slim(self._handle.metadata)
        return self._handle

    def _read_history(self) -> TableMetadata:
        """Return the metadata that the handle stands at, all snapshots included."""
        handle = self._table()
        if self._history is None:
            self._history = self._catalog.metadata_at(self._identifier, handle.metadata_location, handle.io)
        return self._history

    def _history_in(self, metadata: TableMetadata) -> IcebergHistory:
        return history_of_metadata(metadata, self._spec.id, self._places)

    def _newest(self) -> PyIcebergTable:
        """Return a handle of its own to commit by; refuse it where the catalog is an older copy."""
        check_pointer(self._catalog, self._spec, self._places)
        newest = self._current()
        check_features(newest.metadata, self._spec.id)
        return newest

    def _current(self) -> PyIcebergTable:
        """Return a handle of its own, so that reading never moves the one that commits."""
        return self._catalog.load_table(self._identifier)


def _has_rows(snapshot: Snapshot, handle: PyIcebergTable) -> bool:
    total = snapshot.summary.get("total-records") if snapshot.summary is not None else None
    if total is not None:
        return int(total) > 0
    return any(manifest.has_added_files() or manifest.has_existing_files() for manifest in snapshot.manifests(handle.io))


def open_table(spec: TableSpec, places: Places) -> IcebergTable:
    """Return the table of a spec; nothing is read or made yet."""
    return IcebergTable(spec, places)
