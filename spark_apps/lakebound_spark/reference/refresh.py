"""The thread that looks for newer versions of reference data. It reads them beside the batches, which never wait for it."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from pyspark.sql import SparkSession

from lakebound.control.progress import ReferenceProgress
from lakebound.redaction import redacted
from lakebound_spark.reference.book import Reference, ReferenceBook, make_reference
from lakebound_spark.reference.loaded import UnusableReferenceError
from lakebound_spark.reference.rules import is_due, next_step
from lakebound_spark.reference.sources import Source

log = logging.getLogger(__name__)

_TICK_SECONDS = 1.0

Report = Callable[[Mapping[str, ReferenceProgress]], None]


@dataclass(frozen=True)
class _Look:
    """What the looks at a source have found. Times are epoch seconds; ``began`` is of the monotonic clock."""

    began: float
    checked_at: float
    refused: str | None = None
    problem: str | None = None
    problem_since: float | None = None

    def well(self) -> _Look:
        """Nothing is wrong."""
        return replace(self, checked_at=time.time(), refused=None, problem=None, problem_since=None)

    def ill(self, problem: str, refused: str | None) -> _Look:
        """The version in use is kept."""
        return replace(self, problem=problem, problem_since=self.problem_since or time.time(), refused=refused)


class ReferenceWatch:
    """Looks at each reference of a book as often as its YAML says, and offers what is newer and usable."""

    def __init__(self, session: SparkSession, book: ReferenceBook, report: Report) -> None:
        """Look at nothing yet.

        Args:
            session: Spark's.
            book: What is in use.
            report: Gets what is to be told of every reference, each second.
        """
        self._session, self._book, self._report = session, book, report
        self._looks = {name: _Look(time.monotonic(), book.in_use(name).loaded_at) for name in book.sources}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="references", daemon=True)

    def start(self) -> None:
        """Begin; without references there is nothing to do."""
        if self._book.sources:
            self.tell()
            self._thread.start()

    def end(self) -> None:
        """Tell the thread to stop; it may still be reading, and is a daemon."""
        self._ended.set()

    def tell(self) -> None:
        """Report how every reference is."""
        self._report({name: _told(self._book.in_use(name), look) for name, look in self._looks.items()})

    def look(self, name: str) -> None:
        """Look at a source now. What is wrong with it is told, and changes nothing of what is in use."""
        source, look = self._book.sources[name], replace(self._looks[name], began=time.monotonic())
        self._looks[name] = look
        try:
            self._looks[name] = self._newer(source, look)
        except Exception as exc:
            is_told = isinstance(exc, UnusableReferenceError)
            what = str(exc) if is_told else f"it cannot be read: {redacted(exc)}"
            self._looks[name] = self._refused(source, look, what, None, None if is_told else exc)

    def _newer(self, source: Source, look: _Look) -> _Look:
        newest, found = self._book.newest(source.name), source.look()
        step = next_step(newest.loaded.version.token, look.refused, found.token)
        if step == "keep":
            return look.well()
        if step == "still_refused":
            return look
        try:
            loaded = source.read(newest.loaded)
        except UnusableReferenceError as exc:
            return self._refused(source, look, str(exc), found.token)
        self._book.offer(source.name, make_reference(self._session, loaded))
        log.info("reference %s: version %s is used from the next batch on", source.name, loaded.version.text)
        return look.well()

    def _refused(self, source: Source, look: _Look, problem: str, token: str | None, error: Exception | None = None) -> _Look:
        """Keep the version in use; the log has the whole error where only its kind may be told elsewhere."""
        version = self._book.newest(source.name).loaded.version.text
        if look.problem != problem:
            said = (source.name, source.spec.told, version, problem)
            log.warning("reference %s (%s) stays at version %s: %s", *said, exc_info=error)
        return look.ill(problem, token)

    def _loop(self) -> None:
        while not self._ended.wait(_TICK_SECONDS):
            for name, source in self._book.sources.items():
                if is_due(self._looks[name].began, source.spec.refresh_seconds, time.monotonic()):
                    self.look(name)
            self.tell()


def _told(one: Reference, look: _Look) -> ReferenceProgress:
    return ReferenceProgress(
        version=one.loaded.version.text,
        rows=one.loaded.rows.num_rows,
        loaded_at=one.loaded_at,
        checked_at=look.checked_at,
        problem=look.problem,
        problem_since=look.problem_since,
    )
