"""A DAG that runs for each complete hour, under a real scheduler, while its finder is killed and the DAG is paused."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lakebound.control.complete_hours import HourSpan, TableHours
from lakebound.control.complete_hours_file import read_complete_hours
from lakebound.ledger.hours import HOUR_MS
from tests.support.airflow.real_stack import Stack
from tests.support.airflow.run_views import xcoms
from tests.support.airflow.stack_folder import HOURS_TABLES, REPOSITORY
from tests.support.streams.hours_writer import TABLE, World
from tests.support.tables.hourly_rows import BEGIN_MS
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.airflow, pytest.mark.timeout(900)]

PIPELINE = "moves"
NUMBERS = {HourSpan().key(BEGIN_MS // HOUR_MS + number): number for number in range(24)}
DEADLINE_SECONDS = 300.0
"""The last step is three runs, one after the other, of tasks that take 15 s each where the machine is busy."""


class Writer:
    """The stand-in of the application, and the clock of its world."""

    def __init__(self, stack: Stack) -> None:
        self._stack = stack
        self.world = World(stack.settings.home / "hours-clock")
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it."""
        home = self._stack.settings.home
        arguments = [str(home), str(home / HOURS_TABLES), PIPELINE, str(self.world.clock)]
        command = [sys.executable, "-m", "tests.support.streams.hours_writer", *arguments]
        with Path(home, "hours-writer.log").open("ab") as log:
            self._process = subprocess.Popen(command, cwd=REPOSITORY, stdout=log, stderr=log)

    def kill(self) -> None:
        """End it by SIGKILL."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    @property
    def state(self) -> TableHours:
        """What it has written."""
        found = read_complete_hours(self._stack.control(PIPELINE))
        return found.tables.get(TABLE.id, TableHours(next_hour=0)) if found is not None else TableHours(next_hour=0)


@pytest.fixture
def writer(stack: Stack) -> Iterator[Writer]:
    """Nothing of it runs at the end, nor do the DAGs."""
    found = Writer(stack)
    yield found
    found.kill()
    for dag_id in ("hourly", f"hours__{PIPELINE}"):
        stack.client.pause(dag_id)


def reports(stack: Stack) -> list[dict[str, Any]]:
    """What the DAG has reported, each with its run."""
    runs = [run for run in stack.client.runs("hourly") if run["state"] == "success"]
    found = [(run, xcoms(stack.client, "hourly", run["dag_run_id"], "report").get("return_value")) for run in runs]
    return [{**report, "run": run} for run, report in found if report]


def reported(stack: Stack) -> Counter[int]:
    """The hours, by number, of which there are reports, and how many."""
    return Counter(NUMBERS[report["hour"]] for report in reports(stack))


def noted(stack: Stack) -> set[int]:
    """The hours that Airflow has announced, and noted so."""
    dag_id = f"hours__{PIPELINE}"
    runs = [run["dag_run_id"] for run in stack.client.runs(dag_id) if run["state"] == "success"]
    due = [xcoms(stack.client, dag_id, run, f"due_delta_{TABLE.name}").get("return_value") for run in runs]
    return {NUMBERS[one["hour"]] for found in due for one in found or []}


def test_a_report_runs_for_each_hour_when_it_is_complete_and_for_those_that_it_missed(stack: Stack, writer: Writer) -> None:
    def wait(condition: Any, what: str) -> None:
        wait_until(condition, DEADLINE_SECONDS, what, poll_seconds=1.0)

    writer.world.set_to(0, 10)
    writer.start()
    wait(lambda: writer.state.next_hour, "the first look")
    writer.world.set_to(2, 20)
    wait(lambda: reported(stack) == Counter([0, 1]), "reports of the hours 0 and 1")
    # The grace of hour 2 is over, and its record waits: it has not landed when the writer is killed.
    writer.world.set_to(3, 7)
    wait(lambda: writer.state.lacking, "what is lacking")
    writer.kill()
    writer.start()
    assert reported(stack) == Counter([0, 1])
    writer.world.set_to(3, 20)
    wait(lambda: reported(stack) == Counter([0, 1, 2]), "a report of hour 2")
    # While the DAG is paused it gets no events: neither those of the hours 3 and 4, nor that of a late row of hour 0.
    stack.client.pause("hourly")
    writer.world.set_to(5, 20)
    wait(lambda: {3, 4} <= noted(stack), "the hours that Airflow announces while nobody listens")
    stack.client.unpause("hourly")
    assert reported(stack) == Counter([0, 1, 2])
    writer.world.set_to(6, 20)
    wait(lambda: reported(stack) == Counter([0, 0, 1, 1, 2, 3, 4, 5]), "hour 5, a late row of hour 1, and what was missed")
    for report in reports(stack):
        number = NUMBERS[report["hour"]]
        assert report["run"]["partition_key"] == report["hour"]
        assert report["begins"] == report["start"], "the run's partition date"
        assert report["rows"] == {"0": [number], "1": [number]} if report["further"] else {"0": [number]}
