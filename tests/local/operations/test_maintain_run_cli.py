"""``lakebound maintain --run`` with a stand-in for the application."""

from __future__ import annotations

import os
import signal
import sys
import threading
from itertools import pairwise

import pytest
from tests.support.streams.command_line import answer, lakebound, settings  # noqa: F401
from tests.support.waiting import wait_until

from lakebound.control.folder import ControlFolder, write_json
from lakebound.landing import background
from lakebound.operations.maintenance.submission import MaintenanceOrders, maintenance_command, maintenance_orders
from lakebound.settings import Settings

# Says what the real one says; how it ends stands in behaviour.json.
APPLICATION = """
import json, os, signal, sys, threading, time
from lakebound.operations.maintenance.past_reading import record_run
from lakebound.operations.maintenance.steps import CheckpointLog, RunReport, StepReport
from lakebound.operations.maintenance.submission import MaintenanceOrders
orders = MaintenanceOrders.model_validate_json(sys.argv[1])
behaviour = json.loads((orders.control.folder / "behaviour.json").read_text())
asked = threading.Event()
signal.signal(signal.SIGTERM, lambda *_: asked.set())
print("INFO something for the log", "INFO maintain: delta:lake.orders: checkpoint_log: done", sep="\\n", flush=True)
if behaviour.get("until_asked"):
    (orders.control.folder / "ready").touch()
    asked.wait(30)
if behaviour.get("die"):
    os.kill(os.getpid(), signal.SIGKILL)
step = CheckpointLog(table="delta:lake.orders", reason="it is due")
outcome = behaviour.get("outcome", "done")
done = StepReport(step=step, outcome=outcome, files_before=9, files_after=1, seconds=1.5, problem=behaviour.get("problem", ""))
record_run(orders.control, RunReport(pipeline="orders", run_id=orders.app_id, started_at_ms=1, ended_at_ms=2001, steps=(done,)))
sys.exit(1 if outcome == "failed" else 0)
"""
RUN = ("maintain", "orders", "--run")


@pytest.fixture
def control(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> ControlFolder:  # noqa: F811
    def command(orders: MaintenanceOrders, _: Settings) -> list[str]:
        return [sys.executable, "-c", APPLICATION, orders.model_dump_json(by_alias=True)]

    monkeypatch.setattr("lakebound.operations.maintenance.submission.maintenance_command", command)
    folder = ControlFolder(settings.home, "orders")
    behave(folder)
    return folder


def behave(control: ControlFolder, **behaviour: object) -> None:
    write_json(control.folder / "behaviour.json", behaviour)


def test_progress_is_shown_while_it_runs_and_the_report_at_its_end(control: ControlFolder) -> None:
    done = lakebound(*RUN)
    assert "maintain: delta:lake.orders: checkpoint_log: done" in done.stderr and "something for the log" not in done.stderr
    assert "9 → 1" in done.stdout and "pipeline orders: 1 done; 2.0 s" in done.stdout
    assert answer(*RUN)["steps"][0]["files_before"] == 9


def test_a_step_that_failed_is_told_with_its_sentence(control: ControlFolder) -> None:
    behave(control, outcome="failed", problem="its log is not cleaned: no checkpoint")
    said = lakebound(*RUN, code=1).stdout
    assert "delta:lake.orders: checkpoint_log: its log is not cleaned: no checkpoint" in said
    behave(control, outcome="lost", problem="the stream was faster")
    assert "1 lost" in lakebound(*RUN).stdout


def test_a_run_that_dies_says_where_its_log_is(control: ControlFolder) -> None:
    behave(control, die=True)
    said = lakebound(*RUN, code=128 + signal.SIGKILL).stderr
    assert "ended without a report" in said and str(control.folder / "logs") in said


def test_ctrl_c_ends_it_after_the_step_in_hand(control: ControlFolder) -> None:
    behave(control, until_asked=True)

    def interrupt() -> None:
        wait_until(lambda: (control.folder / "ready").exists(), 30, "the application")
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    done = lakebound(*RUN)
    thread.join()
    assert "ending after this step" in done.stderr and "1 done" in done.stdout


def test_what_is_wanted_has_to_be_said(control: ControlFolder) -> None:
    assert "--run" in lakebound("maintain", "orders", code=2).output
    assert "--run" in lakebound("maintain", "orders", "--run", "--plan", code=2).output
    assert "--table" in lakebound(*RUN, "--table", "delta:lake.orders", code=2).output


def test_the_command_is_small_and_has_the_lowest_priority(settings: Settings) -> None:  # noqa: F811
    from lakebound.spec.load import load_pipeline

    command = maintenance_command(maintenance_orders(load_pipeline("orders", settings), settings, "run-1"), settings)
    assert background.__file__ in command[: command.index("--master")]
    options = dict(pairwise(command))
    assert (options["--master"], options["--driver-memory"]) == ("local[1]", "1g")
    assert f"spark.sql.catalog.ice.uri=jdbc:sqlite:{settings.warehouse}/iceberg/catalog.db" in command
    assert not any("RawLocalFileSystem" in argument for argument in command), "Iceberg asks it for its scheme"
    assert MaintenanceOrders.model_validate_json(command[-1]).app_id == "run-1"
