"""An Iceberg table's history: the snapshots that one metadata file names, and the files that each one's own manifests added."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Snapshot

from lakebound.ledger.entry import ENTRY_KEY
from lakebound.spec.table import TableSpec
from lakebound.tables.history import CommittedFile, History, Operation, TableCommit
from lakebound.tables.iceberg.manifests import MANIFESTS, AvroFields
from lakebound.tables.iceberg.metadata import read_table
from lakebound.tables.iceberg.metadata_json import Body
from lakebound.tables.iceberg.open import open_catalog
from lakebound.tables.places import Places
from lakebound.tables.table import TableVersion

_ADDED = 1
_READINGS = 4
_ENTRIES = AvroFields(ids=(0, 1, 2), nested={2: AvroFields(ids=(134, 100, 103))})
"""Of a manifest: status, snapshot id, data file (content, path, records)."""
_OPERATIONS: Mapping[str, Operation] = {
    "append": "append",
    "replace": "replace",
    "overwrite": "overwrite",
    "delete": "overwrite",
}


class _Snapshot(NamedTuple):
    number: int
    parent: int | None
    sequence_number: int
    timestamp_ms: int
    operation: str
    text: str | None
    manifest_list: str


@dataclass(frozen=True)
class IcebergHistory(History):
    """Snapshots that have not expired. A table may have tens of thousands: one is looked at only when it is asked for.

    Attributes:
        table: The table's id, for messages.
        places: Where it is.
        current_id: Id of the current snapshot.
        log: (Snapshot id, since when) of what was current, oldest first.
        referenced: Snapshots at which a branch or tag points.
        snapshots: By id, in the order of the metadata file.
        facts_of: What one of these says.
    """

    table: str
    places: Places
    current_id: int | None
    log: Sequence[tuple[int, int]]
    referenced: frozenset[int]
    snapshots: Mapping[int, Any]
    facts_of: Callable[[Any], _Snapshot]

    @property
    def current(self) -> str | None:
        """The current snapshot."""
        return str(self.current_id) if self.current_id in self.snapshots else None

    @property
    def current_since(self) -> tuple[tuple[int, str], ...]:
        """What the snapshot log says, of snapshots that are kept."""
        return tuple((at_ms, str(number)) for number, at_ms in self.log if number in self.snapshots)

    def commits(self) -> Iterator[TableCommit]:
        """Yield the snapshots by their sequence numbers."""
        facts = {number: self.facts_of(one) for number, one in self.snapshots.items()}
        oldest_first = sorted(facts.values(), key=lambda found: found.sequence_number)
        for one in reversed(oldest_first):  # of snapshots without such numbers, the last in the file is the newest
            yield self._commit(one, None if one.parent is None else facts.get(one.parent))

    def ancestry(self, version: str | None = None) -> Iterator[TableCommit]:
        """Yield a snapshot and its ancestors, back to the first that has expired."""
        at = self._facts(self.current_id if version is None else int(version))
        while at is not None:
            parent = self._facts(at.parent)
            yield self._commit(at, parent)
            at = parent

    def versions(self) -> Iterator[TableVersion]:
        """Yield what was the current snapshot; a rollback did not remove any, and makes one the current one again."""
        for number, since_ms in reversed(self.log):
            if (facts := self._facts(number)) is not None:
                commit = self._commit(facts, self._facts(facts.parent))
                yield TableVersion(commit.version, since_ms, commit.entry)

    def added(self, version: str) -> Iterator[CommittedFile]:
        """Yield the data files that the snapshot's own manifests added."""
        facts = self._facts(int(version))
        if facts is None or facts.operation == "replace":
            return
        try:
            for manifest in MANIFESTS.rows(self.places.file_at(facts.manifest_list).read()):
                if manifest[3] == facts.number and not manifest[4]:
                    yield from self._files(self.places.file_at(manifest[0]).read(), facts.number)
        except FileNotFoundError:
            return  # expired meanwhile

    def _files(self, manifest: bytes, number: int) -> Iterator[CommittedFile]:
        # By entry, not by manifest: commits merge small manifests now and then.
        for entry in _ENTRIES.rows(manifest):
            if entry[0] == _ADDED and entry[1] in (None, number) and not entry[2][0]:
                yield CommittedFile(self.places.file_at(entry[2][1]), int(entry[2][2]))

    def _facts(self, number: int | None) -> _Snapshot | None:
        return self.facts_of(self.snapshots[number]) if number is not None and number in self.snapshots else None

    def _commit(self, facts: _Snapshot, parent: _Snapshot | None) -> TableCommit:
        return TableCommit(
            version=str(facts.number),
            number=facts.sequence_number,
            parent=None if facts.parent is None else str(facts.parent),
            parent_number=parent.sequence_number if parent is not None else None,
            committed_at_ms=facts.timestamp_ms,
            operation=_OPERATIONS.get(facts.operation, "other"),
            text=facts.text,
            where=f"snapshot {facts.number} of {self.table}",
            is_referenced=facts.number in self.referenced,
        )


def history_of_body(body: Body, table: str, places: Places) -> IcebergHistory:
    """Return the history in a metadata file's JSON; no object per snapshot is made. Pure.

    Args:
        body: The JSON.
        table: Id of the table, for messages.
        places: Where it is.
    """
    return IcebergHistory(
        table=table,
        places=places,
        current_id=body.get("current-snapshot-id"),
        log=[(one["snapshot-id"], one["timestamp-ms"]) for one in body.get("snapshot-log") or ()],
        referenced=frozenset(one["snapshot-id"] for one in (body.get("refs") or {}).values()),
        snapshots={one["snapshot-id"]: one for one in body.get("snapshots") or ()},
        facts_of=_of_json,
    )


def history_of_metadata(metadata: TableMetadata, table: str, places: Places) -> IcebergHistory:
    """Return the history in metadata that PyIceberg has read. Pure.

    Args:
        metadata: With all of its snapshots.
        table: Id of the table, for messages.
        places: Where it is.
    """
    return IcebergHistory(
        table=table,
        places=places,
        current_id=metadata.current_snapshot_id,
        log=[(one.snapshot_id, one.timestamp_ms) for one in metadata.snapshot_log],
        referenced=frozenset(one.snapshot_id for one in metadata.refs.values()),
        snapshots={one.snapshot_id: one for one in metadata.snapshots},
        facts_of=_of_object,
    )


def ancestors(metadata: TableMetadata, newest: int | None) -> Iterator[Snapshot]:
    """Yield the snapshots from the given one back to the oldest that is kept, as PyIceberg has read them.

    Args:
        metadata: With all of its snapshots.
        newest: Id of the first; None: there is none.
    """
    known = {snapshot.snapshot_id: snapshot for snapshot in metadata.snapshots}
    while newest is not None and newest in known:
        yield known[newest]
        newest = known[newest].parent_snapshot_id


def read_history(spec: TableSpec, places: Places) -> IcebergHistory | None:
    """Return the history of a table by its newest metadata file; None where there is none.

    Raises:
        FileNotFoundError: Commits removed the metadata under this, again and again.
    """
    catalog = open_catalog(places)
    for reading in range(1, _READINGS + 1):
        try:
            found = read_table(catalog, spec, places)
            return None if found is None else history_of_body(found[1], spec.id, places)
        except FileNotFoundError:  # two commits further already
            if reading == _READINGS:
                raise
    raise AssertionError("the last reading returns or raises")


def _of_json(one: Mapping[str, Any]) -> _Snapshot:
    summary = one.get("summary") or {}
    return _Snapshot(
        number=one["snapshot-id"],
        parent=one.get("parent-snapshot-id"),
        sequence_number=int(one.get("sequence-number") or 0),
        timestamp_ms=int(one["timestamp-ms"]),
        operation=str(summary.get("operation", "")),
        text=summary.get(ENTRY_KEY),
        manifest_list=one.get("manifest-list", ""),
    )


def _of_object(one: Snapshot) -> _Snapshot:
    return _Snapshot(
        number=one.snapshot_id,
        parent=one.parent_snapshot_id,
        sequence_number=one.sequence_number or 0,
        timestamp_ms=one.timestamp_ms,
        operation=one.summary.operation.value if one.summary is not None else "",
        text=one.summary.get(ENTRY_KEY) if one.summary is not None else None,
        manifest_list=one.manifest_list,
    )
