"""Small manifests rewritten as one, from entries that this process has already encoded.

To merge a hundred entries PyIceberg takes some 100 ms: it builds a reader for each manifest, and encodes each entry again. A
stream would feel it at every hundredth commit. Here an entry is encoded once, when it is committed, in the form in which a
merged manifest holds it; to merge is then to put bytes together.
"""

from __future__ import annotations

import io
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from pyiceberg.avro.encoder import BinaryEncoder
from pyiceberg.io import FileIO
from pyiceberg.manifest import ManifestContent, ManifestEntry, ManifestEntryStatus, ManifestFile, ManifestWriter
from pyiceberg.typedef import Record

MERGED_AT_ONCE = 10
LARGEST_MERGED = 1000
"""A manifest of this many files is left to maintenance."""


@dataclass(frozen=True)
class Encoded:
    """An entry as a merged manifest holds it, and what the manifest says in sum.

    Attributes:
        rest_at: Where in ``content`` that begins which does not tell how the entry came into its manifest.
        path: Of its file.
        size_bytes: Of its file.
    """

    content: bytes
    rest_at: int
    partition: Record
    rows: int
    sequence_number: int
    path: str
    size_bytes: int


@dataclass
class EncodedEntries:
    """The entries of manifests that this process wrote, by the manifest's path, as long as they may still be merged.

    Attributes:
        kind: Of the table's schema and partition specs, by their ids; where it changes, entries are of another form.
    """

    kind: tuple[int, ...] = ()
    by_path: dict[str, list[Encoded]] = field(default_factory=dict)

    def take_over(self, kind: tuple[int, ...], fresh: dict[str, list[Encoded]], manifests: Collection[ManifestFile]) -> None:
        """Keep those of a committed snapshot's manifests.

        Args:
            kind: Ids of the schema and the partition specs, as in the attribute.
            fresh: Entries of the manifests that the commit wrote, by the manifest's path.
            manifests: All manifests of the snapshot; entries of other manifests are dropped.
        """
        known = {**(self.by_path if kind == self.kind else {}), **fresh}
        small = [manifest.manifest_path for manifest in manifests if size_of(manifest) < LARGEST_MERGED]
        self.kind, self.by_path = kind, {path: known[path] for path in small if path in known}

    def find(self, kind: tuple[int, ...], manifest: ManifestFile) -> list[Encoded] | None:
        """Return a manifest's entries, if they are known."""
        return self.by_path.get(manifest.manifest_path) if kind == self.kind else None


def encode_existing(
    writer: ManifestWriter, entry: ManifestEntry, sequence_numbers: tuple[int, int], snapshot_id: int
) -> Encoded:
    """Return an entry in the form that it has in later manifests.

    Args:
        writer: Of a manifest of the entry's partition spec.
        entry: One with a data file.
        sequence_numbers: Of the snapshot that added its rows, and of the one that added the file: a compaction adds files with
            the rows of earlier snapshots (https://iceberg.apache.org/spec/#sequence-number-inheritance).
        snapshot_id: Of the snapshot that added the file.
    """
    sequence_number, file_sequence_number = sequence_numbers
    existing = ManifestEntry.from_args(
        status=ManifestEntryStatus.EXISTING,
        snapshot_id=snapshot_id,
        sequence_number=sequence_number,
        file_sequence_number=file_sequence_number,
        data_file=entry.data_file,
    )
    buffer, file = io.BytesIO(), entry.data_file
    writer._writer.writer.write(BinaryEncoder(buffer), writer.prepare_entry(existing))
    content, start = buffer.getvalue(), _start(ManifestEntryStatus.EXISTING, snapshot_id)
    if not content.startswith(start):
        raise ValueError("a manifest's entry does not begin with its status and its snapshot's id")
    return Encoded(
        content, len(start), file.partition, file.record_count, sequence_number, file.file_path, file.file_size_in_bytes
    )


def _start(status: ManifestEntryStatus, snapshot_id: int) -> bytes:
    """Return the bytes with which an entry begins: its first fields (https://iceberg.apache.org/spec/#manifests)."""
    buffer = io.BytesIO()
    encoder = BinaryEncoder(buffer)
    encoder.write_int(status)
    encoder.write_int(1)  # of a field that may be null: it is not
    encoder.write_int(snapshot_id)
    return buffer.getvalue()


def read_existing(writer: ManifestWriter, manifest: ManifestFile, files: FileIO) -> list[Encoded]:
    """Return the entries of a manifest that another process wrote.

    Args:
        writer: Of a manifest of the same partition spec; nothing is written.
        manifest: The manifest to read.
        files: Reads it.
    """
    entries = manifest.fetch_manifest_entry(files, discard_deleted=True)
    return [
        encode_existing(writer, entry, (entry.sequence_number or 0, entry.file_sequence_number or 0), entry.snapshot_id or 0)
        for entry in entries
    ]


def write_existing(writer: ManifestWriter, entries: Sequence[Encoded]) -> None:
    """Write encoded entries as one block, as ``ManifestWriter.existing`` would write them one by one."""
    writer._existing_files += len(entries)
    writer._existing_rows += sum(entry.rows for entry in entries)
    writer._partitions.extend(entry.partition for entry in entries)
    writer._min_sequence_number = min(entry.sequence_number for entry in entries)
    _write_block(writer, len(entries), b"".join(entry.content for entry in entries))


def write_deleted(writer: ManifestWriter, entries: Sequence[Encoded]) -> None:
    """Write encoded entries as one block, as ``ManifestWriter.delete`` would write them one by one."""
    writer._deleted_files += len(entries)
    writer._deleted_rows += sum(entry.rows for entry in entries)
    writer._partitions.extend(entry.partition for entry in entries)
    start = _start(ManifestEntryStatus.DELETED, writer._snapshot_id)
    _write_block(writer, len(entries), b"".join(start + entry.content[entry.rest_at :] for entry in entries))


def _write_block(writer: ManifestWriter, count: int, content: bytes) -> None:
    file = writer._writer
    if codec := file.compression_codec():
        content, _ = codec.compress(content)
    file.encoder.write_int(count)
    file.encoder.write_int(len(content))
    file.encoder.write(content)
    file.encoder.write(file.sync_bytes)


def of_one_size(manifests: Iterable[ManifestFile], least: int, bound: int) -> Iterator[list[ManifestFile]]:
    """Yield, per partition spec, the data manifests of ``least`` to ``bound`` - 1 files, where there are enough to merge.

    Args:
        manifests: Those of a snapshot.
        least: Smallest number of files.
        bound: Number of files from which a manifest is left alone.
    """
    groups: dict[int, list[ManifestFile]] = {}
    for manifest in manifests:
        fits = least <= size_of(manifest) < bound
        if manifest.content == ManifestContent.DATA and not manifest.deleted_files_count and fits:
            groups.setdefault(manifest.partition_spec_id, []).append(manifest)
    yield from (group for group in groups.values() if len(group) >= MERGED_AT_ONCE)


def size_of(manifest: ManifestFile) -> int:
    """Return how many files a manifest holds."""
    return (manifest.added_files_count or 0) + (manifest.existing_files_count or 0)
