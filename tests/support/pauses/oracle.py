"""What a table holds after actors were interleaved, and what is wrong with it. Imports nothing of lakebound.

Rows of Delta are read by deltalake; those of Iceberg file by file, as PyIceberg's scan costs ten times the run that is judged:
it and Spark read each distinct end state. Entries are read from the JSON of Delta's log and of Iceberg's metadata. Every record
of these tables gives one row, so rows and coverage must be the same offsets.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import re
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from pyiceberg.catalog.sql import SqlCatalog

_CATALOG = "ice"
_DELETED = 2
_LONGEST_STEP_BACK_MS = 60_000


@dataclass(frozen=True)
class Report:
    """What an actor says that it did.

    Attributes:
        landed: Offsets that it landed; empty for a rewind.
        is_reset: Whether it put the table back.
    """

    actor: str
    commit: str
    version: str
    landed: tuple[int, int] = (0, 0)
    is_reset: bool = False


@dataclass(frozen=True)
class Commit:
    """A commit of the history that leads to what the table is now.

    Attributes:
        order: Grows from commit to commit.
        kind: Of its entry; "" without one.
        coverage: Of its entry, as (start, end).
    """

    version: str
    order: int
    kind: str
    epoch: int
    commit: str
    coverage: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class State:
    """What a table is.

    Attributes:
        rows: Offset of every row, sorted.
        history: Kept commits, oldest first.
        left: Order of every kept commit, those that were rewound included.
        structure: What its log looks like, without names and times.
        broken: What of it cannot be read.
    """

    rows: tuple[int, ...]
    history: tuple[Commit, ...]
    left: Mapping[str, int]
    structure: tuple[Any, ...]
    broken: tuple[str, ...] = ()

    @property
    def covered(self) -> tuple[int, ...]:
        """Offsets that the entry which counts says are landed."""
        counting = [commit for commit in self.history if commit.kind not in ("", "carry")]
        return tuple(offset for start, end in counting[-1].coverage for offset in range(start, end)) if counting else ()

    @property
    def fingerprint(self) -> str:
        """The same for states that a reader cannot tell apart."""
        return hashlib.sha256(repr((self.rows, self.structure)).encode()).hexdigest()[:16]


def read_state(kind: str, lake: Path, name: str) -> State:
    """Return the state of a table in a folder of tables."""
    namespace, _, short = name.partition(".")
    if kind == "delta":
        return _delta(lake / "delta" / namespace / short)
    return _iceberg(lake / "iceberg" / "catalog.db", namespace, short)


def problems(state: State, reports: Sequence[Report], base: range, *, was_cleaned: bool) -> Iterator[str]:
    """Yield what is wrong with a table, given what its actors reported.

    Args:
        state: Of the table.
        reports: What was done with success.
        base: Offsets that the table held before.
        was_cleaned: Whether one of the actors may have removed commits from the history.
    """
    yield from state.broken
    doubled = [offset for offset, count in Counter(state.rows).items() if count > 1]
    if doubled:
        yield f"rows are doubled: {doubled[:5]}"
    if set(state.rows) != set(state.covered):
        yield (
            f"rows and ledger differ: hidden or lost {sorted(set(state.covered) - set(state.rows))[:5]}, "
            f"unknown {sorted(set(state.rows) - set(state.covered))[:5]}"
        )
    epochs = [commit.epoch for commit in state.history if commit.kind not in ("", "carry")]
    if epochs != sorted(epochs):
        yield f"an earlier epoch committed after a later one: {epochs}"
    resets = [commit.order for commit in state.history if commit.kind == "reset"]
    is_put_back = bool(resets) or any(report.is_reset for report in reports)
    if not is_put_back and set(base) - set(state.rows):
        yield f"rows that stood there are gone: {sorted(set(base) - set(state.rows))[:5]}"
    for report in reports:
        yield from _of_report(state, report, resets, was_cleaned=was_cleaned)


def _of_report(state: State, report: Report, resets: Sequence[int], *, was_cleaned: bool) -> Iterator[str]:
    found = [commit for commit in state.history if commit.commit == report.commit]
    if len(found) > 1:
        yield f"{report.actor}'s commit is there {len(found)} times"
    if not found and report.version not in state.left and not was_cleaned:
        yield f"{report.actor} reported success, and no reader sees version {report.version}"
    if found and found[0].version != report.version:
        yield f"{report.actor} reported version {report.version}, and its commit is {found[0].version}"
    is_rewound = any(state.left.get(report.version, -1) < order for order in resets)
    gone = set(range(*report.landed)) - set(state.rows)
    if gone and not is_rewound:
        yield f"{report.actor} reported success, and rows are not there: {sorted(gone)[:5]}"


def _delta(folder: Path) -> State:
    log = folder / "_delta_log"
    versions = sorted(int(path.stem) for path in log.glob("*.json") if re.fullmatch(r"\d{20}", path.stem))
    history, shape = [], list[Any]()
    for version in versions:
        actions = [json.loads(line) for line in (log / f"{version:020d}.json").read_text().splitlines() if line]
        info: dict[str, Any] = next((action["commitInfo"] for action in actions if "commitInfo" in action), {})
        history.append(_commit(str(version), version, info.get("userMetadata")))
        counts = Counter(kind for action in actions for kind in action if kind in ("add", "remove"))
        shape.append((version, info.get("operation"), sorted(counts.items()), _entry_shape(history[-1])))
    checkpoints = sorted({path.name[:20] for path in log.glob("*.checkpoint*")})
    left = {commit.version: commit.order for commit in history}
    try:
        table = DeltaTable(str(folder))
        broken = [f"the newest version is {versions[-1]}, and deltalake sees {table.version()}"]
        broken = broken if table.version() != versions[-1] else []
        rows = _offsets(table.to_pyarrow_table(columns=["id", "_kafka"]).to_pylist())
        files = _spans(table.get_add_actions(flatten=True), "min.id", "max.id")
    except Exception as exc:
        return State((), tuple(history), left, (), (f"it cannot be read: {type(exc).__name__}: {exc}",))
    return State(rows, tuple(history), left, (shape, checkpoints, files), tuple(broken))


def _iceberg(catalog_file: Path, namespace: str, name: str) -> State:
    """Read the catalog's row, the metadata's JSON, manifests and Parquet files, each for itself."""
    with closing(sqlite3.connect(f"file:{catalog_file}?mode=ro", uri=True, timeout=5)) as connection:
        query = "select metadata_location from iceberg_tables where table_namespace = ? and table_name = ?"
        (location,) = connection.execute(query, (namespace, name)).fetchone()
    try:
        body = json.loads(_local(location).read_bytes())
        snapshots = sorted(body["snapshots"], key=lambda one: one["sequence-number"])
        manifests = {one["snapshot-id"]: _manifests(one) for one in snapshots}
        files = {number: [file for one in names for file in _live_in(one)] for number, names in manifests.items()}
        current = body["current-snapshot-id"]
        rows = [row for path, _ in files[current] for row in pq.read_table(_local(path), columns=["id", "_kafka"]).to_pylist()]
    except Exception as exc:
        return State((), (), {}, (), (f"it cannot be read: {type(exc).__name__}: {exc}",))
    lacking = {number: sum(not _local(path).exists() for path, _ in live) for number, live in files.items()}
    broken = [f"snapshot {number} lacks {count} of its files" for number, count in lacking.items() if count]
    times = [entry["timestamp-ms"] for entry in body["snapshot-log"]]
    if any(later < earlier - _LONGEST_STEP_BACK_MS for earlier, later in itertools.pairwise(times)):
        broken.append("its snapshots go back in time, and Spark does not read such a table")
    numbers = {one["snapshot-id"]: number for number, one in enumerate(snapshots)}
    entries = {
        one["snapshot-id"]: _commit(str(one["snapshot-id"]), one["sequence-number"], one["summary"].get("lakebound"))
        for one in snapshots
    }
    parents = {one["snapshot-id"]: one.get("parent-snapshot-id") for one in snapshots}
    shape = [
        (numbers.get(parents[number]), _entry_shape(entries[number]), len(manifests[number]), sorted(one[1] for one in live))
        for number, live in files.items()
    ]
    history, at = list[Commit](), current
    while at in entries:
        history.append(entries[at])
        at = parents[at]
    left = {commit.version: commit.order for commit in entries.values()}
    structure = (shape, numbers[current])
    return State(_offsets(rows), tuple(reversed(history)), left, structure, tuple(broken))


def read_by_pyiceberg(catalog_file: Path, name: str) -> tuple[int, ...]:
    """Return the offset of every row, as PyIceberg's own scan finds them."""
    catalog = SqlCatalog(_CATALOG, uri=f"sqlite:///{catalog_file}?timeout=5", init_catalog_tables="false")
    try:
        return _offsets(catalog.load_table(name).scan(selected_fields=("id", "_kafka")).to_arrow().to_pylist())
    finally:
        catalog.engine.dispose()


def _manifests(snapshot: Mapping[str, Any]) -> list[str]:
    if snapshot["summary"]["total-data-files"] == "0":
        return []  # Polars does not read an Avro file without rows
    return list(_avro(snapshot["manifest-list"])["manifest_path"])


def _avro(location: str) -> pl.DataFrame:
    return pl.read_avro(_local(location))


def _live_in(manifest: str) -> list[tuple[str, int]]:
    """Return path and rows of the files that a manifest says are live."""
    entries = _avro(manifest).select("status", "data_file").to_dicts()
    return [(one["data_file"]["file_path"], one["data_file"]["record_count"]) for one in entries if one["status"] != _DELETED]


def _local(location: str) -> Path:
    return Path(location.removeprefix("file://"))


def _commit(version: str, order: int, text: str | None) -> Commit:
    body: dict[str, Any] = (json.loads(text) if text else {}).get("lakebound", {})
    intervals = [
        (start, end)
        for topic in body.get("coverage", {}).values()
        for part in topic["partitions"].values()
        for start, end in part
    ]
    return Commit(version, order, body.get("kind", ""), body.get("epoch", 0), body.get("commit", ""), tuple(intervals))


def _entry_shape(commit: Commit) -> tuple[Any, ...]:
    return commit.kind, commit.epoch, commit.coverage


def _offsets(rows: Iterable[Mapping[str, Any]]) -> tuple[int, ...]:
    """Return the rows' offsets; a row whose payload is another record's counts as one of no offset."""
    return tuple(sorted(row["id"] if row["id"] == row["_kafka"]["offset"] else -1 for row in rows))


def _spans(actions: Any, least: str, most: str) -> list[tuple[int, int]]:
    table = pa.RecordBatchReader.from_stream(actions).read_all().select([least, most])
    return sorted((row[least], row[most]) for row in table.to_pylist())
