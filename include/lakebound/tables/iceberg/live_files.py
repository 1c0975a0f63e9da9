"""The data files of an Iceberg table's current snapshot, as whoever rewrites them needs them: path, partition and size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pyiceberg.manifest import ManifestContent, ManifestEntryStatus, ManifestFile, ManifestWriter
from pyiceberg.table import Table

from lakebound.tables.iceberg.append import holding
from lakebound.tables.iceberg.health import partition_texts
from lakebound.tables.iceberg.manifests import FILE_PATHS, AvroFields
from lakebound.tables.iceberg.merging import Encoded, read_existing

_FILES = AvroFields(ids=(0, 3, 2), nested={2: AvroFields(ids=(100, 102, 103, 104))})
"""Of a manifest: each entry's status and sequence number, and the file's path, partition, rows and bytes."""

Partition = Mapping[str, str | None]


@dataclass(frozen=True, slots=True)
class LiveFile:
    """A data file of the current snapshot. Small: a table may have a hundred thousand.

    Attributes:
        path: As its manifest names it.
        partition: Partition field to value, as in ``lakebound.tables.health.PartitionFacts``.
        rows: How many it holds.
        size_bytes: Its size.
        sequence_number: Of the snapshot that added its rows: files are older the smaller it is.
    """

    path: str
    partition: Partition
    rows: int
    size_bytes: int
    sequence_number: int


class LiveFiles:
    """Reads the data files of a table again and again; a manifest that was read before is not read again."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[LiveFile, ...]] = {}
        self._partitions: dict[tuple[int, tuple[Any, ...]], Partition] = {}

    def of(self, table: Table) -> list[LiveFile]:
        """Return the data files of the table's default partitioning, oldest first."""
        spec_id = table.metadata.default_spec_id
        manifests = [
            one for one in manifests_of(table) if one.content == ManifestContent.DATA and one.partition_spec_id == spec_id
        ]
        self._known = {
            one.manifest_path: self._known.get(one.manifest_path) or tuple(self._read(one, table)) for one in manifests
        }
        files = [file for files in self._known.values() for file in files]
        return sorted(files, key=lambda one: (one.sequence_number, one.path))

    def _read(self, manifest: ManifestFile, table: Table) -> Iterator[LiveFile]:
        for status, sequence_number, file in _rows(_FILES, manifest, table, 3):
            if status != ManifestEntryStatus.DELETED:
                own = manifest.sequence_number or 0 if sequence_number is None else sequence_number
                yield LiveFile(file[0], self._partition(manifest, file[1], table), file[2], file[3], own)

    def _partition(self, manifest: ManifestFile, partition: Any, table: Table) -> Partition:
        key = manifest.partition_spec_id, tuple(partition[number] for number in range(len(partition)))
        if key not in self._partitions:
            self._partitions[key] = partition_texts(table.metadata, *key)
        return self._partitions[key]


class KnownManifests:
    """What data manifests of a table hold. They never change, so each is read once, however often a commit is tried."""

    def __init__(self) -> None:
        self._paths: dict[str, frozenset[str]] = {}
        self._entries: dict[str, list[Encoded]] = {}
        self._kind: tuple[int, ...] = ()

    def keep(self, manifests: Iterable[ManifestFile], kind: tuple[int, ...]) -> None:
        """Forget all but the manifests of a snapshot.

        Args:
            manifests: Those of the snapshot.
            kind: Ids by which entries are of one form (``EncodedEntries``); those of another form are forgotten, too.
        """
        paths = {one.manifest_path for one in manifests}
        entries = self._entries if kind == self._kind else {}
        self._paths = {path: found for path, found in self._paths.items() if path in paths}
        self._entries = {path: found for path, found in entries.items() if path in paths}
        self._kind = kind

    def paths(self, manifest: ManifestFile, table: Table) -> frozenset[str]:
        """Return the paths of the files that a manifest holds."""
        if manifest.manifest_path not in self._paths:
            rows = _rows(FILE_PATHS, manifest, table, 2)
            live = (file[0] for status, file in rows if status != ManifestEntryStatus.DELETED)
            self._paths[manifest.manifest_path] = frozenset(live)
        return self._paths[manifest.manifest_path]

    def entries(self, manifest: ManifestFile, table: Table, writer: ManifestWriter) -> list[Encoded]:
        """Return the entries of the files that a manifest holds, as other manifests hold them.

        Args:
            manifest: The manifest.
            table: Reads it.
            writer: Of a manifest of the same partition spec; nothing is written.
        """
        if manifest.manifest_path not in self._entries:
            self._entries[manifest.manifest_path] = read_existing(writer, manifest, table.io)
        return self._entries[manifest.manifest_path]

    def add(self, manifest: ManifestFile, entries: list[Encoded]) -> None:
        """Note what a manifest holds that was written here."""
        self._paths[manifest.manifest_path] = frozenset(one.path for one in entries)
        self._entries[manifest.manifest_path] = entries


def has_deletes(table: Table) -> bool:
    """Whether the current snapshot has delete files: a data file then holds more rows than the table."""
    return any(one.content != ManifestContent.DATA for one in manifests_of(table))


def manifests_of(table: Table) -> list[ManifestFile]:
    """Return the manifests of the current snapshot that hold files."""
    snapshot = table.current_snapshot()
    return holding(snapshot.manifests(table.io)) if snapshot is not None else []


def _rows(fields: AvroFields, manifest: ManifestFile, table: Table, width: int) -> Iterator[tuple[Any, ...]]:
    with table.io.new_input(manifest.manifest_path).open() as file:
        for row in fields.rows(file.read()):
            yield tuple(row[number] for number in range(width))
