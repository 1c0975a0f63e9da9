"""Processes that may end while a test looks at them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TypeVar

import psutil

T = TypeVar("T")


def family_of(pid: int) -> list[psutil.Process]:
    """Return a process and all that it started.

    Raises:
        psutil.NoSuchProcess: It has ended: what is asked of its family would be asked of nobody.
    """
    root = psutil.Process(pid)
    return [root, *root.children(recursive=True)]


def asked_of_each(processes: Iterable[psutil.Process], ask: Callable[[psutil.Process], T]) -> dict[psutil.Process, T]:
    """Return what each process answers; those that have ended are left out.

    Raises:
        psutil.AccessDenied: This user may not ask one of them.
    """
    answers = {}
    for process in processes:
        with suppress(psutil.NoSuchProcess, ProcessLookupError):  # os says the latter
            answers[process] = ask(process)
    return answers


def processes_with(variable: str, value: str) -> list[psutil.Process]:
    """Return all that have this variable in their environment, as far as this user may see it."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.environ().get(variable) == value:
                found.append(process)
    return found


def kill_all(processes: Iterable[psutil.Process]) -> None:
    """Kill those that have not ended already; the end of one may be the end of others."""
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.kill()
