"""A snapshot that puts data files in the place of others with the same rows: what Iceberg's ``RewriteFiles`` commits.

For tables whose files Spark does not rewrite. It is made anew on each snapshot that it is to follow, so it replaces only files
that are live in it. The remaining files of the manifests that held them move to one new manifest.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress

from pyiceberg.exceptions import CommitFailedException
from pyiceberg.manifest import DataFile as IcebergDataFile
from pyiceberg.manifest import DataFileContent, ManifestContent, ManifestFile
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Operation, Snapshot, SnapshotSummaryCollector, Summary, update_snapshot_summaries

from lakebound.errors import LakeboundError
from lakebound.tables.iceberg.append import SnapshotWriter, commit_snapshot
from lakebound.tables.iceberg.attempts import Attempts
from lakebound.tables.iceberg.catalog import LedgerCatalog
from lakebound.tables.iceberg.files import describe, path_in
from lakebound.tables.iceberg.live_files import KnownManifests, manifests_of
from lakebound.tables.iceberg.local_files import sync_contents, sync_locations
from lakebound.tables.iceberg.merging import Encoded, EncodedEntries, write_deleted, write_existing
from lakebound.tables.table import DataFile

FORMAT = 2
"""A table of version 3 also numbers its rows, and a rewrite would have to keep the numbers."""
_ENTRIES_PER_MANIFEST = 10_000


class NotReplaceableError(LakeboundError):
    """The files that were rewritten are not what the table holds any more. Nothing was committed.

    Attributes:
        is_replaced: The new files are in the table: an earlier attempt took effect, whatever was answered.
    """

    def __init__(self, table: str, reason: str, *, is_replaced: bool = False) -> None:
        self.is_replaced = is_replaced
        super().__init__(f"table {table}: rewritten files were not committed: {reason}")


def replace_files(
    table: Table,
    removed: Collection[str],
    added: Sequence[DataFile],
    properties: Mapping[str, str],
    name: str,
    known: KnownManifests,
    attempts: Attempts,
    operation: Operation = Operation.REPLACE,
) -> Snapshot:
    """Commit new files in place of others as a child of the table's current snapshot; the handle then stands at it.

    Args:
        table: The handle.
        removed: Paths of the files that go, as manifests name them.
        added: The files that come; they are where they belong.
        properties: Of the snapshot.
        name: Id of the table, for messages.
        known: What was read for earlier attempts.
        attempts: Earlier attempts; this one is added before the catalog is asked, and stays unless its refusal is certain.
        operation: ``overwrite`` where the new files lack rows that the others hold. Each is then of the partitioning of the
            file in whose place it comes, whatever that of the table is now.

    Raises:
        NotReplaceableError: A file that goes is not live, the table has delete files now, or another partitioning or format;
            or the new files are in it.
        TableMismatchError: The new files do not fit the table any more.
        CommitFailedException: The table has another current snapshot than the handle, or was changed that very moment.
    """
    paths = frozenset(path_in(table.location(), file) for file in added)
    replacing = _Replacing(table, frozenset(removed), paths, name, known, operation)
    # Before the new files are described and written, for which the table may have become another one.
    replacing.check()
    described = describe(added, table.metadata, name, may_be_earlier=operation == Operation.OVERWRITE)
    try:
        snapshot = replacing.snapshot(described, properties)
        sync_locations(paths, table.location())
        sync_contents(replacing.written)
        replacing.put_drafts()
    except BaseException:
        # No catalog was asked to commit it.
        for address in replacing.written:
            with suppress(Exception):
                table.io.delete(address)
        raise
    attempts.begin(table.metadata.table_uuid, snapshot, replacing.written)
    try:
        commit_snapshot(table, snapshot, replacing.written)
    except CommitFailedException:
        if isinstance(table.catalog, LedgerCatalog):
            attempts.end_refused()
        raise
    return snapshot


class _Replacing(SnapshotWriter):
    def __init__(
        self,
        table: Table,
        removed: frozenset[str],
        added: frozenset[str],
        name: str,
        known: KnownManifests,
        operation: Operation,
    ) -> None:
        super().__init__(table, table.current_snapshot(), EncodedEntries())
        self._table = table
        self._read = known
        self._removed_paths = removed
        self._added_paths = added
        self._name = name
        self._operation = operation
        self._gone: list[tuple[int, Encoded]] = []
        self._touched: list[ManifestFile] = []
        self._untouched: list[ManifestFile] = []

    def check(self) -> None:
        """Find which manifests of the parent, the current snapshot, hold a file that goes. Nothing is written.

        Raises:
            NotReplaceableError: The files cannot be replaced.
        """
        held = manifests_of(self._table)
        data = [one for one in held if one.content == ManifestContent.DATA]
        self._read.keep(data, self.kind)
        paths = {one.manifest_path: self._read.paths(one, self._table) for one in data}
        # First of all: whatever else has come since, what an earlier attempt committed is in the table.
        if any(self._added_paths & found for found in paths.values()):
            raise NotReplaceableError(self._name, "they are in it already", is_replaced=True)
        if self._metadata.format_version != FORMAT:
            raise NotReplaceableError(self._name, f"it has format version {self._metadata.format_version} now")
        if len(data) < len(held):
            raise NotReplaceableError(self._name, "another engine has added delete files meanwhile")
        hit = {path for path, found in paths.items() if not found.isdisjoint(self._removed_paths)}
        self._touched = [one for one in data if one.manifest_path in hit]
        self._untouched = [one for one in data if one.manifest_path not in hit]
        is_earlier = any(one.partition_spec_id != self._metadata.default_spec_id for one in self._touched)
        if is_earlier and self._operation == Operation.REPLACE:
            raise NotReplaceableError(self._name, "its partitioning was changed meanwhile")
        missing = len(self._removed_paths.difference(*(paths[one.manifest_path] for one in self._touched)))
        if missing:
            raise NotReplaceableError(self._name, f"{missing} of the rewritten files were removed by somebody else meanwhile")

    def _of_parent(self) -> list[ManifestFile]:
        """Return the parent's manifests; of those that hold a file which goes, the others' entries in a new one."""
        return [*self._rewritten(), *self._untouched]

    def _rewritten(self) -> list[ManifestFile]:
        """Return the manifests in the place of those that hold files which go."""
        return [one for spec_id in sorted({one.partition_spec_id for one in self._touched}) for one in self._of_spec(spec_id)]

    def _of_spec(self, spec_id: int) -> list[ManifestFile]:
        gone: list[Encoded] = []
        stay: list[Encoded] = []
        with self._new_manifest(spec_id) as writer:
            for manifest in self._touched:
                if manifest.partition_spec_id == spec_id:
                    for entry in self._read.entries(manifest, self._table, writer):
                        (gone if entry.path in self._removed_paths else stay).append(entry)
            write_deleted(writer, gone)
        self._gone += [(spec_id, entry) for entry in gone]
        parts = [stay[first : first + _ENTRIES_PER_MANIFEST] for first in range(0, len(stay), _ENTRIES_PER_MANIFEST)]
        return [writer.to_manifest_file(), *(self._existing(spec_id, part) for part in parts)]

    def _existing(self, spec_id: int, entries: list[Encoded]) -> ManifestFile:
        with self._new_manifest(spec_id) as writer:
            write_existing(writer, entries)
        manifest = writer.to_manifest_file()
        self._read.add(manifest, entries)
        return manifest

    def _summary(self, files: Sequence[IcebergDataFile], properties: Mapping[str, str], parent: Snapshot | None) -> Summary:
        collector, schema, specs = SnapshotSummaryCollector(), self._metadata.schema(), self._metadata.specs()
        for file in files:
            collector.add_file(file, schema, specs[file.spec_id])
        for spec_id, entry in self._gone:
            collector.remove_file(_counted(entry), schema, specs[spec_id])
        # PyIceberg sums up no replacement; an overwrite has the same sums.
        summed = update_snapshot_summaries(
            summary=Summary(operation=Operation.OVERWRITE, **collector.build(), **properties),
            previous_summary=parent.summary if parent is not None else None,
        )
        return Summary(operation=self._operation, **summed.additional_properties)


def _counted(entry: Encoded) -> IcebergDataFile:
    """Return as much of an entry's file as sums need."""
    return IcebergDataFile.from_args(
        content=DataFileContent.DATA,
        partition=entry.partition,
        record_count=entry.rows,
        file_size_in_bytes=entry.size_bytes,
    )
