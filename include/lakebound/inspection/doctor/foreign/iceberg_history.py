"""Which streaming queries wrote an Iceberg table, read from its newest metadata file. Reads only."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from lakebound.inspection.doctor.foreign.table_facts import ForeignHistory, Removal, StreamCommit

_QUERY, _EPOCH = "spark.sql.streaming.queryId", "spark.sql.streaming.epochId"
# Of a Hadoop catalog, and of all others. A temporary file has a bare UUID before the suffix.
_VERSION = re.compile(r"^(?:v([0-9]+)|([0-9]{5,})-[0-9a-f-]{36})(?:\.gz)?\.metadata\.json$")


def read_iceberg_history(name: str, location: Path) -> ForeignHistory:
    """Return the history of an Iceberg table on this machine.

    Args:
        name: What the table is called in the answer.
        location: The table's folder, or the metadata file that its catalog names (safer: a commit that failed may have left
            a newer file in the folder).
    """
    file = location if location.suffix == ".json" else _newest_metadata(location / "metadata")
    if file is None or not file.exists():
        return ForeignHistory(name, exists=False)
    content = file.read_bytes()
    return history_of(name, json.loads(gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content))


def history_of(name: str, metadata: Mapping[str, Any]) -> ForeignHistory:
    """Return what the ancestry of the current snapshot says. Pure."""
    snapshots = {snapshot["snapshot-id"]: snapshot for snapshot in metadata.get("snapshots") or ()}
    ancestry = list(_ancestry(snapshots, metadata.get("current-snapshot-id")))
    streamed: list[StreamCommit] = []
    removals: list[Removal] = []
    epochs: dict[str, int] = {}
    for place, snapshot in enumerate(ancestry):
        summary, order = snapshot.get("summary") or {}, len(ancestry) - place
        version, at_ms = str(snapshot["snapshot-id"]), int(snapshot.get("timestamp-ms", 0))
        query, epoch = summary.get(_QUERY), str(summary.get(_EPOCH, ""))
        if isinstance(query, str) and epoch.isdecimal():
            epochs.setdefault(query, int(epoch))
            streamed.append(StreamCommit(query, int(epoch), order, version, at_ms, _added(summary)))
        elif summary.get("operation") in ("delete", "overwrite") and _is_emptied(summary):
            removals.append(Removal(str(summary["operation"]), order, version, at_ms))
    # An empty table has no ancestry; an expired one has a first ancestor whose parent is gone.
    is_complete = not ancestry or ancestry[-1].get("parent-snapshot-id") in (None, -1)
    return ForeignHistory(name, True, None, epochs, tuple(streamed), tuple(removals), is_complete)


def _ancestry(snapshots: Mapping[int, Mapping[str, Any]], current: int | None) -> Iterator[Mapping[str, Any]]:
    seen: set[int] = set()
    while current is not None and current in snapshots and current not in seen:
        seen.add(current)
        yield snapshots[current]
        current = snapshots[current].get("parent-snapshot-id")


def _newest_metadata(folder: Path) -> Path | None:
    """Return the metadata file of the highest version; of two, one of a commit that failed, the later one."""
    files = list(folder.iterdir()) if folder.is_dir() else []
    numbered = [
        (int(found[1] or found[2]), path.stat().st_mtime_ns, path) for path in files if (found := _VERSION.match(path.name))
    ]
    return max(numbered)[2] if numbered else None


def _added(summary: Mapping[str, Any]) -> int | None:
    # A snapshot without rows does not name them.
    rows = str(summary.get("added-records", "0"))
    return int(rows) if rows.isdecimal() else None


def _is_emptied(summary: Mapping[str, Any]) -> bool:
    """Whether the commit took away everything that was there before it."""
    total, added = str(summary.get("total-records", "")), str(summary.get("added-records", "0"))
    return total.isdecimal() and total == added
