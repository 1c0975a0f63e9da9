"""Who holds a lock: the kernel lists the locks of files with the processes that took them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import psutil

_LOCKS = Path("/proc/locks")


def holder_of(descriptor: int) -> str:
    """Return, for a sentence, which process holds a lock on an open file, and which user runs it."""
    found = os.fstat(descriptor)
    try:
        pids = list(locking(_LOCKS.read_text(), found.st_dev, found.st_ino))
    except OSError:
        pids = []
    names = [_named(pid) for pid in pids if pid > 0]
    return " and ".join(names) or "a process that cannot be seen from here (another container or machine)"


def locking(listing: str, device: int, inode: int) -> Iterator[int]:
    """Yield the processes that hold a lock of the kind ``flock`` on a file. Pure.

    Source: proc_locks(5); the line of a process that only waits has ``->`` as its second word.

    Args:
        listing: The text of /proc/locks.
        device: The file's device.
        inode: Its number there.
    """
    wanted = f"{os.major(device):02x}:{os.minor(device):02x}:{inode}"
    for line in listing.splitlines():
        words = line.split()
        if len(words) >= 6 and words[1] == "FLOCK" and words[5] == wanted:
            yield int(words[4])


def _named(pid: int) -> str:
    try:
        process = psutil.Process(pid)
        return f"process {pid} ({process.name()}) of user {process.username()}"
    except psutil.Error:
        return f"process {pid}"
