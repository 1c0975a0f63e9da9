"""The snapshots of an Iceberg table as its metadata file tells them. No object per snapshot is made by a library."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from lakebound.errors import BadEntryError
from lakebound.ledger.entry import ENTRY_KEY, EntryKind
from lakebound.operations.maintenance.history import TablePast, Version
from lakebound.spec.table import TableSpec
from lakebound.tables.entries import read_entry
from lakebound.tables.iceberg.metadata import read_table
from lakebound.tables.iceberg.metadata_json import Body
from lakebound.tables.iceberg.open import open_catalog
from lakebound.tables.places import Places

_QUICK = re.compile(r'\{"lakebound":\{"kind":"(genesis|open|land|replay|skip|reset|carry)"')
"""How ``lakebound.ledger.entry.encode`` begins an entry."""


def read_snapshots(spec: TableSpec, places: Places) -> TablePast | None:
    """Return a table's snapshots, without pins; None where there is no such table.

    Raises:
        FileNotFoundError: A commit removed the metadata file meanwhile: read again.
    """
    found = read_table(open_catalog(places), spec, places)
    return None if found is None else snapshots_of(found[1], spec.id)


def snapshots_of(body: Body, table: str) -> TablePast:
    """Return the snapshots that a metadata file names. Pure."""
    order = sorted(enumerate(body.get("snapshots") or ()), key=lambda one: (one[1].get("sequence-number", 0), one[0]))
    snapshots = [snapshot for _, snapshot in order]
    referenced = {ref["snapshot-id"] for ref in (body.get("refs") or {}).values()}
    current = body.get("current-snapshot-id")
    known = {snapshot["snapshot-id"]: snapshot for snapshot in snapshots}
    problems: list[str] = []
    versions = tuple(_version(snapshot, snapshot["snapshot-id"] in referenced, table, problems) for snapshot in snapshots)
    return TablePast(
        table=table,
        versions=versions,
        current=current if current in known else None,
        was_current=_left([*_commits(snapshots), *_changes(body, known)]),
        current_since=tuple((entry["timestamp-ms"], entry["snapshot-id"]) for entry in body.get("snapshot-log") or ()),
        problems=tuple(problems),
    )


def _version(snapshot: dict[str, Any], is_referenced: bool, table: str, problems: list[str]) -> Version:
    kind: EntryKind | None = None
    text = (snapshot.get("summary") or {}).get(ENTRY_KEY)
    if text is not None:
        quick = _QUICK.match(text)
        try:
            kind = quick[1] if quick else _kind(text, f"snapshot {snapshot['snapshot-id']} of {table}")  # type: ignore[assignment]
        except BadEntryError as exc:
            problems.append(str(exc))
    return Version(
        version=snapshot["snapshot-id"],
        committed_at_ms=snapshot["timestamp-ms"],
        parent=snapshot.get("parent-snapshot-id"),
        kind=kind,
        is_referenced=is_referenced,
    )


def _kind(text: str, where: str) -> EntryKind | None:
    entry = read_entry(text, where)
    return entry.kind if entry is not None else None


_Step = tuple[dict[str, Any], dict[str, Any], int]
"""A snapshot, the one after it, and when that came."""


def _commits(snapshots: Sequence[dict[str, Any]]) -> Iterator[_Step]:
    for before, after in pairwise(snapshots):
        yield before, after, after["timestamp-ms"]


def _changes(body: Body, known: Mapping[int, dict[str, Any]]) -> Iterator[_Step]:
    """Yield the changes of what is current: a rollback shows only here. Others' expiry cuts the log short."""
    log = [entry for entry in body.get("snapshot-log") or () if entry["snapshot-id"] in known]
    for before, after in pairwise(log):
        yield known[before["snapshot-id"]], known[after["snapshot-id"]], after["timestamp-ms"]


def _left(steps: Iterable[_Step]) -> dict[int, int]:
    """Return each snapshot from which the table did not go on, with the time at which it was left.

    Where snapshots between two have expired, the later one has another parent, too, and nothing was left: the numbers of the
    commits tell that.
    """
    found: dict[int, int] = {}
    for before, after, at_ms in steps:
        number, missing = before["snapshot-id"], after.get("sequence-number", 0) - before.get("sequence-number", 0) - 1
        if after is not before and after.get("parent-snapshot-id") != number and missing <= 0:
            found[number] = max(found.get(number, 0), at_ms)
    return found
