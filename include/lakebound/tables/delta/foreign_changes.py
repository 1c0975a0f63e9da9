"""What commits of others did to the rows of a Delta table, by their actions and their own metrics."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from lakebound.errors import BadEntryError
from lakebound.ledger.foreign_changes import MOST_REMEMBERED, ForeignChange, short
from lakebound.storage.location import Location
from lakebound.tables.delta.log import commit_file, commit_lines, moment_ms
from lakebound.tables.entries import read_entry

_MOST_COMMITS = 200
"""Read at once, the newest: what is older was seen by an earlier reading, or is a history that nobody had looked at."""
_MOST_BYTES = 64 * 1024 * 1024
_REMOVED = ("numDeletedRows", "num_deleted_rows", "numTargetRowsDeleted", "num_target_rows_deleted")
_INSERTED = ("numTargetRowsInserted", "num_target_rows_inserted")


def foreign_changes(folder: Location, since: int, version: int) -> tuple[ForeignChange, ...]:
    """Return the commits after one version, up to another, that have no entry and changed rows; oldest first.

    Args:
        folder: The table's.
        since: Version of the entry that counts.
        version: The newest version.
    """
    found: list[ForeignChange] = []
    for number in range(version, max(since, version - _MOST_COMMITS), -1):
        try:
            content = commit_file(folder, number).read()
        except FileNotFoundError:
            break  # cleaned up meanwhile
        change = _change(number, content)
        if change is not None:
            found.append(change)
        if len(found) == MOST_REMEMBERED:
            break
    return tuple(reversed(found))


def _change(number: int, content: bytes) -> ForeignChange | None:
    if len(content) > _MOST_BYTES:
        return ForeignChange(version=str(number), operation="a commit too large to be read here")
    actions = [json.loads(line) for line in commit_lines(content.decode())]
    info: Mapping[str, Any] = next((one["commitInfo"] for one in actions if isinstance(one.get("commitInfo"), dict)), {})
    try:
        text = info.get("userMetadata")
        if isinstance(text, str) and read_entry(text, str(number)) is not None:
            return None
    except BadEntryError:
        pass
    return change_of(number, info, actions)


def change_of(number: int, info: Mapping[str, Any], actions: Sequence[Mapping[str, Any]]) -> ForeignChange | None:
    """Return what a commit did to the rows; None where it changed none. Pure.

    Args:
        number: Its version.
        info: Its ``commitInfo``.
        actions: All of its actions.
    """
    added, removed = _changing(actions, "add"), _changing(actions, "remove")
    if not added and not removed:
        return None
    metrics = info.get("operationMetrics")
    brought, gone = _counts(metrics if isinstance(metrics, dict) else {}, added, removed)
    return ForeignChange(
        version=str(number),
        at_ms=moment_ms(info),
        operation=short(info.get("operation")),
        by=short(info.get("userName") or info.get("engineInfo")),
        added=brought,
        removed=gone,
    )


def _changing(actions: Sequence[Mapping[str, Any]], name: str) -> list[Mapping[str, Any]]:
    """Return the actions of a name that change rows; some writers name every action in each line, the others as null."""
    bodies = (one.get(name) for one in actions)
    return [one for one in bodies if isinstance(one, dict) and one.get("dataChange", True)]


def _counts(
    metrics: Mapping[str, Any], added: Sequence[Mapping[str, Any]], removed: Sequence[Mapping[str, Any]]
) -> tuple[int | None, int | None]:
    """Return rows added and removed: by the commit's metrics, else by its files, where these say it."""
    gone = next((_number(metrics[name]) for name in _REMOVED if name in metrics), None)
    brought = next((_number(metrics[name]) for name in _INSERTED if name in metrics), None)
    if gone is not None or brought is not None:
        return brought or 0, gone or 0
    rows = [_rows(one) for one in added]
    total = None if None in rows else sum(one or 0 for one in rows)
    if not removed:
        return total, 0
    before = [_rows(one) for one in removed]
    lost = None if None in before else sum(one or 0 for one in before)
    if total is None or lost is None:
        return None, None
    return max(0, total - lost), max(0, lost - total)


def _rows(action: Mapping[str, Any]) -> int | None:
    try:
        stats = json.loads(action.get("stats") or "{}")
        rows = int(stats["numRecords"])
    except (ValueError, KeyError, TypeError):
        return None
    vector = action.get("deletionVector")
    return rows - (_number(vector.get("cardinality")) or 0) if isinstance(vector, dict) else rows


def _number(value: object) -> int | None:
    try:
        return max(0, int(str(value)))
    except ValueError:
        return None
