"""Ends an application that stands behind everything else on a machine without an idle core, so that it is started again."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator

import psutil

POLL_SECONDS = 5.0


@contextlib.contextmanager
def ended_if_starved(
    pid: Callable[[], int | None], is_starved: Callable[[float, float], bool], poll_seconds: float | None = None
) -> Iterator[threading.Event]:
    """End an application that gets too little of the cores while the block waits for it; yields whether that was so.

    Args:
        pid: Returns its first process; None before it is started.
        is_starved: Decides by the CPU seconds of all its processes, and the seconds that it has run.
        poll_seconds: How often it is looked at; None: every five seconds.
    """
    every = POLL_SECONDS if poll_seconds is None else poll_seconds
    over, was_starved = threading.Event(), threading.Event()

    def watch() -> None:
        while not over.wait(every):
            number = pid()
            with contextlib.suppress(psutil.NoSuchProcess):
                if number is not None and _look(psutil.Process(number), is_starved):
                    was_starved.set()
                    _kill(psutil.Process(number))
                    return

    thread = threading.Thread(target=watch, name="starvation", daemon=True)
    thread.start()
    try:
        yield was_starved
    finally:
        over.set()
        thread.join()


def _look(process: psutil.Process, is_starved: Callable[[float, float], bool]) -> bool:
    return is_starved(sum(map(_cpu_seconds, _tree(process))), time.time() - process.create_time())


def _kill(process: psutil.Process) -> None:
    """End all processes at once: the next run goes on where this one was killed."""
    processes = _tree(process)
    for one in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            one.kill()


def _tree(process: psutil.Process) -> list[psutil.Process]:
    return [process, *process.children(recursive=True)]


def _cpu_seconds(process: psutil.Process) -> float:
    """Return what a process used, and its children that have ended."""
    with contextlib.suppress(psutil.NoSuchProcess):
        used = process.cpu_times()
        return float(used.user + used.system + used.children_user + used.children_system)
    return 0.0
