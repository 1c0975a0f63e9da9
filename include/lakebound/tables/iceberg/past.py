"""Earlier versions of an Iceberg table: what they held, whether their files are still there, and for how long."""

from __future__ import annotations

from collections.abc import Iterator

from pyiceberg.io import FileIO
from pyiceberg.manifest import DataFile, DataFileContent
from pyiceberg.table import TableProperties
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Snapshot

from lakebound.ledger.entry import Entry
from lakebound.tables.iceberg.schema import arrow_columns
from lakebound.tables.outages import tells_nothing
from lakebound.tables.table import PastVersion, VersionGoneError


def snapshot_at(metadata: TableMetadata, version: str, table: str) -> Snapshot:
    """Return a snapshot.

    Args:
        metadata: The table's metadata.
        version: Snapshot id, as text.
        table: Id of the table, for the message.

    Raises:
        VersionGoneError: It is not kept any more.
    """
    snapshot = metadata.snapshot_by_id(int(version))
    if snapshot is None:
        raise VersionGoneError(table, version, "the snapshot has expired")
    return snapshot


def look_back(metadata: TableMetadata, snapshot: Snapshot, entry: Entry | None, io: FileIO, table: str) -> PastVersion:
    """Return what a snapshot held.

    Args:
        metadata: The table's newest metadata; its columns are used.
        snapshot: The snapshot.
        entry: The entry that counted there; None before the first.
        io: Reads the manifests, and says whether data files exist.
        table: Id of the table, for the message.

    Raises:
        VersionGoneError: Its manifests are gone.
    """
    try:
        files = list(_files(snapshot, io))
    except (OSError, ValueError) as exc:
        if tells_nothing(exc):
            raise
        raise VersionGoneError(table, str(snapshot.snapshot_id), f"its manifests cannot be read ({exc})") from exc
    return PastVersion(
        entry=entry,
        rows=sum(file.record_count for file in files if file.content == DataFileContent.DATA),
        # A snapshot is read by the table's columns of today: a rewind leaves them as they are.
        schema=arrow_columns(metadata.schema()),
        missing_files=tuple(file.file_path for file in files if not io.new_input(file.file_path).exists()),
    )


def kept_until_ms(metadata: TableMetadata, snapshot: Snapshot) -> int:
    """Return until when expiry, by the table's settings, keeps a snapshot that is no ancestor of the current one."""
    age = metadata.properties.get(TableProperties.MAX_SNAPSHOT_AGE_MS, "")
    return snapshot.timestamp_ms + (int(age) if age.isdigit() else TableProperties.MAX_SNAPSHOT_AGE_MS_DEFAULT)


def _files(snapshot: Snapshot, io: FileIO) -> Iterator[DataFile]:
    for manifest in snapshot.manifests(io):
        for entry in manifest.fetch_manifest_entry(io, discard_deleted=True):
            yield entry.data_file
