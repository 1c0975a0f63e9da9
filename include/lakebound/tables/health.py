"""What a table's metadata says of its files, as frozen values. Reading them is ``lakebound.tables.table``'s."""

from __future__ import annotations

from pydantic import Field

from lakebound.frozen import Frozen

SIZE_BOUNDS_BYTES = tuple(1024 * 1024 * size // 16 for size in (1, 4, 16, 64, 256, 1024, 4096, 16384))
"""Upper bounds of the size histogram's bins: 64 KiB, 256 KiB … 1 GiB; a last bin takes what is larger."""


class FileFacts(Frozen):
    """One live data file.

    Attributes:
        size_bytes: Its size.
        added_at_ms: When it came into the table: Delta's modification time; Iceberg: the time of the snapshot that added it, or
            of the oldest kept one where that has expired.
        is_of_older_spec: Iceberg: it was written for a partitioning that the table no longer has.
    """

    size_bytes: int
    added_at_ms: int
    is_of_older_spec: bool = False


class PartitionFacts(Frozen):
    """The live files of one partition.

    Attributes:
        values: Partition field to its value (None: null) as Delta's log writes it, or as Iceberg writes it in a path
            (``at_day``: ``2026-11-20``); empty for an unpartitioned table.
        files: Of the partition, in no order.
        delete_files: Iceberg: position and equality delete files; Delta: files with a deletion vector.
    """

    values: dict[str, str | None]
    files: tuple[FileFacts, ...]
    delete_files: int = 0

    @property
    def name(self) -> str:
        """Such as ``day=2026-11-20/site=a``; empty for an unpartitioned table."""
        return "/".join(f"{field}={value}" for field, value in self.values.items())


class MetadataFacts(Frozen):
    """What a commit and a reader have to carry besides data.

    Attributes:
        metadata_bytes: Delta: of the log checkpoint and the log since; Iceberg: of metadata file, manifest list and manifests.
        log_tail_commits: Delta: commits since the log checkpoint; 0 for Iceberg.
        log_files: Delta: files in the log folder; 0 for Iceberg.
        tombstones: Delta: removed files that the log still names; 0 for Iceberg.
        manifests: Iceberg; 0 for Delta.
        snapshots: Iceberg: kept ones; Delta: versions that are kept.
        oldest_version_at_ms: Of the oldest that can still be read; None where there is none.
        dangling_delete_files: Iceberg: delete files of partitions that have no data file; 0 for Delta.
    """

    metadata_bytes: int = 0
    log_tail_commits: int = 0
    log_files: int = 0
    tombstones: int = 0
    manifests: int = 0
    snapshots: int = 0
    oldest_version_at_ms: int | None = None
    dangling_delete_files: int = 0


class TableFacts(Frozen):
    """A table as its metadata describes it at one version.

    Attributes:
        table: ``format:name``.
        version: Delta version or Iceberg snapshot id; "" for a table without a snapshot.
        rows: In live files, as far as metadata says.
        properties: The table's own.
        partitions: With at least one file each.
    """

    table: str
    at_ms: int
    version: str
    rows: int
    partitions: tuple[PartitionFacts, ...]
    metadata: MetadataFacts
    properties: dict[str, str] = Field(default_factory=dict)

    @property
    def files(self) -> int:
        """Live data files."""
        return sum(len(partition.files) for partition in self.partitions)

    @property
    def size_bytes(self) -> int:
        """Of the live data files."""
        return sum(file.size_bytes for partition in self.partitions for file in partition.files)
