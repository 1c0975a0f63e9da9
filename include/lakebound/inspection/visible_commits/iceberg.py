"""Commits of an Iceberg table: one is visible when the catalog names another metadata file."""

from __future__ import annotations

import sqlite3
import threading
import time
from bisect import bisect_left
from collections.abc import Iterable, Iterator

from lakebound.inspection.visible_commits.seen import POLL_SECONDS, REMOTE_POLL_SECONDS, SeenCommit, answer
from lakebound.spec.table import TableSpec
from lakebound.tables.history import read_history
from lakebound.tables.iceberg.catalog_file import open_existing, sqlite_file
from lakebound.tables.iceberg.open import open_catalog
from lakebound.tables.places import Places

_LOCATION = "select metadata_location from iceberg_tables where table_namespace = ? and table_name = ?"


class CommitWatch:
    """Looks at what the catalog names.

    Args:
        spec: The table.
        places: Where it is.
        ended: Set when the watch is to end.
    """

    def __init__(self, spec: TableSpec, places: Places, ended: threading.Event) -> None:
        self._spec, self._places = spec, places
        self._catalog_file = sqlite_file(places.iceberg_catalog_uri)
        self._ended = ended
        self._changes: list[float] = []
        self._started_at_ms = time.time() * 1000
        self._known = self._metadata_location()

    def watch(self) -> None:
        """Note when another metadata file is named."""
        for seen_at_ms in changes_seen(self._known, self._looks()):
            self._changes.append(seen_at_ms)

    def commits(self) -> Iterator[SeenCommit]:
        """Yield the snapshots that brought rows; a compaction's files hold rows that were visible before.

        A snapshot became visible at the first change that was seen after it was made: one writer commits one by one.
        """
        changes = self._changes.copy()
        history = read_history(self._spec, self._places.read_only()) if changes else None
        for commit in history.commits() if history is not None else ():
            index = bisect_left(changes, commit.committed_at_ms)
            is_seen = commit.committed_at_ms >= self._started_at_ms and index < len(changes)
            if history is not None and is_seen and commit.operation == "append":
                yield SeenCommit(changes[index], tuple(file.path for file in history.added(commit.version)))

    def _looks(self) -> Iterator[tuple[float, str | None]]:
        while not self._ended.wait(REMOTE_POLL_SECONDS if self._catalog_file is None else POLL_SECONDS):
            location = self._metadata_location()
            yield time.time() * 1000, location

    def _metadata_location(self) -> str | None:
        if self._catalog_file is None:
            return answer(lambda: open_catalog(self._places).pointer((self._spec.namespace, self._spec.short_name)))
        try:
            connection = open_existing(self._catalog_file, "ro", timeout=5)
        except sqlite3.OperationalError:
            return None
        try:
            row = connection.execute(_LOCATION, (self._spec.namespace, self._spec.short_name)).fetchone()
        except sqlite3.OperationalError:
            return None
        finally:
            connection.close()
        return None if row is None else str(row[0])


def changes_seen(known: str | None, looks: Iterable[tuple[float, str | None]]) -> Iterator[float]:
    """Yield the times of those looks that found another location than the one before.

    A look that found none met a busy catalog, or a table that is not there yet: it would else count as a commit, twice.
    """
    for at_ms, location in looks:
        if location is not None and location != known:
            known = location
            yield at_ms
