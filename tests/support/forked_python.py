"""Python processes that begin with the product's modules imported, which costs each a second or two of CPU.

One server per process of tests imports them once, and is forked for each (``multiprocessing``'s fork server). So it suits what
needs a process of its own, where how Python starts is not what is tested: its command line in /proc is the server's, and
``PYTHONUNBUFFERED`` and the like have no effect.
"""

from __future__ import annotations

import atexit
import multiprocessing
import os
import runpy
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from functools import cache
from multiprocessing.context import ForkServerContext
from pathlib import Path

from tests.support.waiting import HANGS_SECONDS, wait_until

_IMPORTED = ["lakebound_spark.stream.application", "lakebound.landing.to_stores.postgres_store"]
_START_SECONDS = 60.0
SERVER_IS_GONE = 255
"""The exit code of a process whose server has ended before it: nobody knows whether it still runs."""


class ForkedPython:
    """A Python that was forked, with what the tests use of ``subprocess.Popen``."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], log: Path) -> None:
        """Start it, in a session of its own.

        Args:
            command: The file of a Python program, and its arguments.
            environment: All of its variables.
            log: The file to which its output is added.
        """
        self._process = _server().Process(target=_run, args=(list(command), dict(environment), log), daemon=True)
        self._process.start()
        pid = self._process.pid
        assert pid is not None
        self.pid = pid
        # Who ends it ends its process group.
        wait_until(lambda: self.poll() is not None or _leads(pid), _START_SECONDS, "a session", poll_seconds=0.005)

    @property
    def returncode(self) -> int | None:
        """Its exit code, negative when a signal ended it; None while it runs."""
        return self._process.exitcode

    def poll(self) -> int | None:
        """Return the exit code; None while it runs."""
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit code when it has ended.

        Raises:
            subprocess.TimeoutExpired: It did not end in time.
        """
        self._process.join(timeout)
        code = self._process.exitcode
        if code is None:
            raise subprocess.TimeoutExpired(f"forked Python {self.pid}", timeout or 0.0)
        return code


def run_forked(command: Sequence[str], environment: Mapping[str, str], log: Path, timeout_seconds: float) -> int:
    """Run it to its end, and return the exit code; one that does not end in time is killed, and fails the test."""
    process = ForkedPython(command, environment, log)
    try:
        return process.wait(timeout_seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(HANGS_SECONDS)
        raise AssertionError(
            f"it did not end within {timeout_seconds:g} s: {log.read_text(errors='replace')[-4000:]}"
        ) from None


def _leads(pid: int) -> bool:
    try:
        return os.getpgid(pid) == pid
    except ProcessLookupError:
        return False


@cache
def _server() -> ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_IMPORTED)
    return context


def _run(command: list[str], environment: dict[str, str], log: Path) -> None:
    """Be the program, as ``python FILE ARGUMENTS`` is."""
    os.setsid()
    with log.open("ab") as output, Path(os.devnull).open("rb") as nothing:
        os.dup2(nothing.fileno(), 0)
        os.dup2(output.fileno(), 1)
        os.dup2(output.fileno(), 2)
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    sys.argv = command
    sys.path[:0] = [str(Path(command[0]).parent), *filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))]
    try:
        runpy.run_path(command[0], run_name="__main__")
    finally:
        # As a Python ends: the fork server waits for the threads only, and does so after this.
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
