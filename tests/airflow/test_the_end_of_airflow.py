"""Airflow loses its main process, and ends whole. It is the last that the tests do to their Airflow, hence the file's name."""

from __future__ import annotations

import os

import psutil
import pytest

from lakebound.alerts.airflow_findings import airflow_findings
from lakebound.control import processes
from lakebound.control.applications import app_is_alive
from lakebound.control.process_identity import is_running
from lakebound.local.airflow_view import airflow_health
from tests.support.airflow.real_stack import Stack
from tests.support.live_processes import asked_of_each, family_of, kill_all, processes_with
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.airflow, pytest.mark.timeout(420)]


def test_an_airflow_without_its_main_process_ends_whole_and_the_streams_go_on(stack: Stack) -> None:
    stream = stack.running("orders")
    for record in stack.triggerers:
        processes.kill(record)
    stack.client.trigger("deaf")
    record = stack.airflow.record or pytest.fail("Airflow was never started")
    (asleep,) = wait_until(lambda: _sleepers(record.pid), 120, "the task that hears no SIGTERM")
    assert os.getsid(asleep.pid) != record.pid, "it left Airflow's session"
    leader, *family = family_of(record.pid)
    leader.kill()
    psutil.wait_procs([leader], 10)
    assert stack.airflow.is_running, "the rest goes on"
    assert_a_dead_scheduler_is_found(stack, family)

    stack.airflow.stop(deadline_seconds=3)

    # What was killed may need a moment to go on a busy machine.
    wait_until(lambda: not any(map(is_running, family)), 10, "the end of Airflow's processes")
    assert processes_with("AIRFLOW_HOME", str(stack.airflow.home)) == []
    assert not stack.airflow.is_running
    assert app_is_alive(stack.control("orders"))
    assert stack.progress("orders").app_id == stream.app_id


def assert_a_dead_scheduler_is_found(stack: Stack, family: list[psutil.Process]) -> None:
    """Airflow itself says so half a minute after its last sign of life."""
    commands = asked_of_each(family, psutil.Process.cmdline)
    schedulers = [process for process, command in commands.items() if is_running(process) and "scheduler" in command]
    assert schedulers
    kill_all(schedulers)
    causes = lambda: {one.cause for one in airflow_findings(airflow_health(stack.settings), 0.0)}  # noqa: E731
    wait_until(lambda: "scheduler" in causes(), 90, "a dead scheduler", poll_seconds=1)
    assert "unreachable" not in causes(), "its API server answers"


def _sleepers(pid: int) -> list[psutil.Process]:
    return [process for process, name in asked_of_each(family_of(pid), psutil.Process.name).items() if name == "sleep"]
