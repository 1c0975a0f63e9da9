"""A file of this machine's state: replaced in one step, locked among processes, for its user or group alone."""

from __future__ import annotations

import fcntl
import os
import tempfile
import time
from pathlib import Path
from typing import IO

from lakebound.control.lock_holder import holder_of
from lakebound.control.private_files import make_private, make_private_folder, open_private
from lakebound.durable import make_folder, sync_folder
from lakebound.errors import LockHeldError

_LOOKS_EVERY_SECONDS = 0.005

_lasting: set[Path] = set()
"""Folders whose names this process knows to be on the disk."""


def replace_text(path: Path, text: str, *, durable: bool) -> None:
    """Replace a file, so that a reader sees the old or the new one whole.

    Args:
        path: The file to replace; missing folders above it are made.
        text: The file's whole new content.
        durable: Whether the file must also survive a power cut (fsync of file and folder).
    """
    if durable:
        _make_lasting(path.parent)
    make_private_folder(path.parent)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "w") as file:
            make_private(file.fileno())
            file.write(text)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    if durable:
        sync_folder(path.parent)


def _make_lasting(folder: Path) -> None:
    """Have a folder's own name on the disk, too: it may be there since a moment ago, made for a lock or a log."""
    if folder not in _lasting or not folder.exists():
        make_folder(folder, make_private_folder)
        _lasting.add(folder)


def open_lock(path: Path) -> IO[str]:
    """Return the file ``<path>.lock``, open; whoever asks closes it."""
    make_private_folder(path.parent)
    return open_private(path.with_name(path.name + ".lock"), "a")


def lock(file: IO[str], deadline_seconds: float) -> None:
    """Lock an open file until it is closed.

    Raises:
        LockHeldError: Somebody else holds the lock for longer than the deadline.
    """
    ends = time.monotonic() + deadline_seconds
    while not is_locked_now(file):
        if time.monotonic() > ends:
            raise LockHeldError(Path(file.name), holder_of(file.fileno()), deadline_seconds) from None
        time.sleep(_LOOKS_EVERY_SECONDS)


def is_locked_now(file: IO[str]) -> bool:
    """Lock an open file until it is closed, and return True, unless somebody else has locked it."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
