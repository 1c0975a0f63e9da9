"""``lakebound validate`` with a stand-in for the application."""

from __future__ import annotations

import os
import signal
import sys
import threading

import pytest
import yaml
from tests.support.streams.command_line import answer, lakebound, settings  # noqa: F401
from tests.support.waiting import wait_until

from lakebound.control.folder import ControlFolder, write_json
from lakebound.inspection.validation import submission
from lakebound.inspection.validation.planning import DueTable
from lakebound.inspection.validation.submission import ValidationOrders
from lakebound.settings import Settings

# Says what the real one says; how it ends stands in behaviour.json.
APPLICATION = """
import json, os, signal, sys, threading, time
from lakebound.control.findings import Severity
from lakebound.inspection.validation.report_file import write_report
from lakebound.inspection.validation import submission
from lakebound.inspection.validation.planning import DueTable
from lakebound.inspection.validation.submission import ValidationOrders
from lakebound.inspection.validation.verdict import ExpectationResult, ValidatedRange, ValidationReport
orders = ValidationOrders.model_validate_json(sys.argv[1])
behaviour = json.loads((orders.control.folder / "behaviour.json").read_text())
asked = threading.Event()
signal.signal(signal.SIGTERM, lambda *_: asked.set())
print("INFO something for the log", flush=True)
print("INFO lakebound_spark.validate.application: validate: delta:lake.orders: 4..9", flush=True)
if behaviour.get("until_asked"):
    (orders.control.folder / "ready").touch()
    asked.wait(30)
if behaviour.get("die"):
    os.kill(os.getpid(), signal.SIGKILL)
failing = behaviour.get("failing", 0)
result = ExpectationResult(label="a total", severity=Severity.WARNING, passed=not failing, checked=60, unexpected=failing,
                           samples=("orders/0:7",) if failing else ())
found = ValidatedRange(claim="c", run_id=orders.app_id, table="delta:lake.orders", positions=((4, 9),), first="4", last="9",
                       commits=6, rows=60, at=time.time(), results=(result,))
asked_for = orders.by_hand
write_report(orders.control, ValidationReport(pipeline="orders", run_id=orders.app_id, started_at=1.0, ended_at=2.0,
             ranges=() if behaviour.get("nothing") else (found,), problems=(str(asked_for),) if asked_for else ()))
"""
RUN = ("validate", "orders")


@pytest.fixture
def control(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> ControlFolder:  # noqa: F811
    def command(orders: ValidationOrders, _: Settings) -> list[str]:
        return [sys.executable, "-c", APPLICATION, orders.model_dump_json(by_alias=True)]

    monkeypatch.setattr("lakebound.inspection.validation.submission.validation_command", command)
    expectations = settings.pipelines.parent / "expectations"
    expectations.mkdir()
    expected = {"pipeline": "orders", "expectations": [{"expect": "rows_to_satisfy", "name": "a total", "rule": "total > 0"}]}
    (expectations / "orders.yaml").write_text(yaml.safe_dump(expected))
    folder = ControlFolder(settings.home, "orders")
    behave(folder)
    return folder


def behave(control: ControlFolder, **behaviour: object) -> None:
    write_json(control.folder / "behaviour.json", behaviour)


def test_it_says_what_it_does_and_what_holds(control: ControlFolder) -> None:
    done = lakebound(*RUN)
    assert "validate: delta:lake.orders: 4..9" in done.stderr.splitlines() and "something for the log" not in done.stderr
    assert "60 rows, 1 of 1 expectations hold" in done.stdout
    assert answer(*RUN)["ranges"][0]["last"] == "9"
    behave(control, nothing=True)
    assert "nothing is due" in lakebound(*RUN).stdout


def test_a_person_who_waits_is_told_what_is_due_and_gets_a_share_of_the_cores(
    control: ControlFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    due = DueTable(table="delta:lake.orders", first="4", last="9", commits=6, rows=4_000, expectations=1)
    monkeypatch.setattr("lakebound.inspection.validation.planning.plan_validation", lambda spec, places, file: [due])
    seen: list[ValidationOrders] = []
    command = submission.validation_command

    def watched(orders: ValidationOrders, places: Settings) -> list[str]:
        seen.append(orders)
        return command(orders, places)

    monkeypatch.setattr(submission, "validation_command", watched)
    said = lakebound(*RUN).stderr
    assert "validate: delta:lake.orders: 4,000 rows of 6 commits are due" in said and "validate: it took" in said
    assert [(orders.rows, orders.is_waited_for) for orders in seen] == [(4_000, True)]


def test_what_does_not_hold_is_exit_code_2_with_its_rows(control: ControlFolder) -> None:
    behave(control, failing=3)
    said = lakebound(*RUN, code=2).stdout
    assert "warning: a total: 3 of 60 rows are not as expected (orders/0:7)" in said


def test_what_is_asked_for_by_hand_reaches_the_application(control: ControlFolder) -> None:
    said = lakebound(*RUN, "--table", "delta:lake.orders", "--from", "4", "--to", "9").stdout
    assert "delta:lake.orders" in said and "first='4' last='9'" in said
    assert "--table" in lakebound(*RUN, "--from", "4", code=2).output


def test_a_run_that_dies_says_where_its_log_is(control: ControlFolder) -> None:
    behave(control, die=True)
    said = lakebound(*RUN, code=128 + signal.SIGKILL).stderr
    assert "ended without a report" in said and str(control.folder / "logs") in said


def test_ctrl_c_ends_it_after_the_range_in_hand(control: ControlFolder) -> None:
    behave(control, until_asked=True)

    def interrupt() -> None:
        wait_until(lambda: (control.folder / "ready").exists(), 30, "the application")
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    done = lakebound(*RUN)
    thread.join()
    assert "ending after this range" in done.stderr and "1 of 1" in done.stdout


def test_without_a_file_of_expectations_it_says_where_it_would_be(settings: Settings) -> None:  # noqa: F811
    assert str(settings.pipelines.parent / "expectations") in lakebound(*RUN, code=1).output
