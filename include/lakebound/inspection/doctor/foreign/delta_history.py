"""Which streaming queries wrote a Delta table, read from its log. Reads only."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from lakebound.inspection.doctor.foreign.table_facts import ForeignHistory, Removal, StreamCommit
from lakebound.storage.location import Location
from lakebound.tables.delta.log import commit_file, commit_lines

_MAX_COMMITS_READ = 2_000
# Checkpoints keep a hundred batches unless told otherwise; there is nothing to compare older commits with.
_MAX_STREAMED_READ = 200
_STREAMING = "STREAMING UPDATE"
_REPLACING = ("TRUNCATE", *(f"{verb} TABLE{rest}" for verb in ("REPLACE", "CREATE OR REPLACE") for rest in ("", " AS SELECT")))
_EVERYTHING = ("", "[]", '["true"]', "true")


def read_delta_history(name: str, folder: Path, query_id: str | None) -> ForeignHistory:
    """Return the history of a Delta table on this machine.

    Args:
        name: What the table is called in the answer.
        folder: The table's folder.
        query_id: The query whose newest epoch is also asked of the table's ``txn``, which outlives the JSON commits.
    """
    from deltalake import DeltaTable

    if not DeltaTable.is_deltatable(str(folder)):
        return ForeignHistory(name, exists=False)
    handle = DeltaTable(str(folder))
    history = history_of(name, _commits(folder, handle.version()))
    epochs = dict(history.epochs)
    if query_id is not None and (epoch := handle.transaction_version(query_id)) is not None:
        epochs[query_id] = epoch
    # The txn of a query stays when the commits that named it are cleaned up: a query without a txn never wrote.
    return ForeignHistory(name, True, None, epochs, history.commits, history.removals, is_complete=True)


def history_of(name: str, commits: Iterator[tuple[int, str]]) -> ForeignHistory:
    """Return what commits say, given as version and text of the log file, newest first. Pure."""
    streamed: list[StreamCommit] = []
    removals: list[Removal] = []
    epochs: dict[str, int] = {}
    oldest = 0
    for version, text in commits:
        oldest = version
        actions = _actions(text)
        info = actions.get("commitInfo", {})
        transaction = actions.get("txn", {})
        app, epoch = transaction.get("appId"), transaction.get("version")
        if isinstance(app, str) and type(epoch) is int:
            epochs.setdefault(app, epoch)
            if info.get("operation") == _STREAMING:
                streamed.append(StreamCommit(app, epoch, version, str(version), _time(info), _rows(info)))
        if (removal := _removal(version, info)) is not None:
            removals.append(removal)
        if len(streamed) >= _MAX_STREAMED_READ:
            break
    return ForeignHistory(name, True, None, epochs, tuple(streamed), tuple(removals), oldest == 0)


def _commits(folder: Path, version: int) -> Iterator[tuple[int, str]]:
    for number in range(version, max(-1, version - _MAX_COMMITS_READ), -1):
        try:
            yield number, commit_file(Location(str(folder)), number).read().decode()
        except FileNotFoundError:
            return


def _actions(text: str) -> Mapping[str, dict[str, Any]]:
    """Return the commitInfo and the txn of a commit; its other actions are not parsed."""
    found: dict[str, dict[str, Any]] = {}
    for line in commit_lines(text):
        if not line.startswith(('{"commitInfo"', '{"txn"')):
            continue
        try:
            body = json.loads(line)
        except ValueError:
            continue
        found |= {name: value for name, value in body.items() if isinstance(value, dict)}
    return found


def _removal(version: int, info: Mapping[str, Any]) -> Removal | None:
    operation, parameters = str(info.get("operation", "")), _object(info, "operationParameters")
    if operation == "RESTORE":
        kept = str(parameters.get("version", ""))
        return Removal(operation, version, str(version), _time(info), int(kept) if kept.isdecimal() else -1)
    replaces = operation in _REPLACING
    deletes_all = operation == "DELETE" and str(parameters.get("predicate", "")) in _EVERYTHING
    overwrites = operation == "WRITE" and parameters.get("mode") == "Overwrite"
    return Removal(operation, version, str(version), _time(info)) if replaces or deletes_all or overwrites else None


def _rows(info: Mapping[str, Any]) -> int | None:
    rows = str(_object(info, "operationMetrics").get("numOutputRows", ""))
    return int(rows) if rows.isdecimal() else None


def _object(info: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return an object of what a writer says of itself: any writer may put anything there."""
    found = info.get(name)
    return found if isinstance(found, dict) else {}


def _time(info: Mapping[str, Any]) -> int:
    found = info.get("inCommitTimestamp") or info.get("timestamp")
    return found if type(found) is int else 0
