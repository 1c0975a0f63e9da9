"""Starts the applications that work on tables beside streams, as they are submitted."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import psutil
import pytest

from lakebound.control.processes import last_lines
from lakebound.landing.spark_command import spark_environment
from lakebound.settings import Settings
from tests.support.live_processes import asked_of_each, kill_all
from tests.support.waiting import HANGS_SECONDS, wait_until

DEADLINE_SECONDS = 300.0

T = TypeVar("T")
STARTS = ("spark_apps/maintain.py", "spark_apps/validate.py")
"""What its processes run; see tests/support/reached_tests.py."""


@contextmanager
def started(command: list[str], settings: Settings, errors: Path) -> Iterator[subprocess.Popen[str]]:
    """Yield the application in a session of its own, which is killed at the end.

    Args:
        command: Of orders that say ``is_waited_for``: behind everything else it would starve beside other tests.
        settings: Of this machine.
        errors: Gets what it logs.
    """
    with errors.open("w") as log:
        process = subprocess.Popen(
            command,
            env=spark_environment(settings),
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            start_new_session=True,
        )
        try:
            yield process
        finally:
            kill_session(process.pid)
            process.communicate(timeout=HANGS_SECONDS)


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    """Return its exit code and output."""
    output, _ = process.communicate(timeout=DEADLINE_SECONDS)
    return process.returncode, output


def wait_while_alive(process: subprocess.Popen[Any], condition: Callable[[], T], what: str, log: Path | None = None) -> T:
    """Return the first truthy answer of ``condition``; fails with the end of the log once the process has ended."""

    def found() -> T:
        if process.poll() is not None:
            pytest.fail(f"it ended with {process.returncode} before {what}: {last_lines(log) if log else ''}")
        return condition()

    return wait_until(found, DEADLINE_SECONDS, what, poll_seconds=0.05)


def last_line(output: str) -> str:
    """Return the last line of JSON; the JVM may have a word after it."""
    return [line for line in output.splitlines() if line.startswith("{")][-1]


def kill_session(session: int) -> None:
    """Kill every process of the session at once, Python and JVM."""
    sessions = asked_of_each(psutil.process_iter(), lambda process: os.getsid(process.pid))
    kill_all(process for process, its_session in sessions.items() if its_session == session)
