"""A snapshot that appends files, made for a table that gets one every half second.

It is PyIceberg's fast append with two differences. It does not copy the table's metadata a dozen times. And it keeps the
manifest list short: ten manifests of about one size are rewritten as one, so that a file's entry is rewritten a few times in
its life, and no commit carries thousands of manifests.
"""

from __future__ import annotations

import itertools
import sys
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from pyiceberg.exceptions import CommitFailedException
from pyiceberg.io import FileIO
from pyiceberg.manifest import (
    DataFile,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    ManifestWriter,
    write_manifest,
    write_manifest_list,
)
from pyiceberg.table import Table, TableProperties
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import MAIN_BRANCH, SnapshotRefType
from pyiceberg.table.snapshots import Operation, Snapshot, SnapshotSummaryCollector, Summary, update_snapshot_summaries
from pyiceberg.table.update import (
    AddSnapshotUpdate,
    AssertCurrentSchemaId,
    AssertDefaultSpecId,
    AssertRefSnapshotId,
    AssertTableUUID,
    SetSnapshotRefUpdate,
)

from lakebound.tables.iceberg.catalog import LedgerCatalog, later_than, slim
from lakebound.tables.iceberg.features import locations_of
from lakebound.tables.iceberg.local_files import sync_contents, sync_locations
from lakebound.tables.iceberg.merging import (
    LARGEST_MERGED,
    MERGED_AT_ONCE,
    Encoded,
    EncodedEntries,
    encode_existing,
    of_one_size,
    read_existing,
    write_existing,
)
from lakebound.tables.iceberg.store_files import DraftFileIO, StoreFileIO


def append(
    table: Table,
    files: Sequence[DataFile],
    properties: Mapping[str, str],
    *,
    parent: Snapshot | None = None,
    known: EncodedEntries | None = None,
    wait_for_files: Callable[[], None] = lambda: None,
) -> Snapshot:
    """Commit files (perhaps none) as a child of the table's current snapshot, once; the handle then stands at the new one.

    Args:
        table: The handle.
        files: Data files of the table's default partitioning.
        properties: Of the snapshot.
        parent: An older snapshot whose child is to become the current one, in place of what came after it.
        known: Entries of this process's earlier commits to the table; those of this one are added.
        wait_for_files: Returns when the files are in their object store; until then, manifests are put there beside them.

    Raises:
        CommitFailedException: The table has another current snapshot than the handle, or was changed that very moment.
    """
    known = known or EncodedEntries()
    appending = SnapshotWriter(table, parent or table.current_snapshot(), known)
    snapshot = appending.snapshot(files, properties)
    # Before any metadata names them. The catalog syncs that file, and the folder in which the manifests lie beside it.
    sync_locations((file.file_path for file in files), table.location())
    sync_contents(appending.written)
    appending.put_drafts()
    wait_for_files()
    commit_snapshot(table, snapshot, appending.written)
    known.take_over(appending.kind, appending.encoded, appending.manifests)
    return snapshot


def commit_snapshot(table: Table, snapshot: Snapshot, written: Iterable[str]) -> None:
    """Make a snapshot, whose files are on the disk, the current one; the handle then stands at it.

    Args:
        table: The handle.
        snapshot: A child of the table's current snapshot, or of one that comes before it.
        written: Addresses of what was written for it: deleted where the commit certainly did not take place.

    Raises:
        CommitFailedException: The table has another current snapshot than the handle, or was changed that very moment. A
            catalog behind a network may say so of a request that took effect: a client or a gateway has repeated it.
    """
    before = table.metadata
    try:
        response = table.catalog.commit_table(table, *_updates(before, snapshot))
    except CommitFailedException:
        # Only this one's refusal is certain. Of others, the look for orphans finds what no snapshot names.
        if isinstance(table.catalog, LedgerCatalog):
            for address in written:
                table.io.delete(address)
        raise
    table.metadata, table.metadata_location = slim(response.metadata), response.metadata_location
    if isinstance(table.catalog, LedgerCatalog):
        delete_dropped_metadata(table, before)


class SnapshotWriter:
    """Writes manifests and their list for a snapshot that is still to be committed: here for one that appends.

    Attributes:
        written: Addresses of what was written.
        manifests: Of the snapshot.
        encoded: Entries of the manifests that were written, by the manifest's path.
        kind: Ids by which entries are of one form (``EncodedEntries``).
    """

    def __init__(self, table: Table, parent: Snapshot | None, known: EncodedEntries) -> None:
        """Write nothing yet.

        Args:
            table: The handle.
            parent: Of the snapshot.
            known: Entries of this process's earlier commits to the table.
        """
        self._io: FileIO = DraftFileIO(table.io) if isinstance(table.io, StoreFileIO) else table.io
        self._metadata: TableMetadata = table.metadata
        self._provider = locations_of(table.location(), table.metadata.properties)
        self._uuid = uuid.uuid4()
        self._numbers = itertools.count()
        self.written: list[str] = []
        self._id = self._metadata.new_snapshot_id()
        self._compression = self._metadata.properties.get(
            TableProperties.WRITE_AVRO_COMPRESSION, TableProperties.WRITE_AVRO_COMPRESSION_DEFAULT
        )
        self._parent = parent
        self._known = known
        self.kind = (self._metadata.format_version, self._metadata.current_schema_id, self._metadata.default_spec_id)
        self.encoded: dict[str, list[Encoded]] = {}
        self.manifests: list[ManifestFile] = []

    def snapshot(self, files: Sequence[DataFile], properties: Mapping[str, str]) -> Snapshot:
        """Write manifests and their list, and return the snapshot that is still to be committed."""
        metadata, parent = self._metadata, self._parent
        parent_id = parent.snapshot_id if parent else None
        self.manifests = [*self._added(files), *self._of_parent()]
        sequence_number = metadata.next_sequence_number()
        location = self._new_location(f"snap-{self._id}-0-{self._uuid}.avro")
        with write_manifest_list(
            format_version=metadata.format_version,
            output_file=self._io.new_output(location),
            snapshot_id=self._id,
            parent_snapshot_id=parent_id,
            sequence_number=sequence_number,
            avro_compression=self._compression,  # type: ignore[arg-type]
        ) as writer:
            writer.add_manifests(self.manifests)
        return Snapshot.model_validate(
            {
                "snapshot-id": self._id,
                "parent-snapshot-id": parent_id,
                "manifest-list": location,
                "sequence-number": sequence_number,
                "timestamp-ms": later_than(metadata.last_updated_ms),
                "summary": self._summary(files, properties, parent),
                "schema-id": metadata.current_schema_id,
            }
        )

    def put_drafts(self) -> None:
        """Put what was written in the object store, side by side."""
        if isinstance(self._io, DraftFileIO):
            self._io.put_all()

    def _added(self, files: Sequence[DataFile]) -> list[ManifestFile]:
        """Return a manifest for the files of each partitioning."""
        spec_ids = sorted({file.spec_id for file in files})
        return [self._added_of(spec_id, [file for file in files if file.spec_id == spec_id]) for spec_id in spec_ids]

    def _added_of(self, spec_id: int, files: Sequence[DataFile]) -> ManifestFile:
        encoded, sequence_number = [], self._metadata.next_sequence_number()
        with self._new_manifest(spec_id) as writer:
            for file in files:
                entry = ManifestEntry.from_args(
                    status=ManifestEntryStatus.ADDED,
                    snapshot_id=self._id,
                    sequence_number=None,
                    file_sequence_number=None,
                    data_file=file,
                )
                writer.add(entry)
                encoded.append(encode_existing(writer, entry, (sequence_number, sequence_number), self._id))
        return self._written_manifest(writer, encoded)

    def _of_parent(self) -> list[ManifestFile]:
        """Return the parent's manifests that hold files, the small ones merged where there are enough of a size."""
        kept = holding(self._parent.manifests(self._io) if self._parent else [])
        bound = MERGED_AT_ONCE
        while bound <= LARGEST_MERGED:
            for group in of_one_size(kept, bound // MERGED_AT_ONCE, bound):
                merged = self._merge(group)
                kept = [merged, *(manifest for manifest in kept if manifest not in group)]
            bound *= MERGED_AT_ONCE
        return kept

    def _merge(self, manifests: Sequence[ManifestFile]) -> ManifestFile:
        encoded: list[Encoded] = []
        with self._new_manifest(manifests[0].partition_spec_id) as writer:
            for manifest in manifests:
                known = self.encoded.get(manifest.manifest_path) or self._known.find(self.kind, manifest)
                encoded += known or read_existing(writer, manifest, self._io)
            write_existing(writer, encoded)
        return self._written_manifest(writer, encoded)

    def _written_manifest(self, writer: ManifestWriter, encoded: list[Encoded]) -> ManifestFile:
        manifest = writer.to_manifest_file()
        self.encoded[manifest.manifest_path] = encoded
        return manifest

    @contextmanager
    def _new_manifest(self, spec_id: int) -> Iterator[ManifestWriter]:
        location = self._new_location(f"{self._uuid}-m{next(self._numbers)}.avro")
        writer = write_manifest(
            format_version=self._metadata.format_version,
            spec=self._metadata.specs()[spec_id],
            schema=self._metadata.schema(),
            output_file=self._io.new_output(location),
            snapshot_id=self._id,
            avro_compression=self._compression,  # type: ignore[arg-type]
        )
        writer.__enter__()
        try:
            yield writer
        except BaseException:
            # Not by the writer's own end: it says of an empty manifest that it is empty, in place of why it is.
            with suppress(Exception):
                writer._writer.__exit__(*sys.exc_info())
            raise
        writer.__exit__(None, None, None)

    def _new_location(self, name: str) -> str:
        location = self._provider.new_metadata_location(name)
        self.written.append(location)
        return location

    def _summary(self, files: Sequence[DataFile], properties: Mapping[str, str], parent: Snapshot | None) -> Summary:
        collector = SnapshotSummaryCollector()
        for file in files:
            collector.add_file(file, self._metadata.schema(), self._metadata.spec())
        return update_snapshot_summaries(
            summary=Summary(operation=Operation.APPEND, **collector.build(), **properties),
            previous_summary=parent.summary if parent is not None else None,
        )


def holding(manifests: Iterable[ManifestFile]) -> list[ManifestFile]:
    """Return the manifests that hold files; others only tell what their snapshot took away."""
    return [manifest for manifest in manifests if manifest.has_added_files() or manifest.has_existing_files()]


def _updates(metadata: TableMetadata, snapshot: Snapshot) -> tuple[Any, Any]:
    """Return the requirements and updates of a commit for which the table must still be what the handle shows."""
    head = {"ref-name": MAIN_BRANCH, "snapshot-id": snapshot.snapshot_id, "type": SnapshotRefType.BRANCH}
    return (
        (
            AssertTableUUID(uuid=metadata.table_uuid),
            AssertRefSnapshotId.model_validate({"ref": MAIN_BRANCH, "snapshot-id": metadata.current_snapshot_id}),
            AssertCurrentSchemaId.model_validate({"current-schema-id": metadata.current_schema_id}),
            AssertDefaultSpecId.model_validate({"default-spec-id": metadata.default_spec_id}),
        ),
        (
            AddSnapshotUpdate(snapshot=snapshot),
            SetSnapshotRefUpdate.model_validate(head),
        ),
    )


def delete_dropped_metadata(table: Table, before: TableMetadata) -> None:
    """Delete metadata files that fell out of the metadata log, where the table's properties ask for it."""
    wanted = table.metadata.properties.get(TableProperties.METADATA_DELETE_AFTER_COMMIT_ENABLED, "false")
    if wanted.lower() != "true":
        return
    kept = {entry.metadata_file for entry in table.metadata.metadata_log}
    for entry in before.metadata_log:
        if entry.metadata_file not in kept:
            try:
                table.io.delete(entry.metadata_file)
            except OSError:
                continue  # somebody else's commit dropped it first
