"""What snapshots of others did to the rows of an Iceberg table, by their summaries. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice

from pyiceberg.table.snapshots import Operation, Snapshot

from lakebound.ledger.entry import ENTRY_KEY
from lakebound.ledger.foreign_changes import MOST_REMEMBERED, ForeignChange, short

_MOST_SNAPSHOTS = 200
_BY = ("spark.app.name", "engine-name", "spark.app.id")


def foreign_changes(ancestors: Iterable[Snapshot], since: str) -> tuple[ForeignChange, ...]:
    """Return the snapshots after one that have no entry and changed rows; oldest first.

    Args:
        ancestors: From the current snapshot backwards.
        since: Id of the snapshot whose entry counts.
    """
    found: list[ForeignChange] = []
    for snapshot in islice(ancestors, _MOST_SNAPSHOTS):
        if str(snapshot.snapshot_id) == since or len(found) == MOST_REMEMBERED:
            break
        change = change_of(snapshot)
        if change is not None:
            found.append(change)
    return tuple(reversed(found))


def change_of(snapshot: Snapshot) -> ForeignChange | None:
    """Return what a snapshot did to the rows; None where it has an entry, or changed none."""
    summary = snapshot.summary
    if summary is None:
        return ForeignChange(version=str(snapshot.snapshot_id), at_ms=snapshot.timestamp_ms)
    said: Mapping[str, str] = summary.additional_properties
    if ENTRY_KEY in said or summary.operation == Operation.REPLACE:
        return None
    added, removed = _number(said, "added-records"), _number(said, "deleted-records")
    positions, equality = _number(said, "added-position-deletes"), _number(said, "added-equality-deletes")
    if not (added or removed or positions or equality):
        return None
    return ForeignChange(
        version=str(snapshot.snapshot_id),
        at_ms=snapshot.timestamp_ms,
        operation=short(summary.operation.value),
        by=short(next((said[name] for name in _BY if name in said), "")),
        added=None if equality else max(0, added - removed),
        removed=None if equality else max(0, removed - added) + positions,
    )


def _number(said: Mapping[str, str], name: str) -> int:
    text = said.get(name, "0")
    return int(text) if text.isdecimal() else 0
