"""Freshness as a reader sees it: when each commit became visible from outside, minus when its records were produced.

The application's own clock is never asked. An observer looks at the tables every few milliseconds, as a reader would that
waits for the next version; afterwards the rows of each commit say when their records were produced (Kafka's CreateTime).
"""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.io import FileIO
from pyiceberg.table import StaticTable, Table
from pyiceberg.table.snapshots import Operation, Snapshot

from lakebound.errors import LakeboundError
from lakebound.spec.pipeline import KAFKA_COLUMN
from lakebound.spec.table import TableSpec
from lakebound.storage.location import Location
from lakebound.tables.delta.checkpoints import list_log
from lakebound.tables.delta.log import commit_file, commit_lines
from lakebound.tables.iceberg.catalog_file import open_existing, sqlite_file
from lakebound.tables.iceberg.open import open_catalog
from lakebound.tables.places import Places

T = TypeVar("T")

POLL_SECONDS = 0.005
REMOTE_POLL_SECONDS = 0.1
"""Where each look is a request to a store or a server. A commit counts as seen by up to this and a request's time too late."""
_TIMESTAMP = f"{KAFKA_COLUMN}.timestamp"
_LOCATION = "select metadata_location from iceberg_tables where table_namespace = ? and table_name = ?"


@dataclass(frozen=True)
class VisibleFreshness:
    """Of all rows that became visible while the observer looked; milliseconds."""

    mean_ms: float
    p50_ms: float
    p95_ms: float
    p99_ms: float
    max_ms: float
    rows: int
    commits: int
    files: int


@dataclass(frozen=True)
class _Commit:
    """A commit that was seen: when, and the files that it added."""

    visible_at_ms: float
    files: tuple[Location, ...]


class FreshnessObserver:
    """Looks at tables from outside until it is stopped; tables may appear meanwhile."""

    def __init__(self, places: Places, tables: Sequence[TableSpec]) -> None:
        self._places = places
        self._catalog_file = sqlite_file(places.iceberg_catalog_uri)
        self._tables = list(tables)
        self._ended = threading.Event()
        self._started_at_ms = time.time() * 1000
        self._delta_seen: dict[str, dict[int, float]] = {spec.id: {} for spec in tables if spec.format == "delta"}
        self._iceberg_seen: dict[str, list[float]] = {spec.id: [] for spec in tables if spec.format == "iceberg"}
        self._threads: list[threading.Thread] = []
        self._failed: Exception | None = None

    def __enter__(self) -> FreshnessObserver:
        # What is there now is looked at before anything is watched: a commit that follows at once is a new one.
        for spec in self._tables:
            watch = self._delta_watch(spec) if spec.format == "delta" else self._iceberg_watch(spec)
            self._threads.append(threading.Thread(target=self._noting, args=(watch,), daemon=True))
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()

    def measure(self, *, produced_after_ms: float = 0.0) -> dict[str, VisibleFreshness]:
        """Return the freshness per table id; a table of which no commit with rows was seen is left out.

        Args:
            produced_after_ms: Records produced before (epoch milliseconds) are a warm-up and do not count.

        Raises:
            Exception: A table could not be watched to the end, so that its later commits were not seen.
        """
        if self._failed is not None:
            raise self._failed
        found: dict[str, VisibleFreshness] = {}
        for spec in self._tables:
            commits = self._delta_commits(spec) if spec.format == "delta" else self._iceberg_commits(spec)
            freshness = _freshness(list(commits), produced_after_ms)
            if freshness is not None:
                found[spec.id] = freshness
        return found

    def _noting(self, watch: Callable[[], None]) -> None:
        try:
            watch()
        except Exception as exc:
            self._failed = exc

    def _delta_watch(self, spec: TableSpec) -> Callable[[], None]:
        folder = self._places.folder(spec)
        seen = self._delta_seen[spec.id]
        first = _newest(folder) + 1

        def watch() -> None:
            version = first
            while not self._ended.wait(POLL_SECONDS if folder.is_local else REMOTE_POLL_SECONDS):
                while _answer(commit_file(folder, version).exists):
                    seen[version] = time.time() * 1000
                    version += 1

        return watch

    def _iceberg_watch(self, spec: TableSpec) -> Callable[[], None]:
        known = self._metadata_location(spec)

        def watch() -> None:
            for seen_at_ms in changes_seen(known, self._looks(spec)):
                self._iceberg_seen[spec.id].append(seen_at_ms)

        return watch

    def _looks(self, spec: TableSpec) -> Iterator[tuple[float, str | None]]:
        while not self._ended.wait(REMOTE_POLL_SECONDS if self._catalog_file is None else POLL_SECONDS):
            location = self._metadata_location(spec)
            yield time.time() * 1000, location

    def _metadata_location(self, spec: TableSpec) -> str | None:
        if self._catalog_file is None:
            return _answer(lambda: open_catalog(self._places).pointer((spec.namespace, spec.short_name)))
        try:
            connection = open_existing(self._catalog_file, "ro", timeout=5)
        except sqlite3.OperationalError:
            return None
        try:
            row = connection.execute(_LOCATION, (spec.namespace, spec.short_name)).fetchone()
        except sqlite3.OperationalError:
            return None
        finally:
            connection.close()
        return None if row is None else str(row[0])

    def _delta_commits(self, spec: TableSpec) -> Iterator[_Commit]:
        folder = self._places.folder(spec)
        for version, visible_at_ms in self._delta_seen[spec.id].copy().items():
            lines = commit_lines(commit_file(folder, version).read().decode())
            adds = [action["add"] for action in map(json.loads, lines) if "add" in action]
            files = tuple(folder / unquote(add["path"]) for add in adds if add.get("dataChange", True))
            yield _Commit(visible_at_ms, files)

    def _iceberg_commits(self, spec: TableSpec) -> Iterator[_Commit]:
        """A snapshot became visible at the first change that was seen after it was made: one writer commits one by one."""
        location = self._metadata_location(spec)
        changes = self._iceberg_seen[spec.id].copy()
        if location is None or not changes:
            return
        table: Table = (
            StaticTable.from_metadata(location)
            if self._catalog_file is not None
            else open_catalog(self._places).load_table((spec.namespace, spec.short_name))
        )
        for snapshot in table.snapshots():
            index = bisect_left(changes, snapshot.timestamp_ms)
            if snapshot.timestamp_ms >= self._started_at_ms and index < len(changes) and _brings_rows(snapshot):
                yield _Commit(changes[index], tuple(map(self._places.file_at, _added_files(snapshot, table.io))))


def _answer(ask: Callable[[], T]) -> T | None:
    """Return what a store or a server answers; None where it fails now: the next look sees the commit, later."""
    try:
        return ask()
    except (LakeboundError, OSError):
        return None


def _newest(folder: Location) -> int:
    log = folder / "_delta_log"
    if log.is_local and not log.path.is_dir():
        return -1
    return max((file.version for file in list_log(folder) if file.is_commit), default=-1)


def _brings_rows(snapshot: Snapshot) -> bool:
    # A compaction's files hold rows that were visible before.
    return snapshot.summary is not None and snapshot.summary.operation == Operation.APPEND


def _added_files(snapshot: Snapshot, io: FileIO) -> Iterator[str]:
    for manifest in snapshot.manifests(io):
        if manifest.added_snapshot_id == snapshot.snapshot_id:
            # By entry, not by manifest: commits merge small manifests now and then.
            for entry in manifest.fetch_manifest_entry(io):
                if entry.snapshot_id == snapshot.snapshot_id:
                    yield entry.data_file.file_path


def changes_seen(known: str | None, looks: Iterable[tuple[float, str | None]]) -> Iterator[float]:
    """Yield the times of those looks that found another location than the one before.

    A look that found none met a busy catalog, or a table that is not there yet: it would else count as a commit, twice.
    """
    for at_ms, location in looks:
        if location is not None and location != known:
            known = location
            yield at_ms


def _freshness(commits: list[_Commit], produced_after_ms: float) -> VisibleFreshness | None:
    parts: list[np.ndarray] = []
    files = counted = 0
    for commit in commits:
        before = len(parts)
        for file in commit.files:
            column = (
                pq.ParquetFile(file.path if file.is_local else pa.BufferReader(file.read()))
                .read(columns=[_TIMESTAMP])
                .flatten()
                .column(0)
            )
            produced_ms = column.cast("int64").to_numpy() / 1000
            kept = produced_ms[produced_ms >= produced_after_ms]
            if len(kept):
                parts.append(commit.visible_at_ms - kept)
                files += 1
        counted += len(parts) > before
    if not parts:
        return None
    values = np.concatenate(parts)
    p50, p95, p99 = (float(value) for value in np.percentile(values, (50, 95, 99)))
    return VisibleFreshness(
        mean_ms=float(values.mean()),
        p50_ms=p50,
        p95_ms=p95,
        p99_ms=p99,
        max_ms=float(values.max()),
        rows=len(values),
        commits=counted,
        files=files,
    )
