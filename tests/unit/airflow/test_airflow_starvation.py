"""A run that gets too little of the cores is ended with all that it started."""

from __future__ import annotations

import subprocess
import sys

import psutil
from tests.support.waiting import HANGS_SECONDS

from lakebound_airflow.operators.starvation import ended_if_starved

PARENT = "import subprocess, sys; child = subprocess.Popen(['sleep', '60']); print(child.pid, flush=True); child.wait()"


def test_it_is_ended_with_its_children() -> None:
    asked: list[tuple[float, float]] = []

    def is_starved(cpu_seconds: float, wall_seconds: float) -> bool:
        asked.append((cpu_seconds, wall_seconds))
        return len(asked) == 3

    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        child = psutil.Process(int(process.stdout.readline()))
        with ended_if_starved(lambda: process.pid, is_starved, poll_seconds=0.01) as was_starved:
            assert process.wait(HANGS_SECONDS) != 0
        psutil.wait_procs([child], timeout=HANGS_SECONDS)
    assert was_starved.is_set() and len(asked) == 3
    assert not child.is_running() or child.status() == psutil.STATUS_ZOMBIE
    assert 0 < asked[0][0] and 0 < asked[0][1] < asked[1][1]


def test_one_that_is_not_starved_ends_by_itself_and_one_that_never_started_is_not_looked_for() -> None:
    for pid in (lambda: None, lambda: process.pid):
        with (
            subprocess.Popen([sys.executable, "-c", "pass"]) as process,
            ended_if_starved(pid, lambda cpu, wall: False, poll_seconds=0.01) as was_starved,
        ):
            assert process.wait(HANGS_SECONDS) == 0
        assert not was_starved.is_set()
