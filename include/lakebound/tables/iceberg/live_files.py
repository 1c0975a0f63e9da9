"""The data files of an Iceberg table's current snapshot, as whoever rewrites them needs them: with partition and statistics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pyiceberg.manifest import DataFile, ManifestContent, ManifestFile
from pyiceberg.table import Table

from lakebound.tables.iceberg.append import holding
from lakebound.tables.iceberg.health import partition_texts
from lakebound.tables.iceberg.manifests import AvroFields

_PATHS = AvroFields(ids=(0, 2), nested={2: AvroFields(ids=(100,))})
"""Of a manifest: each entry's status, and the file's path."""
_DELETED = 2


@dataclass(frozen=True)
class LiveFile:
    """A data file of the current snapshot.

    Attributes:
        file: As its manifest describes it.
        partition: Partition field to value, as in ``lakebound.tables.health.PartitionFacts``.
        sequence_number: Of the snapshot that added its rows: files are older the smaller it is.
    """

    file: DataFile
    partition: Mapping[str, str | None]
    sequence_number: int


class LiveFiles:
    """Reads the data files of a table again and again; a manifest that was read before is not read again."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[LiveFile, ...]] = {}

    def of(self, table: Table) -> list[LiveFile]:
        """Return the data files of the table's default partitioning, oldest first."""
        spec_id = table.metadata.default_spec_id
        manifests = [
            one for one in _manifests(table) if one.content == ManifestContent.DATA and one.partition_spec_id == spec_id
        ]
        self._known = {
            one.manifest_path: self._known.get(one.manifest_path) or tuple(_files_in(one, table)) for one in manifests
        }
        files = [file for files in self._known.values() for file in files]
        return sorted(files, key=lambda one: (one.sequence_number, one.file.file_path))


def has_deletes(table: Table) -> bool:
    """Whether the current snapshot has delete files: a data file then holds more rows than the table."""
    return any(one.content != ManifestContent.DATA for one in _manifests(table))


def paths_in(manifest: ManifestFile, table: Table) -> set[str]:
    """Return the paths of the files that a manifest holds."""
    with table.io.new_input(manifest.manifest_path).open() as file:
        return {entry[1][0] for entry in _PATHS.rows(file.read()) if entry[0] != _DELETED}


def _manifests(table: Table) -> list[ManifestFile]:
    snapshot = table.current_snapshot()
    return holding(snapshot.manifests(table.io)) if snapshot is not None else []


def _files_in(manifest: ManifestFile, table: Table) -> Iterator[LiveFile]:
    for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True):
        file = entry.data_file
        values = tuple(file.partition[number] for number in range(len(file.partition)))
        yield LiveFile(file, partition_texts(table.metadata, manifest.partition_spec_id, values), entry.sequence_number or 0)
