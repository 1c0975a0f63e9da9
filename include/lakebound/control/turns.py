"""Turns at committing: a stream that commits to a table ten times a second lets a slower commit through now and then.

A commit is lost when another one falls between its reading and its writing of the table. Iceberg's own rewriting needs a few
hundred milliseconds for that, so beside a stream that needs fifty it would lose every time. It asks for a turn by a file in the
pipeline's folder, and the stream holds its next commit back while the file is young: for a second and a half at most, and for
a twentieth of its time. Only freshness depends on it: what a commit does when it is lost is the same with turns and without.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import structlog

from lakebound.control.folder import ControlFolder
from lakebound.control.private_files import file_mode, make_private_folder

_YOUNG_SECONDS = 2.0
"""Who wants a turn asks again and again; an older file was left by a process that was killed."""

_LONGEST_SECONDS = 1.5
_SHARE = 0.05
_LOOKS_EVERY_SECONDS = 0.005
_log = structlog.get_logger(__name__)


class AskForTurn:
    """Asks the stream for a turn at a table, until it is no longer wanted. As a context, it is no longer wanted at the end."""

    def __init__(self, control: ControlFolder, table: str) -> None:
        self._path = control.turn(table)

    def __call__(self) -> None:
        """Ask, or ask again. If that is not possible, the commit continues without a turn."""
        with suppress(OSError):
            make_private_folder(self._path.parent)
            self._path.touch(mode=file_mode())

    def end(self) -> None:
        """Let the stream continue."""
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

    def __call__(self, table: str, has_moved_on: Callable[[], bool]) -> float:
        """Wait while somebody asks for a turn at the table, and return for how many seconds.

        Args:
            table: The table's id.
            has_moved_on: Whether somebody has committed to it meanwhile: then the turn is over.
        """
        path = self._control.turn(table)
        began = self._monotonic()
        if not _is_asked_for(path) or began < self._not_before.get(table, began):
            return 0.0
        while _is_asked_for(path) and self._monotonic() - began < _LONGEST_SECONDS and not _is_over(table, has_moved_on):
            self._sleep(_LOOKS_EVERY_SECONDS)
        now = self._monotonic()
        self._not_before[table] = now + (now - began) * (1 / _SHARE - 1)
        _log.info("turn_given", table=table, seconds=round(now - began, 3))
        return now - began


def _is_asked_for(path: Path) -> bool:
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
