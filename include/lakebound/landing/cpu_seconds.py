"""CPU seconds that an application has used on this machine: its own, those of Spark's JVM, and those of their children."""

from __future__ import annotations

import os
from contextlib import suppress

import psutil


def application_root() -> int:
    """Return the process that an application hangs from: the JVM of spark-submit that started this Python, else this Python."""
    return os.getppid() if "PYSPARK_GATEWAY_PORT" in os.environ else os.getpid()


class CpuClock:
    """Counts the CPU seconds of a process and of all that it started. It never goes back.

    A child that has ended is counted by its parent. Executors on other machines, or of a Spark worker, are not children.
    """

    def __init__(self, root: int | None = None) -> None:
        """Count nothing yet.

        Args:
            root: Process id; None: the application that this process belongs to.
        """
        self._root = application_root() if root is None else root
        self._seconds = 0.0

    def __call__(self) -> float:
        """Return the seconds so far, since the process was started; what cannot be read adds nothing."""
        with suppress(psutil.Error, OSError):
            root = psutil.Process(self._root)
            self._seconds = max(self._seconds, sum(map(_seconds, [root, *root.children(recursive=True)])))
        return self._seconds


def _seconds(process: psutil.Process) -> float:
    try:
        return sum(process.cpu_times()[:4])  # user, system, and both of children that have ended
    except psutil.Error:
        return 0.0
