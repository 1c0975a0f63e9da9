"""When a Spark action of Iceberg commits: its jobs have run, and no commit has been reported since."""

from __future__ import annotations

import threading
import time

from pyspark.sql import SparkSession

from lakebound.commit_turn import AskForTurn

_LOOKS_EVERY_SECONDS = 0.05
_ATTEMPTS_BY_ITSELF_SECONDS = 2.0
"""The first attempt of a JVM takes 1.4 s: its code is cold, and the manifests of all rewritten files are filtered. Later ones
have that behind them and take 0.2 s, so the stream need not wait for the first."""


class CommitPhase:
    """Asks for a turn while the action within this context commits.

    Java's actions say nothing of a commit before it is through. So it is taken for one when jobs have run and none does any
    more, until a commit is reported; and when that takes a while, its attempts are being lost. An action that commits several
    times runs jobs in between, and the stream goes on meanwhile.
    """

    def __init__(self, session: SparkSession, turn: AskForTurn) -> None:
        self._tracker = session.sparkContext.statusTracker()
        self._turn = turn
        self._has_run = False
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._watching = threading.Thread(target=self._watch, name="commit-phase", daemon=True)

    def __enter__(self) -> CommitPhase:
        """Begin to watch."""
        self._watching.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Let the stream go on."""
        self._ended.set()
        self._watching.join()
        self._turn.end()

    def committed(self) -> None:
        """Let the stream go on: a commit is through."""
        with self._lock:
            self._has_run = False
            self._turn.end()

    def _watch(self) -> None:
        ran_at = time.monotonic()
        while not self._ended.wait(_LOOKS_EVERY_SECONDS):
            is_running = bool(self._tracker.getActiveJobsIds())
            with self._lock:
                if is_running:
                    self._has_run, ran_at = True, time.monotonic()
                    self._turn.end()
                elif self._has_run and time.monotonic() - ran_at > _ATTEMPTS_BY_ITSELF_SECONDS:
                    self._turn()
