"""Freshness as a reader sees it: when each commit became visible from outside, minus when its records were produced.

The application's own clock is never asked. An observer looks at the tables every few milliseconds, as a reader would that
waits for the next version; afterwards the rows of each commit say when their records were produced (Kafka's CreateTime).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lakebound.inspection.visible_commits.seen import CommitWatch, SeenCommit
from lakebound.spec.pipeline import KAFKA_COLUMN
from lakebound.spec.table import TableSpec
from lakebound.tables.formats import PerFormat
from lakebound.tables.places import Places

_TIMESTAMP = f"{KAFKA_COLUMN}.timestamp"
_WATCHES: PerFormat[Callable[[TableSpec, Places, threading.Event], CommitWatch]] = PerFormat(
    "lakebound.inspection.visible_commits", "CommitWatch"
)


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


class FreshnessObserver:
    """Looks at tables from outside until it is stopped; tables may appear meanwhile."""

    def __init__(self, places: Places, tables: Sequence[TableSpec]) -> None:
        self._places = places
        self._tables = list(tables)
        self._ended = threading.Event()
        self._watches: dict[str, CommitWatch] = {}
        self._threads: list[threading.Thread] = []
        self._failed: Exception | None = None

    def __enter__(self) -> FreshnessObserver:
        # What is there now is looked at before anything is watched: a commit that follows at once is a new one.
        for spec in self._tables:
            watch = self._watches[spec.id] = _WATCHES.of(spec.format)(spec, self._places, self._ended)
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
        measured = {name: _freshness(list(watch.commits()), produced_after_ms) for name, watch in self._watches.items()}
        return {name: freshness for name, freshness in measured.items() if freshness is not None}

    def _noting(self, watch: CommitWatch) -> None:
        try:
            watch.watch()
        except Exception as exc:
            self._failed = exc


def _freshness(commits: list[SeenCommit], produced_after_ms: float) -> VisibleFreshness | None:
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
