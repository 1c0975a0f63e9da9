"""What a process keeps of the metadata file that it last read or wrote, so that an append parses and encodes nothing twice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyiceberg.io import FileIO, OutputStream
from pyiceberg.table.metadata import TableMetadata, TableMetadataUtil
from pyiceberg.table.snapshots import Snapshot, SnapshotLogEntry

from lakebound.tables.iceberg.metadata_json import parse_body


class Elements:
    """The elements of a JSON array that only grows: one more costs nothing for those that are there."""

    def __init__(self, elements: Sequence[str]) -> None:
        self.each = list(elements)
        self.joined = bytearray(",".join(elements).encode())

    def add(self, elements: Sequence[str]) -> None:
        """Append elements."""
        self.joined += self._after(elements)
        self.each += elements

    def write(self, file: OutputStream, added: Sequence[str]) -> None:
        """Write the array with further elements at its end, which are not kept."""
        for part in (b"[", self.joined, self._after(added), b"]"):
            file.write(part)  # type: ignore[arg-type]  # every stream takes any buffer; a copy would cost as much as to write it

    def _after(self, elements: Sequence[str]) -> bytes:
        return ("," if self.each and elements else "").encode() + ",".join(elements).encode()


@dataclass(frozen=True)
class KnownMetadata:
    """The metadata in a metadata file, and the JSON of its snapshots and of its snapshot log: an append adds one of each."""

    location: str
    metadata: TableMetadata
    snapshots: Elements
    log: Elements

    def without(self, ids: set[int]) -> tuple[TableMetadata, list[str]]:
        """Return the metadata without some snapshots, and the JSON of each that stays."""
        metadata = self.metadata
        pairs = zip(metadata.snapshots, self.snapshots.each, strict=True)
        kept = [(one, text) for one, text in pairs if one.snapshot_id not in ids]
        changed: dict[str, Any] = {
            name: [one for one in getattr(metadata, name) if one.snapshot_id not in ids]
            for name in ("snapshot_log", "statistics", "partition_statistics")
        }
        return metadata.model_copy(update={**changed, "snapshots": [one for one, _ in kept]}), [text for _, text in kept]


def read_metadata(location: str, io: FileIO, before: KnownMetadata | None) -> KnownMetadata:
    """Return what a metadata file says. Snapshots that stood in the file before are not parsed again.

    Of a snapshot hardly anything ever changes: PyIceberg takes its parent away when that expires, and who moves a table
    rewrites its paths.

    Args:
        location: Address of the metadata file.
        io: Reads it.
        before: What is kept of an earlier metadata file of the table, if anything is.
    """
    with io.new_input(location).open() as file:
        content = file.read()
    body = parse_body(content)
    seen: dict[tuple[int, int | None, str], tuple[Snapshot, str]] = {}
    if before is not None:
        known = zip(before.metadata.snapshots, before.snapshots.each, strict=True)
        seen = {_key(one): (one, text) for one, text in known}
    bodies = {
        (one["snapshot-id"], one.get("parent-snapshot-id"), one["manifest-list"]): one for one in body.get("snapshots", [])
    }
    parsed = TableMetadataUtil.parse_obj({**body, "snapshots": [one for key, one in bodies.items() if key not in seen]})
    seen |= {_key(one): (one, one.model_dump_json()) for one in parsed.snapshots}
    found = [seen[key] for key in bodies]
    metadata = parsed.model_copy(update={"snapshots": [one for one, _ in found]})
    return KnownMetadata(location, metadata, Elements([text for _, text in found]), Elements(as_json(metadata.snapshot_log)))


def _key(snapshot: Snapshot) -> tuple[int, int | None, str]:
    return snapshot.snapshot_id, snapshot.parent_snapshot_id, snapshot.manifest_list


def as_json(models: Sequence[Snapshot] | Sequence[SnapshotLogEntry]) -> list[str]:
    """Return the JSON of each."""
    return [model.model_dump_json() for model in models]
