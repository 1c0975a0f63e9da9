"""A snapshot that was made for an earlier one, committed as a child of the current one.

Iceberg's own rewriting reads and filters manifests, which takes longer than the stream lets the table stand still. What it
made is a list of manifests: those of its base, without some, with others in their place. Since its base nothing but appends
came: they bring manifests, and merge small ones. As long as the manifests that are to go are there, whole, the same replacement
can be made in the current list. The new manifests say themselves which of their sequence numbers are older; what they leave
open they inherit from the list (https://iceberg.apache.org/spec/#sequence-number-inheritance).
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from typing import Any, Literal

from pyiceberg.io import FileIO
from pyiceberg.manifest import UNASSIGNED_SEQ, ManifestFile, read_manifest_list, write_manifest_list
from pyiceberg.table import Table, TableProperties
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Operation, Snapshot

from lakebound.ledger.entry import ENTRY_KEY
from lakebound.tables.iceberg.append import commit_snapshot
from lakebound.tables.iceberg.catalog import later_than
from lakebound.tables.iceberg.features import locations_of
from lakebound.tables.iceberg.history import ancestors
from lakebound.tables.iceberg.local_files import local_path, sync_contents
from lakebound.tables.iceberg.manifests import AvroFields
from lakebound.tables.iceberg.merging import EncodedEntries
from lakebound.tables.prepared import ManifestReplacement, StalePreparedError

_PATHS = AvroFields(ids=(500,))
"""Of a manifest list: each manifest's path."""

_TOTALS = "total-"
_FORMAT: Literal[2] = 2
"""A list of version 3 also numbers the rows."""


def replacement(
    base: Mapping[str, Any], snapshot: Mapping[str, Any], *, table_uuid: str, schema_id: int, spec_id: int
) -> ManifestReplacement:
    """Return what a snapshot does to the manifests of its base. Both are on this machine.

    Args:
        base: JSON of the snapshot for which it was made.
        snapshot: Its own JSON.
        table_uuid: UUID of the table.
        schema_id: Id of the table's schema then.
        spec_id: Id of the table's partitioning then.
    """
    before, after = _paths(base["manifest-list"]), _paths(snapshot["manifest-list"])
    known, kept = set(before), set(after)
    return ManifestReplacement(
        table_uuid=table_uuid,
        schema_id=schema_id,
        spec_id=spec_id,
        base=base["snapshot-id"],
        base_totals=_totals(base["summary"]),
        snapshot=snapshot,
        removed=tuple(path for path in before if path not in kept),
        added=tuple(path for path in after if path not in known),
    )


def graft(
    table: Table, history: TableMetadata, prepared: ManifestReplacement, entry: str, known: EncodedEntries, name: str
) -> Snapshot:
    """Commit a prepared snapshot as a child of the table's current one; the handle then stands at it.

    Args:
        table: The handle.
        history: Its metadata with all snapshots.
        prepared: The snapshot, and for which one it was made.
        entry: The ledger's, for the snapshot's summary.
        known: Entries of this process's earlier commits to the table.
        name: Id of the table, for messages.

    Raises:
        StalePreparedError: It cannot be made into a child of the current snapshot; nothing was committed.
        CommitFailedException: The table was changed that very moment.
    """
    current = check_graftable(table.metadata, history, prepared, name)
    try:
        manifests = _manifests(current, table.io, prepared, name)
    except FileNotFoundError as exc:
        raise StalePreparedError(name, f"a file of it is gone ({exc})") from exc
    provider = locations_of(table.location(), table.metadata.properties)
    location = provider.new_metadata_location(f"snap-{prepared.snapshot['snapshot-id']}-1-{uuid.uuid4()}.avro")
    sequence_number = table.metadata.next_sequence_number()
    compression = table.metadata.properties.get(
        TableProperties.WRITE_AVRO_COMPRESSION, TableProperties.WRITE_AVRO_COMPRESSION_DEFAULT
    )
    with write_manifest_list(
        format_version=_FORMAT,
        output_file=table.io.new_output(location),
        snapshot_id=prepared.snapshot["snapshot-id"],
        parent_snapshot_id=current.snapshot_id,
        sequence_number=sequence_number,
        avro_compression=compression,  # type: ignore[arg-type]
    ) as writer:
        writer.add_manifests(manifests)
    snapshot = Snapshot.model_validate(
        {
            "snapshot-id": prepared.snapshot["snapshot-id"],
            "parent-snapshot-id": current.snapshot_id,
            "manifest-list": location,
            "sequence-number": sequence_number,
            "timestamp-ms": later_than(table.metadata.last_updated_ms),
            "summary": {**summary(prepared, current), ENTRY_KEY: entry},
            "schema-id": table.metadata.current_schema_id,
        }
    )
    sync_contents([location])
    commit_snapshot(table, snapshot, [location])
    known.take_over(known.kind, {}, manifests)
    return snapshot


def check_graftable(metadata: TableMetadata, history: TableMetadata, prepared: ManifestReplacement, name: str) -> Snapshot:
    """Return the current snapshot, of which a prepared one can be a child: since its base nothing but appends came. Pure.

    Args:
        metadata: Of the handle.
        history: The same with all snapshots.
        prepared: The snapshot, and for which one it was made.
        name: Id of the table, for the message.

    Raises:
        StalePreparedError: It cannot.
    """
    if metadata.format_version != _FORMAT:
        raise StalePreparedError(name, f"the table has format version {metadata.format_version}")
    ids = (str(metadata.table_uuid), metadata.current_schema_id, metadata.default_spec_id)
    if ids != (prepared.table_uuid, prepared.schema_id, prepared.spec_id):
        raise StalePreparedError(name, "the table, its columns or its partitioning are not those that it was prepared for")
    for snapshot in ancestors(history, metadata.current_snapshot_id):
        if snapshot.snapshot_id == prepared.base:
            break
        if snapshot.summary is None or snapshot.summary.operation != Operation.APPEND:
            raise StalePreparedError(name, f"snapshot {snapshot.snapshot_id}, which was committed since, is not an append")
    else:
        raise StalePreparedError(name, f"the current snapshot does not come from {prepared.base}, which it was prepared for")
    current = metadata.current_snapshot()
    assert current is not None, "it has a base"
    return current


def summary(prepared: ManifestReplacement, current: Snapshot) -> dict[str, str]:
    """Return the summary of the snapshot on top of the current one: what it does is the same, the totals are others. Pure."""
    wanted = {key: value for key, value in prepared.snapshot["summary"].items() if not key.startswith(_TOTALS)}
    now = _totals(current.summary.additional_properties if current.summary is not None else {})
    for key, value in _totals(prepared.snapshot["summary"]).items():
        if key in now and key in prepared.base_totals:
            wanted[key] = str(int(now[key]) + int(value) - int(prepared.base_totals[key]))
    return wanted


def _manifests(current: Snapshot, io: FileIO, prepared: ManifestReplacement, name: str) -> list[ManifestFile]:
    gone, manifests = set(prepared.removed), current.manifests(io)
    kept = [manifest for manifest in manifests if manifest.manifest_path not in gone]
    if len(manifests) - len(kept) != len(gone):
        raise StalePreparedError(name, "a manifest that it replaces was merged with others meanwhile")
    listed = prepared.snapshot["manifest-list"]
    found = {manifest.manifest_path: manifest for manifest in read_manifest_list(io.new_input(listed))}
    return [*_unnumbered([found[path] for path in prepared.added], prepared.snapshot), *kept]


def _unnumbered(manifests: Sequence[ManifestFile], snapshot: Mapping[str, Any]) -> Iterable[ManifestFile]:
    """Return the snapshot's own manifests so that they get the number that it is committed with."""
    for manifest in manifests:
        own = copy(manifest)
        if manifest.added_snapshot_id == snapshot["snapshot-id"]:
            own.sequence_number = UNASSIGNED_SEQ
            if manifest.min_sequence_number == snapshot["sequence-number"]:
                own.min_sequence_number = UNASSIGNED_SEQ
        yield own


def _paths(location: str) -> list[str]:
    return [row[0] for row in _PATHS.rows(local_path(location).read_bytes())]


def _totals(said: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in said.items() if key.startswith(_TOTALS)}
