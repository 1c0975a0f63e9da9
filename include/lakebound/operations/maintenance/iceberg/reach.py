"""Which files only some of a table's snapshots need.

It cannot be told from the snapshots next to an expired one: where a table was rewound, a kept snapshot may share files with one
on another branch whose parents expired long ago. So all kept snapshots are looked at, the newest first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from lakebound.errors import LakeboundError
from lakebound.tables.iceberg.manifests import FILE_PATHS, AvroFields
from lakebound.tables.iceberg.metadata_json import Body
from lakebound.tables.places import Places

_PATHS = AvroFields(ids=(500,))
"""Of a manifest list: each manifest's path."""

_DELETED = 2
_STATISTICS = ("statistics", "partition-statistics")

Snapshot = Mapping[str, Any]


class ManifestUnreadableError(LakeboundError):
    """What a snapshot needs is not known, as a file of its metadata is torn or gone."""

    def __init__(self, location: str, reason: str) -> None:
        super().__init__(
            f"{location} cannot be read ({reason}), so it is unknown which files the table needs; no file was deleted"
        )


def only_needed_by(expired: Iterable[int], body: Body, places: Places) -> list[str]:
    """Return the locations of files that no other snapshot of the metadata needs: content, then manifests, then lists.

    Args:
        expired: Ids of snapshots.
        body: Metadata in which they still are.
        places: Where the table is.

    Raises:
        ManifestUnreadableError: A manifest that is needed to tell cannot be read.
    """
    gone, snapshots = set(expired), body.get("snapshots", [])
    dead = [snapshot for snapshot in snapshots if snapshot["snapshot-id"] in gone]
    kept = [snapshot for snapshot in snapshots if snapshot["snapshot-id"] not in gone]
    needed_manifests: dict[str, None] = {}
    for snapshot in sorted(kept, key=lambda one: one.get("sequence-number", 0), reverse=True):
        needed_manifests |= dict.fromkeys(manifests_of(snapshot, places))
    dead_manifests = {path for snapshot in dead for path in manifests_of(snapshot, places)} - needed_manifests.keys()
    candidates = {path for manifest in dead_manifests for path in content_of(manifest, places)}
    for manifest in needed_manifests:
        if not candidates:
            break
        candidates.difference_update(content_of(manifest, places))
    statistics = [
        found["statistics-path"] for name in _STATISTICS for found in body.get(name, []) if found["snapshot-id"] in gone
    ]
    return [*sorted(candidates), *statistics, *sorted(dead_manifests), *(snapshot["manifest-list"] for snapshot in dead)]


def manifests_of(snapshot: Snapshot, places: Places) -> list[str]:
    """Return the locations of a snapshot's manifests."""
    return [row[0] for row in _rows(_PATHS, snapshot["manifest-list"], places)]


def content_of(manifest: str, places: Places) -> list[str]:
    """Return the locations of the live files in a manifest."""
    return [entry[1][0] for entry in _rows(FILE_PATHS, manifest, places) if entry[0] != _DELETED]


def needed(body: Body, places: Places) -> Iterator[str]:
    """Yield the locations of everything that the metadata's snapshots need, and of the metadata files that it names.

    Raises:
        ManifestUnreadableError: A manifest cannot be read.
    """
    seen: set[str] = set()
    for snapshot in body.get("snapshots", []):
        yield snapshot["manifest-list"]
        for manifest in manifests_of(snapshot, places):
            if manifest not in seen:
                seen.add(manifest)
                yield manifest
                yield from content_of(manifest, places)
    for name in _STATISTICS:
        yield from (found["statistics-path"] for found in body.get(name, []))
    yield from (entry["metadata-file"] for entry in body.get("metadata-log", []))


def _rows(fields: AvroFields, location: str, places: Places) -> list[Any]:
    try:
        return list(fields.rows(places.file_at(location).read()))
    except Exception as exc:  # torn Avro fails in many ways
        raise ManifestUnreadableError(location, f"{type(exc).__name__}: {exc}") from exc
