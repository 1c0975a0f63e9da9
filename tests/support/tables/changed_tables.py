"""What people and maintenance do to a table behind a stream's back, on the recorded tables."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tests.support.worlds.recorded_streams import Moment, Recording
from tests.support.worlds.spark_restart import NativeTable

Log = tuple[Any, ...]
Changed = tuple[str, NativeTable, Log]

_OTHER = "99999999-8888-4777-8666-555555555555"


def changed_tables(r: Recording, moment: Moment) -> Iterator[Changed]:
    """Yield what was done, what the table then really holds, and its log; nothing before the first commit."""
    epoch = moment.table.epochs.get(r.query)
    if epoch is None:
        return
    yield "of another query", NativeTable({_OTHER: epoch}, list(moment.table.rows)), _renamed(r, moment.log)
    yield from (_delta if r.kind == "delta" else _iceberg)(r, moment, epoch)


def _delta(r: Recording, moment: Moment, epoch: int) -> Iterator[Changed]:
    if "offsets/0" in moment.files and epoch > 0:
        yield "dropped and made anew", NativeTable(), ()
    for kept in sorted({0, epoch - 1} - {-1, epoch}):
        restore = _delta_commit("RESTORE", {"version": str(kept)})
        # A restore leaves the stream's txn as it is.
        yield "restored", NativeTable({r.query: epoch}, _rows(r, moment, kept)), ((epoch + 1, restore), *moment.log)
    emptied = _delta_commit("TRUNCATE", {})
    yield "emptied", NativeTable({r.query: epoch}, []), ((epoch + 1, emptied), *moment.log)


def _iceberg(r: Recording, moment: Moment, epoch: int) -> Iterator[Changed]:
    metadata = moment.log[0]
    snapshots = metadata["snapshots"]
    newest = snapshots[-1]
    if epoch > 0:
        yield "made anew", NativeTable(), ({"current-snapshot-id": None, "snapshots": []},)
    for kept in sorted({0, epoch - 1} - {-1, epoch}):
        back = {**metadata, "current-snapshot-id": snapshots[kept]["snapshot-id"]}
        yield "rolled back", NativeTable({r.query: kept}, _rows(r, moment, kept)), (back,)
    rows = newest["summary"]["total-records"]
    emptied = _iceberg_snapshot(newest, {"operation": "delete", "total-records": "0", "deleted-records": rows})
    yield "emptied", NativeTable({r.query: epoch}, []), (_current(metadata, [*snapshots, emptied]),)
    # Compaction, then expiry of all but the newest snapshot: no commit names the stream any more (measured: it doubles rows).
    compacted = _iceberg_snapshot(newest, {"operation": "replace", "total-records": rows})
    yield "compacted and expired", NativeTable({}, list(moment.table.rows)), (_current(metadata, [compacted]),)


def _rows(r: Recording, moment: Moment, kept: int) -> list[tuple[int, int, int]]:
    """Return the rows of the epochs up to ``kept``."""
    return [(p, start, end) for p, start, end in moment.table.rows if end <= r.ends[kept][p]]


def _renamed(r: Recording, log: Log) -> Log:
    return tuple(json.loads(json.dumps(log).replace(r.query, _OTHER)))


def _delta_commit(operation: str, parameters: dict[str, Any]) -> str:
    return json.dumps({"commitInfo": {"timestamp": 0, "operation": operation, "operationParameters": parameters}})


def _iceberg_snapshot(parent: dict[str, Any], summary: dict[str, Any]) -> dict[str, Any]:
    at_ms = parent["timestamp-ms"] + 1
    return {"snapshot-id": 1, "parent-snapshot-id": parent["snapshot-id"], "timestamp-ms": at_ms, "summary": summary}


def _current(metadata: dict[str, Any], snapshots: list[dict[str, Any]]) -> dict[str, Any]:
    return {**metadata, "current-snapshot-id": snapshots[-1]["snapshot-id"], "snapshots": snapshots}
