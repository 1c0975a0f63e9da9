"""``lakebound watch`` as a process of its own, as systemd runs it."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

COMMAND = (sys.executable, "-c", "from lakebound.cli import app; app()", "watch")
START_SECONDS = 60.0


class RunningWatch:
    """One watch; what it says goes to a file."""

    def __init__(self, log: Path, *arguments: str) -> None:
        self.log = log
        with log.open("wb") as output:
            self.process = subprocess.Popen([*COMMAND, *arguments], stdout=output, stderr=subprocess.STDOUT, cwd=log.parent)

    @property
    def said(self) -> str:
        """All that it has said so far."""
        return self.log.read_text()

    def ended(self, deadline_seconds: float = START_SECONDS) -> int:
        """Wait for its end, and return its exit code."""
        return self.process.wait(deadline_seconds)

    def stop(self, deadline_seconds: float = 10.0) -> int:
        """Ask it to end as systemd does, and return its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.ended(deadline_seconds)


@pytest.fixture(name="watch")
def watch_fixture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., RunningWatch]]:
    """Starts watches on the test's own places; none of them outlives the test."""
    monkeypatch.setenv("AIRFLOW_HOME", str(tmp_path / "airflow"))
    started: list[RunningWatch] = []

    def start(*arguments: str) -> RunningWatch:
        started.append(RunningWatch(tmp_path / f"watch-{len(started)}.log", *arguments))
        return started[-1]

    yield start
    for one in started:
        one.process.kill()
        one.process.wait()
