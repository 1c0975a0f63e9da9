"""Who holds a lock: the kernel lists the locks of files with the processes that took them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import psutil

_LOCKS = Path("/proc/locks")
_UNSEEN = "a process that cannot be seen from here (another container or machine)"


def holder_of(descriptor: int) -> str:
    """Return, for a sentence, which process holds a lock on an open file, and which user runs it."""
    found = os.fstat(descriptor)
    try:
        pids = list(locking(_LOCKS.read_text(), found.st_dev, found.st_ino))
    except OSError:
        pids = []
    return named(pid for pid in pids if pid > 0) or _UNSEEN


def holders_of_writes(files: Iterable[Path]) -> str:
    """Return, for a sentence, which other processes hold a write lock of the kind ``fcntl`` on one of several files.

    SQLite locks its file, or the one ending in ``-shm`` beside it (https://www.sqlite.org/walformat.html#locks). Where no lock
    is seen, the processes that have a file open are returned.

    Args:
        files: The files; those that are missing are left out.
    """
    there = [path for path in files if path.exists()]
    found: set[int] = set()
    with suppress(OSError):
        listing = _LOCKS.read_text()
        for path in there:
            status = path.stat()
            found.update(locking(listing, status.st_dev, status.st_ino, kind="POSIX", mode="WRITE"))
    pids = sorted(pid for pid in found if pid not in (0, os.getpid())) or having_open(there)
    return named(pids) or _UNSEEN


def having_open(files: Iterable[Path]) -> list[int]:
    """Return the other processes of this machine that have one of several files open, as far as this user may see."""
    wanted = {str(path.resolve()) for path in files}
    return sorted(pid for pid in psutil.pids() if pid != os.getpid() and wanted & set(_open_files(pid)))


def named(pids: Iterable[int]) -> str:
    """Return processes for a sentence, each with its user."""
    return " and ".join(_named(pid) for pid in pids)


def locking(listing: str, device: int, inode: int, *, kind: str = "FLOCK", mode: str | None = None) -> Iterator[int]:
    """Yield the processes that hold a lock on a file. Pure.

    Source: proc_locks(5); the line of a process that only waits has ``->`` as its second word.

    Args:
        listing: The text of /proc/locks.
        device: The file's device.
        inode: Its number there.
        kind: ``FLOCK``, or ``POSIX`` for locks of fcntl(2).
        mode: ``READ`` or ``WRITE``; None: either.
    """
    wanted = f"{os.major(device):02x}:{os.minor(device):02x}:{inode}"
    for line in listing.splitlines():
        words = line.split()
        if len(words) >= 6 and words[1] == kind and words[5] == wanted and mode in (None, words[3]):
            yield int(words[4])


def _open_files(pid: int) -> Iterator[str]:
    with suppress(OSError):
        for entry in os.scandir(f"/proc/{pid}/fd"):
            with suppress(OSError):
                yield os.readlink(entry.path)


def _named(pid: int) -> str:
    try:
        process = psutil.Process(pid)
        return f"process {pid} ({process.name()}) of user {process.username()}"
    except psutil.Error:
        return f"process {pid}"
