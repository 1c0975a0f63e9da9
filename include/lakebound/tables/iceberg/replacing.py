"""A snapshot that puts data files in the place of others with the same rows: what Iceberg's ``RewriteFiles`` commits.

For tables whose files Spark does not rewrite. It is made anew on each snapshot that it is to follow, so it replaces only files
that are live in it. The remaining files of the manifests that held them move to one new manifest.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from pyiceberg.manifest import DataFile, ManifestContent, ManifestEntry, ManifestFile
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Operation, Snapshot, SnapshotSummaryCollector, Summary, update_snapshot_summaries

from lakebound.errors import LakeboundError
from lakebound.tables.iceberg.append import SnapshotWriter, commit_snapshot, holding
from lakebound.tables.iceberg.live_files import KnownManifests
from lakebound.tables.iceberg.local_files import sync_contents, sync_locations
from lakebound.tables.iceberg.merging import EncodedEntries

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
    before_commit: Callable[[Snapshot], None],
) -> Snapshot:
    """Commit new files in place of others as a child of the table's current snapshot; the handle then stands at it.

    Args:
        table: The handle.
        removed: Paths of the files that go, as manifests name them.
        added: The files that come, with the same rows, of the table's default partitioning; they are where they belong.
        properties: Of the snapshot.
        name: Id of the table, for messages.
        known: What was read for earlier attempts.
        before_commit: Is told of the snapshot before the catalog is.

    Raises:
        NotReplaceableError: A file that goes is not live, or the table has delete files now.
        CommitFailedException: The table has another current snapshot than the handle, or was changed that very moment.
    """
    replacing = _Replacing(table, frozenset(removed), frozenset(file.file_path for file in added), name, known)
    snapshot = replacing.snapshot(added, properties)
    sync_locations((file.file_path for file in added), table.location())
    sync_contents(replacing.written)
    replacing.put_drafts()
    before_commit(snapshot)
    commit_snapshot(table, snapshot, replacing.written)
    return snapshot


class _Replacing(SnapshotWriter):
    def __init__(self, table: Table, removed: frozenset[str], added: frozenset[str], name: str, known: KnownManifests) -> None:
        super().__init__(table, table.current_snapshot(), EncodedEntries())
        self._table = table
        self._read = known
        self._removed_paths = removed
        self._added_paths = added
        self._name = name
        self._gone: list[ManifestEntry] = []

    def _of_parent(self, manifests: Sequence[ManifestFile]) -> list[ManifestFile]:
        """Return the parent's manifests; of those that hold a file which goes, the others' entries in a new one."""
        held = holding(manifests)
        data = [one for one in held if one.content == ManifestContent.DATA]
        paths = {one.manifest_path: self._read.paths(one, self._table) for one in data}
        # First of all: whatever else has come since, what an earlier attempt committed is in the table.
        if any(self._added_paths & found for found in paths.values()):
            raise NotReplaceableError(self._name, "they are in it already", is_replaced=True)
        if self._metadata.format_version != FORMAT:
            raise NotReplaceableError(self._name, f"it has format version {self._metadata.format_version} now")
        if len(data) < len(held):
            raise NotReplaceableError(self._name, "another engine has added delete files meanwhile")
        touched = [one for one in data if paths[one.manifest_path] & self._removed_paths]
        if any(one.partition_spec_id != self._metadata.default_spec_id for one in touched):
            raise NotReplaceableError(self._name, "its partitioning was changed meanwhile")
        untouched = [one for one in data if not paths[one.manifest_path] & self._removed_paths]
        stay: list[ManifestEntry] = []
        for manifest in touched:
            for entry in self._read.entries(manifest, self._table):
                (self._gone if entry.data_file.file_path in self._removed_paths else stay).append(entry)
        missing = len(self._removed_paths) - len(self._gone)
        if missing:
            raise NotReplaceableError(self._name, f"{missing} of the rewritten files were removed by somebody else meanwhile")
        parts = [stay[first : first + _ENTRIES_PER_MANIFEST] for first in range(0, len(stay), _ENTRIES_PER_MANIFEST)]
        existing = [self._manifest_of(part, deleted=False) for part in parts]
        return [self._manifest_of(self._gone, deleted=True), *existing, *untouched]

    def _manifest_of(self, entries: Sequence[ManifestEntry], *, deleted: bool) -> ManifestFile:
        with self._new_manifest(self._metadata.default_spec_id) as writer:
            for entry in entries:
                _ = writer.delete(entry) if deleted else writer.existing(entry)
        return writer.to_manifest_file()

    def _summary(self, files: Sequence[DataFile], properties: Mapping[str, str], parent: Snapshot | None) -> Summary:
        collector, schema, spec = SnapshotSummaryCollector(), self._metadata.schema(), self._metadata.spec()
        for file in files:
            collector.add_file(file, schema, spec)
        for entry in self._gone:
            collector.remove_file(entry.data_file, schema, spec)
        # PyIceberg sums up no replacement; an overwrite has the same sums.
        summed = update_snapshot_summaries(
            summary=Summary(operation=Operation.OVERWRITE, **collector.build(), **properties),
            previous_summary=parent.summary if parent is not None else None,
        )
        return Summary(operation=Operation.REPLACE, **summed.additional_properties)
