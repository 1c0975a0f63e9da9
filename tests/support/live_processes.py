"""Processes that may end while a test looks at them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TypeVar

import psutil

T = TypeVar("T")


def family_of(pid: int) -> list[psutil.Process]:
    """Return a process and all that it started."""
    root = psutil.Process(pid)
    return [root, *root.children(recursive=True)]


def asked_of_each(processes: Iterable[psutil.Process], ask: Callable[[psutil.Process], T]) -> dict[psutil.Process, T]:
    """Return what each process answers; those that have ended, or that this user may not ask, are left out."""
    answers = {}
    for process in processes:
        with suppress(psutil.Error, ProcessLookupError):  # os says the latter
            answers[process] = ask(process)
    return answers


def kill_all(processes: Iterable[psutil.Process]) -> None:
    """Kill those that have not ended already; the end of one may be the end of others."""
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.kill()
