"""Commits of a Delta table: each is visible when its file is in the log."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

from lakebound.inspection.visible_commits.seen import POLL_SECONDS, REMOTE_POLL_SECONDS, SeenCommit, answer
from lakebound.spec.table import TableSpec
from lakebound.tables.delta.history import DeltaHistory, read_history
from lakebound.tables.delta.log import commit_file
from lakebound.tables.places import Places


class CommitWatch:
    """Looks for the commit after the newest.

    Args:
        spec: The table.
        places: Where it is.
        ended: Set when the watch is to end.
    """

    def __init__(self, spec: TableSpec, places: Places, ended: threading.Event) -> None:
        self._folder = places.folder(spec)
        self._ended = ended
        self._seen: dict[int, float] = {}
        history = read_history(spec, places)
        self._next = int(history.current) + 1 if history is not None and history.current is not None else 0

    def watch(self) -> None:
        """Note when each version is there."""
        while not self._ended.wait(POLL_SECONDS if self._folder.is_local else REMOTE_POLL_SECONDS):
            while answer(commit_file(self._folder, self._next).exists):
                self._seen[self._next] = time.time() * 1000
                self._next += 1

    def commits(self) -> Iterator[SeenCommit]:
        """Yield the commits with the files that bring rows."""
        history = DeltaHistory(self._folder, None)
        for version, visible_at_ms in self._seen.copy().items():
            yield SeenCommit(visible_at_ms, tuple(file.path for file in history.added(str(version))))
