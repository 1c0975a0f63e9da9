"""The SQL catalog of the Iceberg tables, made fit for a commit every half second.

PyIceberg's own commit reads, copies and validates the whole metadata, all snapshots included, some twenty times: 0.4 s at 300
snapshots. Here a metadata file, which never changes, is parsed once, and a commit that only appends works on *slim* metadata: the
same table with its current snapshot alone, as REST catalogs give it to clients that ask for ``snapshots=refs``.
"""

from __future__ import annotations

import sqlite3
import threading
from functools import cache
from pathlib import Path

from pyiceberg.catalog import Catalog
from pyiceberg.catalog.sql import IcebergTables, SqlCatalog
from pyiceberg.exceptions import CommitFailedException, NamespaceAlreadyExistsError
from pyiceberg.io import FileIO
from pyiceberg.serializers import FromInputFile, ToOutputFile
from pyiceberg.table import CommitTableResponse, Table, TableProperties
from pyiceberg.table.locations import load_location_provider
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.update import AddSnapshotUpdate, SetSnapshotRefUpdate, TableRequirement, TableUpdate, update_table_metadata
from pyiceberg.typedef import Identifier
from sqlalchemy import update
from sqlalchemy.exc import IntegrityError, OperationalError
from sqlalchemy.orm import Session
from tenacity import retry, retry_if_exception_type, stop_after_attempt, wait_random

CATALOG_NAME = "ice"
"""Name under which PyIceberg and Spark both know the catalog; it stands in the catalog's rows."""

_BUSY_TIMEOUT_SECONDS = 60
_SQLITE = "sqlite:///"
_making = threading.Lock()


class LedgerCatalog(SqlCatalog):
    """A SqlCatalog that remembers parsed metadata, per table the newest."""

    def __init__(self, name: str, **properties: str) -> None:
        self._known: dict[Identifier, tuple[str, TableMetadata]] = {}
        super().__init__(name, **properties)

    def metadata_at(self, identifier: Identifier, location: str, io: FileIO) -> TableMetadata:
        """Return the metadata in a metadata file, all snapshots included. It is shared: never change it."""
        known = self._known.get(identifier)
        if known is not None and known[0] == location:
            return known[1]
        metadata = FromInputFile.table_metadata(io.new_input(location))
        self._known[identifier] = (location, metadata)
        return metadata

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

    def commit_table(
        self, table: Table, requirements: tuple[TableRequirement, ...], updates: tuple[TableUpdate, ...]
    ) -> CommitTableResponse:
        """Commit updates; an append to an existing table costs no copy of its history."""
        if not updates or not all(isinstance(found, AddSnapshotUpdate | SetSnapshotRefUpdate) for found in updates):
            return super().commit_table(table, requirements, updates)
        current = self.load_table(table.name())
        for requirement in requirements:
            requirement.validate(current.metadata)
        appended = update_table_metadata(slim(current.metadata), updates, metadata_location=current.metadata_location)
        history = current.metadata.snapshots
        known = {snapshot.snapshot_id for snapshot in history}
        metadata = appended.model_copy(
            update={
                "snapshots": [*history, *(snapshot for snapshot in appended.snapshots if snapshot.snapshot_id not in known)],
                "snapshot_log": [*current.metadata.snapshot_log, *appended.snapshot_log],
            }
        )
        number = self._parse_metadata_version(current.metadata_location) + 1
        provider = load_location_provider(metadata.location, metadata.properties)
        location = provider.new_table_metadata_file_location(number)
        ToOutputFile.table_metadata(metadata, current.io.new_output(location))
        self._swap(current, location)
        self._known[current.name()] = (location, metadata)
        return CommitTableResponse(metadata=slim(metadata), metadata_location=location)

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


def slim(metadata: TableMetadata) -> TableMetadata:
    """Return the metadata with its current snapshot alone, and without a snapshot log."""
    current = [snapshot for snapshot in metadata.snapshots[-1:] if snapshot.snapshot_id == metadata.current_snapshot_id]
    if not current:
        current = [snapshot for snapshot in metadata.snapshots if snapshot.snapshot_id == metadata.current_snapshot_id]
    return metadata.model_copy(update={"snapshots": current, "snapshot_log": []})


def for_commits(metadata: TableMetadata) -> TableMetadata:
    """Return slim metadata on which PyIceberg does not retry: a stale handle is refused, not rebased. The table itself stays as it is."""
    properties = {**metadata.properties, TableProperties.COMMIT_NUM_RETRIES: "0"}
    return slim(metadata).model_copy(update={"properties": properties})


def open_catalog(uri: str, warehouse: Path) -> LedgerCatalog:
    """Return this process's catalog at a SQLAlchemy address; a SQLite file is made, in WAL mode, when there is none."""
    with _making:
        return _open_catalog(uri, warehouse)


@cache
def _open_catalog(uri: str, warehouse: Path) -> LedgerCatalog:
    warehouse.mkdir(parents=True, exist_ok=True)
    if uri.startswith(_SQLITE):
        path = Path(uri.removeprefix(_SQLITE).partition("?")[0])
        path.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(path, timeout=_BUSY_TIMEOUT_SECONDS)
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        finally:
            connection.close()
        uri += ("&" if "?" in uri else "?") + f"timeout={_BUSY_TIMEOUT_SECONDS}"
    return _connect(uri, warehouse)


@retry(retry=retry_if_exception_type(OperationalError), stop=stop_after_attempt(5), wait=wait_random(0.1, 0.5), reraise=True)
def _connect(uri: str, warehouse: Path) -> LedgerCatalog:
    """Make the catalog's tables when they are missing; two processes that start together may both try."""
    return LedgerCatalog(CATALOG_NAME, uri=uri, warehouse=f"file://{warehouse}")


def make_namespace(catalog: LedgerCatalog, namespace: str) -> None:
    """Make the namespace unless it is there."""
    try:
        catalog.create_namespace_if_not_exists(namespace)
    except (IntegrityError, NamespaceAlreadyExistsError):
        return
