"""Turns at committing: a stream that commits to a table ten times a second lets a slower commit through now and then.

A commit is lost when another one falls between its reading and its writing of the table. Iceberg's own rewriting needs a few
hundred milliseconds for that, so beside a stream that needs fifty it would lose every time. It asks for a turn by a file in the
pipeline's folder, and the stream holds its next commit back while the file is young: for a second and a half at most, and for
a twentieth of its time. A turn that was too short, on a slow machine or at a table with many manifests, makes the next one
twice as long, up to six seconds. Only freshness depends on it: what a commit does when it is lost is the same with turns and
without.

Where state is shared, the clocks of who asks and who gives may differ: a file counts as young when the stream has seen it
change lately. It looks every two seconds, and never waits for the answer.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path

import structlog

from lakebound.control.folder import ControlFolder, StateFile, read_text
from lakebound.control.private_files import file_mode, make_private_folder
from lakebound.control.shared_file import SharedFile
from lakebound.storage.requests import begin

_YOUNG_SECONDS = 10.0
"""Who wants a turn asks at each attempt, and an attempt takes seconds where the machine is slow. An older file was left by a
process that was killed: it costs the stream one turn."""

_FIRST_SECONDS = 1.5
_LONGEST_SECONDS = 6.0
_SHARE = 0.05
_LOOKS_EVERY_SECONDS = 0.005
_ASK_EVERY_SECONDS = 0.5
_LOOK_AT_STORE_SECONDS = 2.0
_log = structlog.get_logger(__name__)


class AskForTurn:
    """Asks the stream for a turn at a table, until it is no longer wanted. As a context, it is no longer wanted at the end."""

    def __init__(self, control: ControlFolder, table: str) -> None:
        self._path = control.turn(table)
        self._asked_at: float | None = None

    def __call__(self) -> None:
        """Ask, or ask again. If that is not possible, the commit continues without a turn."""
        if isinstance(self._path, SharedFile):
            return self._ask_shared(self._path)
        with suppress(OSError):
            make_private_folder(self._path.parent)
            self._path.touch(mode=file_mode())

    def _ask_shared(self, file: SharedFile) -> None:
        now = time.monotonic()
        if self._asked_at is None or now - self._asked_at >= _ASK_EVERY_SECONDS:
            with suppress(OSError):
                file.write_text(uuid.uuid4().hex)
                self._asked_at = now

    def end(self) -> None:
        """Let the stream continue."""
        if isinstance(self._path, SharedFile) and self._asked_at is None:
            return
        with suppress(OSError):
            self._path.unlink(missing_ok=True)

    def __enter__(self) -> AskForTurn:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Let the stream continue."""
        self.end()


class GiveTurns:
    """Holds commits back while somebody asks for a turn."""

    def __init__(
        self,
        control: ControlFolder,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._control = control
        self._monotonic = monotonic
        self._sleep = sleep
        self._not_before: dict[str, float] = {}
        self._seconds: dict[str, float] = {}
        self._watched: dict[str, _Watched] = {}

    def __call__(self, table: str, has_moved_on: Callable[[], bool]) -> float:
        """Wait while somebody asks for a turn at the table, and return for how many seconds.

        Args:
            table: The table's id.
            has_moved_on: Whether somebody has committed to it meanwhile: then the turn is over.
        """
        path = self._control.turn(table)
        began = self._monotonic()
        if not self._is_asked_for(path) or began < self._not_before.get(table, began):
            return 0.0
        longest = self._seconds.get(table, _FIRST_SECONDS)
        while self._is_asked_for(path) and self._monotonic() - began < longest and not _is_over(table, has_moved_on):
            self._sleep(_LOOKS_EVERY_SECONDS)
        now = self._monotonic()
        was_too_short = now - began >= longest
        self._seconds[table] = min(2 * longest, _LONGEST_SECONDS) if was_too_short else _FIRST_SECONDS
        self._not_before[table] = now + (now - began) * (1 / _SHARE - 1)
        _log.info("turn_given", table=table, seconds=round(now - began, 3))
        return now - began

    def _is_asked_for(self, path: StateFile) -> bool:
        if isinstance(path, Path):
            return _is_young(path)
        return self._watched.setdefault(path.name, _Watched(path, self._monotonic)).is_young()


class _Watched:
    """A request for a turn in a store, as the stream's looks have seen it."""

    def __init__(self, file: SharedFile, monotonic: Callable[[], float]) -> None:
        self._file = file
        self._monotonic = monotonic
        self._looking: Future[str | None] | None = None
        self._looked_at: float | None = None
        self._text: str | None = None
        self._changed_at: float | None = None

    def is_young(self) -> bool:
        """Whether it was seen to change lately; looks anew, without waiting, when the last look is old."""
        now = self._monotonic()
        if self._looking is not None and self._looking.done():
            self._take(self._looking, now)
            self._looking = None
        if self._looking is None and (self._looked_at is None or now - self._looked_at >= _LOOK_AT_STORE_SECONDS):
            self._looked_at = now
            self._looking = begin(lambda: read_text(self._file))
        return self._changed_at is not None and now - self._changed_at < _YOUNG_SECONDS

    def _take(self, looking: Future[str | None], now: float) -> None:
        if looking.exception() is not None:
            return
        text = looking.result()
        if text != self._text:
            self._changed_at = None if text is None else now
        self._text = text


def _is_young(path: Path) -> bool:
    try:
        return abs(time.time() - path.stat().st_mtime) < _YOUNG_SECONDS
    except OSError:
        return False


def _is_over(table: str, has_moved_on: Callable[[], bool]) -> bool:
    """Whether the other's commit is there. What cannot be known is left to the stream's own commit, which tries again."""
    try:
        return has_moved_on()
    except Exception as exc:
        _log.warning("turn_ends", table=table, reason=f"{type(exc).__name__}: {exc}")
        return True
