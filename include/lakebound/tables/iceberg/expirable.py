"""Which snapshots of an Iceberg table may go without the ledger losing anything, and their expiry by who has them in memory."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping

from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata

from lakebound.ledger.entry import ENTRY_KEY, carried, encode
from lakebound.tables.entries import counting, read_entry
from lakebound.tables.iceberg.append import delete_dropped_metadata
from lakebound.tables.iceberg.catalog import LedgerCatalog
from lakebound.tables.iceberg.metadata_json import Body
from lakebound.tables.prepared import StalePreparedError
from lakebound.tables.table import CommittedEntry


def expirable(asked: Iterable[int], body: Body, table: str) -> set[int]:
    """Return which of the asked snapshots may go.

    Not those that a branch or tag names, nor the newest commit whose entry counts, nor any from there to the current one: an
    entry is found by walking back from the current snapshot, and the walk ends at a gap. Pure.

    Args:
        asked: Ids of snapshots.
        body: The table's metadata; of each snapshot its ids and the ledger's part of its summary are enough.
        table: Id of the table, for messages.

    Raises:
        BadEntryError: An entry on that walk cannot be read.
    """
    known = {snapshot["snapshot-id"]: snapshot for snapshot in body.get("snapshots", [])}
    protected = {ref["snapshot-id"] for ref in body.get("refs", {}).values()}
    at = body.get("current-snapshot-id")
    while at in known:
        protected.add(at)
        text = known[at].get("summary", {}).get(ENTRY_KEY)
        entry = read_entry(text, f"snapshot {at} of {table}")
        if entry is not None and entry.kind != "carry":
            break
        at = known[at].get("parent-snapshot-id")
    return set(asked) & known.keys() - protected


def with_newest_entry(body: Body, known: Container[int], table: str) -> Body:
    """Return the metadata with the entry that counts in each new snapshot that carries one on. Pure.

    Iceberg makes an overtaken commit again on top of the newer snapshot, and leaves its own properties as they were:
    they would carry an entry on that is older than the rows.

    Args:
        body: The metadata to be committed.
        known: Ids of the snapshots that were there before.
        table: Id of the table, for messages.

    Raises:
        BadEntryError: An entry cannot be read.
    """
    by_id = {snapshot["snapshot-id"]: snapshot for snapshot in body.get("snapshots", [])}
    fresh = [one for one in by_id.values() if one["snapshot-id"] not in known and ENTRY_KEY in one.get("summary", {})]
    changed = dict[int, str]()
    for snapshot in fresh:
        entry = counting(_entries(by_id, snapshot.get("parent-snapshot-id"), table))
        if entry is not None:
            changed[snapshot["snapshot-id"]] = encode(carried(entry.entry))
    return {**body, "snapshots": [_with_entry(one, changed.get(one["snapshot-id"])) for one in body.get("snapshots", [])]}


def _with_entry(snapshot: Body, entry: str | None) -> Body:
    return snapshot if entry is None else {**snapshot, "summary": {**snapshot["summary"], ENTRY_KEY: entry}}


def _entries(by_id: Mapping[int, Body], newest: int | None, table: str) -> Iterator[CommittedEntry]:
    while newest is not None and newest in by_id:
        snapshot = by_id[newest]
        entry = read_entry(snapshot.get("summary", {}).get(ENTRY_KEY), f"snapshot {newest} of {table}")
        if entry is not None:
            yield CommittedEntry(str(newest), snapshot.get("timestamp-ms", 0), entry)
        newest = snapshot.get("parent-snapshot-id")


def collects_garbage(body: Body) -> bool:
    """Whether the table's property lets its files be deleted."""
    return str(body.get("properties", {}).get("gc.enabled", "true")).lower() != "false"


def expire(table: Table, history: TableMetadata, asked: Iterable[int], name: str) -> None:
    """Expire snapshots of a table, but none that is needed; the handle then stands at the metadata without them.

    Args:
        table: The handle.
        history: Its metadata with all snapshots.
        asked: Ids of snapshots.
        name: Id of the table, for messages.

    Raises:
        StalePreparedError: None of them may go any more, or the catalog makes the metadata itself.
        CommitFailedException: The table has other metadata than the handle.
        BadEntryError: An entry cannot be read.
    """
    body = _told(history)
    ids = expirable(asked, body, name) if collects_garbage(body) else set()
    if not ids or not isinstance(table.catalog, LedgerCatalog):
        raise StalePreparedError(name, "none of the snapshots may be expired by a stream")
    before = table.metadata
    response = table.catalog.expire(table, ids)
    table.metadata, table.metadata_location = response.metadata, response.metadata_location
    delete_dropped_metadata(table, before)


def _told(metadata: TableMetadata) -> Body:
    """Return what has to be known of a table's metadata to tell which snapshots may go."""
    return {
        "properties": metadata.properties,
        "current-snapshot-id": metadata.current_snapshot_id,
        "refs": {name: {"snapshot-id": ref.snapshot_id} for name, ref in metadata.refs.items()},
        "snapshots": [
            {
                "snapshot-id": one.snapshot_id,
                "parent-snapshot-id": one.parent_snapshot_id,
                "summary": {} if one.summary is None else {ENTRY_KEY: one.summary.get(ENTRY_KEY)},
            }
            for one in metadata.snapshots
        ],
    }
