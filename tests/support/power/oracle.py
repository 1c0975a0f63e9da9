"""What a table holds after a power cut, read without lakebound: rows from Parquet, offsets from the log or the metadata."""

from __future__ import annotations

import json
import re
import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deltalake import DeltaTable
from pyiceberg.table import StaticTable

_COMMIT = re.compile(r"(\d{20})\.json")


@dataclass(frozen=True)
class Held:
    """A table's rows by their offset, sorted, doubles and all, and the offsets that its ledger counts as landed."""

    rows: tuple[int, ...]
    covered: tuple[int, ...]


def read_delta(folder: Path) -> Held | None:
    """Return what a Delta table holds; None where there is none. One that cannot be read raises."""
    log = folder / "_delta_log"
    commits = sorted((path for path in log.glob("*.json") if _COMMIT.fullmatch(path.name)), reverse=True)
    if not commits:
        assert not list(log.glob("*.checkpoint*")), "the log has checkpoints and no commits"
        return None
    handle = DeltaTable(str(folder))
    newest = int(commits[0].stem)
    assert handle.version() == newest, f"the log ends at {newest}, and readers see {handle.version()}"
    entries = []
    for number, path in enumerate(commits):
        if int(path.stem) != newest - number:
            break
        actions = [json.loads(line) for line in path.read_text().splitlines() if line]
        info = next(action["commitInfo"] for action in actions if "commitInfo" in action)
        if "userMetadata" in info:
            entries.append(json.loads(info["userMetadata"])["lakebound"])
    offsets = handle.to_pyarrow_table(columns=["_kafka"])["_kafka"].combine_chunks().field("offset").to_pylist()
    return Held(tuple(sorted(offsets)), _covered(entries))


def read_iceberg(catalog: Path, name: str) -> Held | None:
    """Return what an Iceberg table holds; None where there is none. One that cannot be read raises."""
    location = _location(catalog, name)
    if location is None:
        return None
    table = StaticTable.from_metadata(location)
    snapshots = {snapshot.snapshot_id: snapshot for snapshot in table.metadata.snapshots}
    entries, at = [], table.metadata.current_snapshot_id
    while at in snapshots:
        summary = snapshots[at].summary
        text = summary.get("lakebound") if summary is not None else None
        if text is not None:
            entries.append(json.loads(text)["lakebound"])
        at = snapshots[at].parent_snapshot_id
    for entry in table.metadata.snapshot_log:
        if entry.snapshot_id in snapshots:  # who rewinds, or reads as of a time, goes to any of them
            snapshots[entry.snapshot_id].manifests(table.io)
    offsets = table.scan(selected_fields=("_kafka",)).to_arrow()["_kafka"].combine_chunks().field("offset").to_pylist()
    return Held(tuple(sorted(offsets)), _covered(entries))


def _location(catalog: Path, name: str) -> str | None:
    if not catalog.exists():
        return None
    namespace, _, table = name.rpartition(".")
    connection = sqlite3.connect(catalog)
    try:
        if not connection.execute("select 1 from sqlite_master where name = 'iceberg_tables'").fetchone():
            return None
        query = "select metadata_location from iceberg_tables where table_namespace = ? and table_name = ?"
        found = connection.execute(query, (namespace, table)).fetchone()
        return found[0] if found else None
    finally:
        connection.close()


def _covered(entries: list[dict[str, Any]]) -> tuple[int, ...]:
    """Return the offsets since the last reset, from all entries, newest first: a compaction may carry an older one on."""
    assert entries, "no entry is within reach"
    found: set[int] = set()
    for entry in entries:
        for topic in entry.get("coverage", {}).values():
            for intervals in topic["partitions"].values():
                for start, end in intervals:
                    found.update(range(start, end))
        if entry["kind"] == "reset":
            break
    return tuple(sorted(found))
