"""The SQL catalog of the Iceberg tables, made fit for a commit every half second.

PyIceberg's own commit reads, copies and validates the whole metadata, all snapshots included, some twenty times: 0.4 s at 300
snapshots. Here a metadata file, which never changes, is parsed once, and a commit that only appends works on *slim* metadata:
the same table with its current snapshot alone, as REST catalogs give it to clients that ask for ``snapshots=refs``.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Sequence
from dataclasses import replace

from pyiceberg.catalog import Catalog, MetastoreCatalog
from pyiceberg.catalog.sql import IcebergTables, SqlCatalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.io import FileIO
from pyiceberg.table import CommitTableResponse, StagedTable, Table, TableProperties
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import MAIN_BRANCH
from pyiceberg.table.snapshots import MetadataLogEntry
from pyiceberg.table.update import AddSnapshotUpdate, SetSnapshotRefUpdate, TableRequirement, TableUpdate, update_table_metadata
from pyiceberg.typedef import EMPTY_DICT, Identifier, Properties
from sqlalchemy import Engine, select, update
from sqlalchemy.exc import ProgrammingError
from sqlalchemy.orm import Session

from lakebound.storage.location import Location
from lakebound.tables.iceberg.features import check_no_code, locations_of
from lakebound.tables.iceberg.known_metadata import Elements, KnownMetadata, as_json, read_metadata
from lakebound.tables.iceberg.local_files import sync_metadata
from lakebound.tables.iceberg.store_files import StoreFileIO

CATALOG_NAME = "ice"
"""Name under which PyIceberg and Spark both know the catalog; it stands in the catalog's rows."""

_UNDEFINED_TABLE = "42P01"


class LedgerCatalog(SqlCatalog):
    """A SqlCatalog that remembers, per table, the newest metadata that it has read or written. Threads may share it.

    Args:
        name: Of the catalog.
        root: Folder below which all tables are; None: of this machine.
        engine: Of the database; None: by the property ``uri``.
        properties: As PyIceberg takes them.
    """

    def __init__(self, name: str, *, root: Location | None = None, engine: Engine | None = None, **properties: str) -> None:
        self._known: dict[Identifier, KnownMetadata] = {}
        # What is remembered of a table is appended to in place, so one thread at a time uses it.
        self._locks: dict[Identifier, threading.RLock] = {}
        self._files = None if root is None or root.is_local else StoreFileIO(root.store)
        if engine is None:
            super().__init__(name, **properties)
            return
        MetastoreCatalog.__init__(self, name, **properties)
        self.engine = engine
        self._init_catalog()

    def pointer(self, identifier: Identifier) -> str | None:
        """Return where the table's metadata is; None where there is no such table."""
        *namespace, name = identifier
        chosen = select(IcebergTables.metadata_location).where(
            IcebergTables.catalog_name == self.name,
            IcebergTables.table_namespace == ".".join(namespace),
            IcebergTables.table_name == name,
        )
        with Session(self.engine) as session:
            try:
                return session.scalar(chosen)
            except ProgrammingError as exc:
                if getattr(exc.orig, "sqlstate", None) != _UNDEFINED_TABLE:
                    raise
                return None  # a new database, and whoever only looks makes no tables in it

    def metadata_at(self, identifier: Identifier, location: str, io: FileIO) -> TableMetadata:
        """Return the metadata in a metadata file, all snapshots included. It is shared: never change it.

        Args:
            identifier: Namespace and name of the table.
            location: Address of the metadata file.
            io: Reads the file when it is not the one that is remembered.
        """
        return self._at(identifier, location, io).metadata

    def commit_table(
        self, table: Table, requirements: tuple[TableRequirement, ...], updates: tuple[TableUpdate, ...]
    ) -> CommitTableResponse:
        """Commit updates; an append to an existing table costs no copy of its history.

        Args:
            table: Handle on whose metadata the updates are based.
            requirements: What must hold of the table's current metadata.
            updates: Changes of the metadata, in order; an append adds a snapshot and makes it the current one.
        """
        if not _is_append(updates):
            return super().commit_table(table, requirements, updates)
        current = self.load_table(table.name())
        for requirement in requirements:
            requirement.validate(current.metadata)
        _check_same(table, current)
        _check_parent(updates, current)
        base = slim(current.metadata)
        appended = update_table_metadata(base, updates, metadata_location=current.metadata_location)
        with self._lock_of(current.name()):
            return self._append(current, base, appended)

    def _append(self, current: Table, base: TableMetadata, appended: TableMetadata) -> CommitTableResponse:
        known = self._at(current.name(), current.metadata_location, current.io)
        added = appended.snapshots[len(base.snapshots) :]
        metadata = appended.model_copy(
            update={
                "snapshots": [*known.metadata.snapshots, *added],
                "snapshot_log": [*known.metadata.snapshot_log, *appended.snapshot_log],
            }
        )
        snapshots, log = as_json(added), as_json(appended.snapshot_log)
        location = self._write(known.location, known, metadata, snapshots, log, current.io)
        try:
            self._swap(current, location)
        except CommitFailedException:
            # Nobody's, for certain; and its manifests are deleted, so nobody may take it for a part of the history.
            current.io.delete(location)
            raise
        known.snapshots.add(snapshots)
        known.log.add(log)
        self._known[current.name()] = KnownMetadata(location, metadata, known.snapshots, known.log)
        return CommitTableResponse.model_construct(metadata=appended, metadata_location=location)

    def expire(self, table: Table, ids: Collection[int]) -> CommitTableResponse:
        """Commit metadata without some snapshots, all else as it was; at no cost for those that stay.

        Args:
            table: Handle at whose metadata the table must still be.
            ids: Of snapshots that nothing needs (``lakebound.tables.iceberg.expirable``).

        Raises:
            CommitFailedException: The table has other metadata than the handle.
        """
        current = self.load_table(table.name())
        if current.metadata_location != table.metadata_location:
            raise CommitFailedException(f"Table has been updated by another process: {'.'.join(table.name())}")
        with self._lock_of(current.name()):
            known = self._at(current.name(), current.metadata_location, current.io)
            metadata, texts = known.without(set(ids))
            metadata = metadata.model_copy(
                update={
                    "metadata_log": _longer_log(known),
                    "last_updated_ms": later_than(known.metadata.last_updated_ms),
                }
            )
            kept = KnownMetadata("", metadata, Elements(texts), Elements(as_json(metadata.snapshot_log)))
            location = self._write(known.location, kept, metadata, [], [], current.io)
            try:
                self._swap(current, location)
            except CommitFailedException:
                current.io.delete(location)
                raise
            self._known[current.name()] = replace(kept, location=location)
        return CommitTableResponse.model_construct(metadata=slim(metadata), metadata_location=location)

    def _convert_orm_to_iceberg(self, orm_table: IcebergTables) -> Table:
        location = str(orm_table.metadata_location)
        identifier = (*Catalog.identifier_to_tuple(str(orm_table.table_namespace)), str(orm_table.table_name))
        io = self._load_file_io(location=location)
        return Table(
            identifier=identifier,
            metadata=self.metadata_at(identifier, location, io),
            metadata_location=location,
            io=io,
            catalog=self,
        )

    def _at(self, identifier: Identifier, location: str, io: FileIO) -> KnownMetadata:
        with self._lock_of(identifier):
            known = self._known.get(identifier)
            if known is None or known.location != location:
                known = self._known[identifier] = read_metadata(location, io, known)
            return known

    def _lock_of(self, identifier: Identifier) -> threading.RLock:
        return self._locks.setdefault(identifier, threading.RLock())

    def _load_file_io(self, properties: Properties = EMPTY_DICT, location: str | None = None) -> FileIO:
        # Not with the properties that a table brings along: they may name code.
        return self._files or super()._load_file_io(EMPTY_DICT, location)

    def _update_and_stage_table(
        self,
        current_table: Table | None,
        table_identifier: Identifier,
        requirements: tuple[TableRequirement, ...],
        updates: tuple[TableUpdate, ...],
    ) -> StagedTable:
        """Do so, but never with a location provider that the table names."""
        if current_table is not None:
            check_no_code(current_table.metadata.properties, ".".join(table_identifier))
        return super()._update_and_stage_table(current_table, table_identifier, requirements, updates)

    def _write(
        self, before: str, known: KnownMetadata, metadata: TableMetadata, snapshots: list[str], log: list[str], io: FileIO
    ) -> str:
        """Write the metadata file that comes after another, and return where.

        Args:
            before: Address of the other.
            known: JSON of what stays of its snapshots and its snapshot log.
            metadata: Everything else.
            snapshots: JSON of those that are added.
            log: JSON of what is added to the snapshot log.
            io: Writes it.
        """
        number = self._parse_metadata_version(before) + 1
        location = locations_of(metadata.location, metadata.properties).new_table_metadata_file_location(number)
        rest = metadata.model_dump_json(exclude={"snapshots", "snapshot_log"})
        with io.new_output(location).create() as file:
            file.write(f'{rest[:-1]},"snapshots":'.encode())
            known.snapshots.write(file, snapshots)
            file.write(b',"snapshot-log":')
            known.log.write(file, log)
            file.write(b"}")
        sync_metadata(location)
        return location

    def _write_metadata(self, metadata: TableMetadata, io: FileIO, metadata_path: str) -> None:  # type: ignore[override]
        """Write the metadata file of any other commit, so that its time is no earlier than any in its logs."""
        snapshots_ms = [entry.timestamp_ms for entry in metadata.snapshot_log]
        files_ms = [entry.timestamp_ms for entry in metadata.metadata_log]
        newest_ms = max([metadata.last_updated_ms, *snapshots_ms, *files_ms])
        metadata = metadata.model_copy(update={"last_updated_ms": newest_ms})
        super()._write_metadata(metadata, io, metadata_path)
        sync_metadata(metadata_path)

    def _swap(self, current: Table, location: str) -> None:
        *namespace, name = current.name()
        with Session(self.engine) as session:
            swapped = session.execute(
                update(IcebergTables)
                .where(
                    IcebergTables.catalog_name == self.name,
                    IcebergTables.table_namespace == ".".join(namespace),
                    IcebergTables.table_name == name,
                    IcebergTables.metadata_location == current.metadata_location,
                )
                .values(metadata_location=location, previous_metadata_location=current.metadata_location)
            )
            if swapped.rowcount < 1:  # type: ignore[attr-defined]
                raise CommitFailedException(f"Table has been updated by another process: {'.'.join(current.name())}")
            session.commit()


def _longer_log(known: KnownMetadata) -> list[MetadataLogEntry]:
    """Return the log of a metadata file that comes after another one, as long as the table's property asks."""
    metadata = known.metadata
    asked = metadata.properties.get(TableProperties.METADATA_PREVIOUS_VERSIONS_MAX)
    kept = int(asked or TableProperties.METADATA_PREVIOUS_VERSIONS_MAX_DEFAULT)
    entry = MetadataLogEntry.model_validate({"metadata-file": known.location, "timestamp-ms": metadata.last_updated_ms})
    return [*metadata.metadata_log, entry][-max(kept, 1) :]


def _is_append(updates: Sequence[TableUpdate]) -> bool:
    """Whether the updates add one snapshot and make it the current one, and nothing else."""
    if len(updates) != 2:
        return False
    added, head = updates
    return (
        isinstance(added, AddSnapshotUpdate)
        and isinstance(head, SetSnapshotRefUpdate)
        and head.ref_name == MAIN_BRANCH
        and head.snapshot_id == added.snapshot.snapshot_id
    )


def _check_same(table: Table, current: Table) -> None:
    """Check that the table is still of the kind for which an append was made; who changes that makes no snapshot.

    Raises:
        CommitFailedException: It has another format version or location, or other properties.
    """
    if table.metadata_location == current.metadata_location:
        return
    for what in ("format_version", "location", "properties"):
        if getattr(table.metadata, what) != getattr(current.metadata, what):
            raise CommitFailedException(f"somebody else has changed its {what.replace('_', ' ')} since it was read")


def _check_parent(updates: Sequence[TableUpdate], current: Table) -> None:
    """Check that the parent of an appended snapshot is kept still; a rewind appends to one that may have expired this moment.

    Raises:
        CommitFailedException: It has expired, and its files are being deleted.
    """
    kept = {snapshot.snapshot_id for snapshot in current.metadata.snapshots}
    for update_ in updates:
        if isinstance(update_, AddSnapshotUpdate) and update_.snapshot.parent_snapshot_id not in {None, *kept}:
            raise CommitFailedException(f"snapshot {update_.snapshot.parent_snapshot_id} has expired")


def later_than(milliseconds: int) -> int:
    """Return the time, or the next millisecond after another one that the clock, set back since, has yet to reach.

    Spark does not read a table whose snapshots go back in time by more than a minute ("Expected sorted snapshot log entries").
    """
    return max(time.time_ns() // 1_000_000, milliseconds + 1)


def slim(metadata: TableMetadata) -> TableMetadata:
    """Return the metadata with its current snapshot alone, and without a snapshot log."""
    current = [snapshot for snapshot in metadata.snapshots[-1:] if snapshot.snapshot_id == metadata.current_snapshot_id]
    if not current:
        current = [snapshot for snapshot in metadata.snapshots if snapshot.snapshot_id == metadata.current_snapshot_id]
    return metadata.model_copy(update={"snapshots": current, "snapshot_log": []})
