"""Runs the doctor's looks in processes of their own, a few side by side: a pipeline that hangs keeps no other from its look."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil

from lakebound.alerts.doctor_findings import SOURCE
from lakebound.control.code_samples import NEW_LOOK_EVERY_SECONDS, is_new
from lakebound.control.findings import read_source
from lakebound.control.folder import ControlFolder
from lakebound.control.progress import readable_progress
from lakebound.settings import Settings

LOOK_SECONDS = 120.0
"""How long the doctor may look at one pipeline."""

LOOK_EVERY_SECONDS = 300.0

_SIDE_BY_SIDE = 4
_MOST_PIPELINES = 50
"""Of one process."""
_START_SECONDS = 60.0
_KILL_SECONDS = 2.0
_MODULE = "lakebound.alerts.doctor_look"


@dataclass(frozen=True)
class LookReport:
    """How a look went.

    Attributes:
        is_late: It did not end within its deadline, and was ended.
        problem: Why it was not possible; None when it was.
    """

    pipeline: str
    is_late: bool = False
    problem: str | None = None


@dataclass(frozen=True)
class _Process:
    handle: subprocess.Popen[str]
    pipelines: tuple[str, ...]
    ends_by: float


def due_looks(settings: Settings, pipelines: Iterable[str], now: float, every_seconds: float = LOOK_EVERY_SECONDS) -> list[str]:
    """Return the pipelines that the doctor has not looked at of late, whoever had it look.

    Args:
        settings: This machine's.
        pipelines: Names of those in question.
        now: Epoch seconds.
        every_seconds: The age from which a look is due again; of new code it is due earlier.
    """
    return [name for name in pipelines if _is_due(ControlFolder(settings.home, name), now, every_seconds)]


def _is_due(control: ControlFolder, now: float, every_seconds: float) -> bool:
    look = read_source(control, SOURCE)
    age = -1.0 if look is None else now - look.at
    if 0 <= age < min(every_seconds, NEW_LOOK_EVERY_SECONDS):
        return False  # However new its code is: its progress need not be read in each round.
    return not 0 <= age < look_every(control, now, every_seconds)


def look_every(control: ControlFolder, now: float, every_seconds: float = LOOK_EVERY_SECONDS) -> float:
    """Return the age, in seconds, from which a look at a pipeline is due again: while its code is new, a minute.

    Args:
        control: State folder of the pipeline.
        now: Epoch seconds.
        every_seconds: Of a pipeline whose code is not new.
    """
    try:
        progress = readable_progress(control)
    except OSError:  # That of one pipeline keeps no other from its look.
        progress = None
    return min(every_seconds, NEW_LOOK_EVERY_SECONDS) if is_new(progress, now) else every_seconds


class DoctorProcesses:
    """The looks that wait or are under way."""

    def __init__(self, settings: Settings, look_seconds: float = LOOK_SECONDS) -> None:
        """Start nothing yet.

        Args:
            settings: This machine's.
            look_seconds: How long one look may take.
        """
        self._settings = settings
        self._look_seconds = look_seconds
        self._waiting: list[str] = []
        self._running: list[_Process] = []

    @property
    def is_idle(self) -> bool:
        """Whether no look waits or is under way."""
        return not self._waiting and not self._running

    def begin(self, pipelines: Iterable[str]) -> None:
        """Have the doctor look at these, but for those whose look waits or is under way."""
        known = {*self._waiting, *(name for process in self._running for name in process.pipelines)}
        self._waiting += [name for name in pipelines if name not in known]
        self._start()

    def reap(self) -> list[LookReport]:
        """Return how the looks went that have ended since the last call; waits for none."""
        reports: list[LookReport] = []
        for process in [one for one in self._running if _has_ended(one)]:
            self._running.remove(process)
            found, rest = _reports(process)
            reports += found
            self._waiting[:0] = rest
        self._start()
        return reports

    def end(self) -> None:
        """End all that is under way at once: a look writes one file, in one step."""
        self._waiting.clear()
        for process in self._running:
            process.handle.kill()
        for process in self._running:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.handle.communicate(timeout=_KILL_SECONDS)
        self._running.clear()

    def _start(self) -> None:
        free = _SIDE_BY_SIDE - len(self._running)
        while self._waiting and free > 0:
            share = min(_MOST_PIPELINES, ceil(len(self._waiting) / free))
            pipelines, self._waiting = tuple(self._waiting[:share]), self._waiting[share:]
            command = [sys.executable, "-m", _MODULE, str(self._look_seconds), *pipelines]
            handle = subprocess.Popen(
                command,
                env=_environment(self._settings),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                text=True,
                start_new_session=True,
            )
            ends_by = time.monotonic() + _START_SECONDS + len(pipelines) * self._look_seconds
            self._running.append(_Process(handle, pipelines, ends_by))
            free -= 1


def _environment(settings: Settings) -> dict[str, str]:
    """Return the environment of a look: the addresses of channels are none of its business."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW_")}
    return {**own, **settings.environment()}


def _has_ended(process: _Process) -> bool:
    if process.handle.poll() is None and time.monotonic() > process.ends_by:
        # The kernel did not end it in time: it may wait for a disk that never answers.
        process.handle.kill()
        return True
    return process.handle.returncode is not None


def _reports(process: _Process) -> tuple[list[LookReport], tuple[str, ...]]:
    """Return how the looks of a process went, and the pipelines that it did not come to."""
    handle = process.handle
    said = handle.stdout.read() if handle.stdout is not None and handle.returncode is not None else ""
    # A library may print something, too.
    reports = [LookReport(**json.loads(line)) for line in said.splitlines() if line.startswith('{"pipeline"')]
    left = process.pipelines[len(reports) :]
    if not left:
        return reports, ()
    if handle.returncode in (None, -signal.SIGALRM):
        return [*reports, LookReport(left[0], is_late=True)], left[1:]
    problem = f"the process of the doctor's look ended with code {handle.returncode}"
    return [*reports, LookReport(left[0], problem=problem)], left[1:]
