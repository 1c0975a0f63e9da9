"""Whether a process that was started earlier on this machine still lives: a pid alone may by now be somebody else's."""

from __future__ import annotations

import psutil

START_TOLERANCE_SECONDS = 2.0
"""The kernel counts a process's start from boot, and the time of boot moves a little when the clock is corrected."""


def started_at(pid: int) -> float:
    """Return when a process was started, in epoch seconds.

    Raises:
        psutil.Error: There is no such process, or it may not be looked at.
    """
    return float(psutil.Process(pid).create_time())


def lives(pid: int, since: float) -> bool | None:
    """Return whether the process that was started at a time still lives; None where that cannot be known.

    A zombie, which has ended and was not waited for yet, does not.

    Args:
        pid: Its id, on this machine.
        since: When it was started, as ``started_at`` gave it.
    """
    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return False
        return is_start_of(process, since)
    except psutil.NoSuchProcess:
        return False
    except psutil.Error:
        return None


def is_start_of(process: psutil.Process, since: float) -> bool:
    """Return whether a process is the one that was started at a time."""
    return abs(process.create_time() - since) < START_TOLERANCE_SECONDS
