"""A lock among machines: a file in the object store that its holder changes every few seconds.

A lock that has not changed for a while, by the clock of who waits, is that of a machine that died, and is taken. What a lock
keeps apart is ordinary work, such as two repairs; a holder that was suspended for so long and goes on is refused by the tables.
"""

from __future__ import annotations

import json
import logging
import os
import socket
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from lakebound.control.shared_file import SharedFile
from lakebound.errors import LakeboundError
from lakebound.storage.store import Tagged

log = logging.getLogger(__name__)

SILENT_SECONDS = 15.0
"""After that without a sign a lock is free."""
_SIGN_SECONDS = 4.0
_LOOK_SECONDS = 0.5


@dataclass(frozen=True)
class Refused:
    """Who holds a lock that was not got."""

    holder: str


@contextmanager
def shared_lock(file: SharedFile, deadline_seconds: float | None) -> Iterator[Refused | None]:
    """Hold the lock ``<file>.lock`` inside the block, and yield None; where it is not got, yield who holds it.

    Args:
        file: What is locked.
        deadline_seconds: How long to wait for it; None: only until its holder gives a sign of life.
    """
    taken = _take(file.with_name(f"{file.name}.lock"), deadline_seconds)
    if isinstance(taken, Refused):
        yield taken
        return
    taken.start()
    try:
        yield None
    finally:
        taken.end()


def _take(file: SharedFile, deadline_seconds: float | None) -> _HeldLock | Refused:
    own = _HeldLock(file)
    seen: bytes | None = None
    began = since = time.monotonic()
    while True:
        found, now = file.tagged(), time.monotonic()
        if found is None or not _holder(found) or (found.content == seen and now - since > SILENT_SECONDS):
            if own.put(found):
                return own
            continue
        if found.content != seen:
            if seen is not None and deadline_seconds is None:
                return Refused(_holder(found))
            seen, since = found.content, now
        if deadline_seconds is not None and now - began > deadline_seconds:
            return Refused(_holder(found))
        time.sleep(_LOOK_SECONDS)


def _holder(found: Tagged) -> str:
    """Return who holds a lock; empty where nobody does, or where the file says nothing."""
    return _said(found, "holder")


def _said(found: Tagged, field: str) -> str:
    try:
        return str(json.loads(found.content).get(field) or "")
    except (ValueError, AttributeError):
        return ""


class _HeldLock:
    """A lock that is held, and the thread that gives signs for it."""

    def __init__(self, file: SharedFile) -> None:
        self._file = file
        self._id = uuid.uuid4().hex
        self._holder = f"process {os.getpid()} on {socket.gethostname()}"
        self._signs = 0
        self._found: Tagged | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._give_signs, name="shared-lock", daemon=True)

    def put(self, found: Tagged | None) -> bool:
        """Put a sign in the place of what was found; return whether nobody was faster."""
        self._signs += 1
        self._found = self._swap(found, self._text(self._holder))
        return self._found is not None

    def start(self) -> None:
        """Begin to give signs."""
        self._thread.start()

    def end(self) -> None:
        """Let others take it."""
        self._ended.set()
        self._thread.join(timeout=10)
        if self._found is not None:
            with suppress(LakeboundError, OSError):  # it is free after a while without signs
                self._signs += 1
                self._swap(self._found, self._text(""))

    def _swap(self, found: Tagged | None, text: str) -> Tagged | None:
        """Put a text in the place of what was found, or of an own sign that took effect though the store did not say so."""
        put = self._file.swap(found, text)
        if put is not None:
            return put
        there = self._file.tagged()
        return self._file.swap(there, text) if there is not None and _said(there, "id") == self._id else None

    def _give_signs(self) -> None:
        while not self._ended.wait(_SIGN_SECONDS):
            try:
                if not self.put(self._found):
                    log.warning("the lock %s was taken by somebody else", self._file)
                    return
            except (LakeboundError, OSError) as exc:
                log.warning("the lock %s could not be renewed: %s", self._file, exc)

    def _text(self, holder: str) -> str:
        return json.dumps({"holder": holder, "id": self._id, "signs": self._signs})
