"""Whether an arm waits for the disk: how often its processes sync files, counted by the kernel while `perf` asks it to."""

from __future__ import annotations

import shutil
import subprocess

from running import family_of

EVENTS = ("syscalls:sys_enter_fsync", "syscalls:sys_enter_fdatasync")


def syncs_per_second(pid: int, seconds: int) -> float | None:
    """Return the syncs per second of a process and all that it started; None where nobody can count them.

    Args:
        pid: The first process.
        seconds: For how long they are counted.
    """
    perf = shutil.which("perf")
    if perf is None:
        return None
    pids = ",".join(str(process.pid) for process in family_of(pid))
    command = [perf, "stat", "-x", ",", "-e", ",".join(EVENTS), "-p", pids, "sleep", str(seconds)]
    told = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    counted = counts(told.stderr)
    return None if told.returncode or counted is None else counted / seconds


def counts(told: str) -> int | None:
    """Return the sum of what perf counted; None where it did not count all events."""
    lines = [line.split(",") for line in told.splitlines() if any(event in line for event in EVENTS)]
    numbers = [fields[0] for fields in lines]
    return sum(map(int, numbers)) if len(numbers) == len(EVENTS) and all(map(str.isdigit, numbers)) else None
