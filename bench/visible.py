"""When each commit of a table became visible, seen from outside, and how old its records were then.

Imports nothing of lakebound.
The same observer looks at every arm, so that what it costs and how often it looks is the same for all.
"""

from __future__ import annotations

import gzip
import json
import re
import sqlite3
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlparse

import numpy as np
import pyarrow.parquet as pq
from pyiceberg.table import StaticTable
from pyiceberg.table.snapshots import Operation

POLL_SECONDS = 0.005
_CURRENT = re.compile(rb'"current-snapshot-id"\s*:\s*(-?\d+)')
_LOCATION = "select metadata_location from iceberg_tables where table_namespace = ? and table_name = ?"


@dataclass(frozen=True)
class Seen:
    """Milliseconds from a record's CreateTime to the first look that found its commit, over all records; and what was added."""

    mean_ms: float
    p50_ms: float
    p95_ms: float
    p99_ms: float
    max_ms: float
    rows: int
    commits: int
    files: int
    bytes: int


@dataclass
class Place(ABC):
    """A table that is looked at.

    Attributes:
        folder: Of the table.
        timestamp: The column (dotted) with Kafka's CreateTime.
    """

    folder: Path
    timestamp: str

    @abstractmethod
    def look(self) -> list[int]:
        """Return the versions or snapshots that became visible since the last look, oldest first."""

    @abstractmethod
    def files(self, seen: dict[int, float]) -> Iterator[tuple[float, Path]]:
        """Yield each data file that a seen commit added, with the milliseconds at which it was seen; each file once."""


@dataclass
class DeltaTable(Place):
    """A Delta table: a version is visible when its file is there."""

    _next: int = 0
    _given: int = -1

    def look(self) -> list[int]:
        """Return the versions that are new."""
        found = []
        while self._file(self._next).exists():
            found.append(self._next)
            self._next += 1
        return found

    def files(self, seen: dict[int, float]) -> Iterator[tuple[float, Path]]:
        """Yield the added files."""
        for version, at_ms in seen.items():
            if version <= self._given:
                continue
            self._given = version
            for line in self._file(version).read_text().splitlines():
                add = json.loads(line).get("add")
                if add and add.get("dataChange", True):
                    yield at_ms, self.folder / unquote(add["path"])

    def _file(self, version: int) -> Path:
        return self.folder / "_delta_log" / f"{version:020d}.json"


@dataclass
class IcebergTable(Place):
    """An Iceberg table: a snapshot is visible when the catalog leads to metadata that names it."""

    _metadata: Path | None = None
    _given: int = -1

    @abstractmethod
    def newest_metadata(self) -> Path | None:
        """Return the file that the catalog leads to now."""

    def look(self) -> list[int]:
        """Return the current snapshot if the metadata is new."""
        found = self.newest_metadata()
        if found is None or found == self._metadata:
            return []
        current = _CURRENT.search(_bytes_of(found))
        self._metadata = found
        return [int(current[1])] if current and int(current[1]) >= 0 else []

    def files(self, seen: dict[int, float]) -> Iterator[tuple[float, Path]]:
        """Yield the added files; a snapshot that no look met became visible together with the one after it."""
        if self._metadata is None:
            return
        table = StaticTable.from_metadata(str(self._metadata))
        at_ms, given = None, self._given
        for snapshot in sorted(table.snapshots(), key=lambda one: one.sequence_number or 0, reverse=True):
            if (snapshot.sequence_number or 0) <= given:
                break
            at_ms = seen.get(snapshot.snapshot_id, at_ms)
            if at_ms is not None:
                self._given = max(self._given, snapshot.sequence_number or 0)
            if at_ms is None or snapshot.summary is None or snapshot.summary.operation != Operation.APPEND:
                continue
            for manifest in snapshot.manifests(table.io):
                if manifest.added_snapshot_id == snapshot.snapshot_id:
                    for entry in manifest.fetch_manifest_entry(table.io):
                        if entry.snapshot_id == snapshot.snapshot_id:
                            yield at_ms, Path(urlparse(entry.data_file.file_path).path)


@dataclass
class HadoopTable(IcebergTable):
    """A table of a Hadoop catalog: v1.metadata.json, v2.metadata.json, ..."""

    _version: int = 0

    def newest_metadata(self) -> Path | None:
        """Return the highest version's file."""
        while (self.folder / "metadata" / f"v{self._version + 1}.metadata.json").exists():
            self._version += 1
        return self.folder / "metadata" / f"v{self._version}.metadata.json" if self._version else None


@dataclass
class SqlTable(IcebergTable):
    """A table of an SQL catalog in SQLite. Its ``data_version`` says cheaply whether anything was written."""

    database: Path = Path()
    namespace: str = "bench"
    name: str = "events"
    _connection: sqlite3.Connection | None = None
    _data_version: int = -1

    def newest_metadata(self) -> Path | None:
        """Return what the catalog's row names."""
        try:
            if self._connection is None:
                uri = f"file:{self.database}?mode=ro"
                self._connection = sqlite3.connect(uri, uri=True, timeout=5, check_same_thread=False)
            version = self._connection.execute("pragma data_version").fetchone()[0]
            if version == self._data_version:
                return self._metadata
            row = self._connection.execute(_LOCATION, (self.namespace, self.name)).fetchone()
        except sqlite3.OperationalError:
            return self._metadata
        self._data_version = version
        return Path(urlparse(row[0]).path) if row else None


@dataclass
class Watch:
    """Looks at tables until it is ended."""

    places: dict[str, Place]
    _seen: dict[str, dict[int, float]] = field(default_factory=dict)
    _files: dict[str, list[tuple[float, Path]]] = field(default_factory=dict)
    _rows: dict[Path, int] = field(default_factory=dict)
    _threads: list[threading.Thread] = field(default_factory=list)
    _ended: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Watch:
        for name, place in self.places.items():
            self._seen[name], self._files[name] = {}, []
            self._threads.append(threading.Thread(target=self._watch, args=(place, self._seen[name]), daemon=True))
            self._threads[-1].start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()

    def commits(self, name: str) -> int:
        """Return how many commits of a table were seen so far."""
        return len(self._seen[name])

    def seen(self, name: str) -> dict[int, float]:
        """Return when each commit of a table was seen first, in epoch milliseconds; it grows."""
        return self._seen[name]

    def files(self, name: str) -> list[tuple[float, Path]]:
        """Return each data file that the commits of a table added which were seen so far, with the milliseconds."""
        self._files[name] += self.places[name].files(self._seen[name].copy())
        return self._files[name]

    def rows(self, name: str) -> int:
        """Return how many rows these files have."""
        paths = [path for _, path in self.files(name)]
        for path in paths:
            if path not in self._rows:
                self._rows[path] = pq.read_metadata(path).num_rows
        return sum(self._rows[path] for path in paths)

    def measure(self, name: str, from_ms: float, until_ms: float) -> Seen | None:
        """Return the freshness of the records that were produced in a time; None where none was seen."""
        parts: list[np.ndarray] = []
        commits: set[float] = set()
        files = size = 0
        for at_ms, path in self.files(name):
            produced_ms = produced_at(path, self.places[name].timestamp)
            kept = produced_ms[(produced_ms >= from_ms) & (produced_ms < until_ms)]
            if len(kept):
                parts.append(at_ms - kept)
                commits.add(at_ms)
                files, size = files + 1, size + path.stat().st_size
        if not parts:
            return None
        values = np.concatenate(parts)
        p50, p95, p99 = (float(value) for value in np.percentile(values, (50, 95, 99)))
        return Seen(float(values.mean()), p50, p95, p99, float(values.max()), len(values), len(commits), files, size)

    def _watch(self, place: Place, seen: dict[int, float]) -> None:
        while not self._ended.wait(POLL_SECONDS):
            for one in place.look():
                seen.setdefault(one, time.time() * 1000)


def produced_at(path: Path, timestamp: str) -> np.ndarray:
    """Return the CreateTime of a file's rows, in epoch milliseconds."""
    column = pq.ParquetFile(path).read(columns=[timestamp]).flatten().column(0)
    return np.asarray(column.cast("timestamp[us]").cast("int64").to_numpy() / 1000)


def _bytes_of(path: Path) -> bytes:
    return gzip.decompress(path.read_bytes()) if ".gz." in path.name else path.read_bytes()
