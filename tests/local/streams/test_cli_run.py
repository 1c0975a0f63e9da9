"""``lakebound run`` with a stand-in for the application: its log, its exit code, Ctrl-C, and what Airflow sees of it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest
from tests.support.streams.stand_ins import FAKE_APPS, settings_fixture  # noqa: F401
from tests.support.waiting import wait_until

from lakebound.control.applications import living_submission
from lakebound.control.desired import change_desired, read_desired
from lakebound.control.folder import ControlFolder, write_json
from lakebound.control.progress import read_outcome, read_progress
from lakebound.control.submission import process_is_alive, read_submission
from lakebound.settings import Settings

# `lakebound run`, but the application is started by Python instead of spark-submit.
COMMAND = f"""
import sys
from lakebound.landing import local_launch
from lakebound.cli import app

def command(run_spec, settings, *, ui_port):
    return [sys.executable, {str(FAKE_APPS / "ingest_stream.py")!r}, "--run-spec", run_spec.model_dump_json(by_alias=True)]

local_launch.spark_submit_command = command
app(sys.argv[1:])
"""
DEADLINE_SECONDS = 180.0


@pytest.fixture
def control(settings: Settings) -> ControlFolder:
    return ControlFolder(settings.home, "orders")


def start(*arguments: str, before: tuple[str, ...] = ()) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", COMMAND, *before, "run", "orders", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=DEADLINE_SECONDS)
    return process.returncode, out, err


def wait_running(control: ControlFolder) -> None:
    wait_until(lambda: read_progress(control) is not None, DEADLINE_SECONDS, "the application")


def test_a_run_that_completes(control: ControlFolder) -> None:
    write_json(control.folder / "behaviour.json", {"complete_after_seconds": 0.1})
    code, out, err = finish(start())
    assert code == 0
    assert "fake application orders-g0-" in out and "completed: nothing more to read" in out
    assert "; log:" in err
    submission = read_submission(control)
    assert submission is not None and submission.owner is None and submission.log is not None
    assert "completed: nothing more to read" in submission.log.read_text()


def test_a_run_says_what_became_of_the_records(control: ControlFolder) -> None:
    counts = {"records": 1003, "filtered": 2, "quarantined": 1, "rows": {"delta:lake.orders": 1200}}
    write_json(control.folder / "behaviour.json", {"complete_after_seconds": 0.1, "counts": counts})
    _, out, _ = finish(start())
    assert out.splitlines()[-1] == (
        "since its start: 1,003 records read: 1,000 landed (1,200 rows in delta:lake.orders), 2 filtered, 1 quarantined"
    )


def test_a_refusal_is_a_sentence_and_its_traceback_is_in_the_log(control: ControlFolder) -> None:
    write_json(control.folder / "behaviour.json", {"refuse": "the topic was recreated"})
    code, out, _ = finish(start())
    assert code == 1 and out.splitlines()[1:] == ["refused: the topic was recreated"]
    submission = read_submission(control)
    assert submission is not None and submission.log is not None
    assert "Traceback" in submission.log.read_text()
    _, out, _ = finish(start(before=("--debug",)))
    assert "Traceback" in out and "refused: the topic was recreated" in out


def test_a_traced_run_says_where_the_time_went_and_draws_it(control: ControlFolder) -> None:
    write_json(control.folder / "behaviour.json", {"complete_after_seconds": 0.1})
    code, _, err = finish(start("--trace"))
    assert code == 0 and "addBatch                         mean     50.0 ms" in err
    [picture] = control.folder.glob("logs/*.trace.svg")
    assert "addBatch" in picture.read_text()
    assert str(picture) in err


def test_a_run_that_fails_gives_its_exit_code_and_its_outcome_as_json(control: ControlFolder) -> None:
    write_json(control.folder / "behaviour.json", {"fail_after_seconds": 0.1})
    code, out, err = finish(start("--json"))
    body = json.loads(out)
    assert code == body["exit_code"] == 1
    assert (body["outcome"]["verdict"], body["outcome"]["reason"]) == ("failed", "told to fail")
    assert "told to fail" in err, "the log goes to stderr"


def test_a_run_that_dies_without_a_word(control: ControlFolder) -> None:
    write_json(control.folder / "behaviour.json", {"die_after_seconds": 0.1})
    code, _, err = finish(start())
    assert code == 9 and "died without an outcome (exit code 9)" in err


@pytest.mark.parametrize("request_to_stop", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_it_gracefully(control: ControlFolder, request_to_stop: signal.Signals) -> None:
    process = start()
    wait_running(control)
    process.send_signal(request_to_stop)
    code, out, _ = finish(process)
    assert code == 0 and "stopped: asked to stop" in out
    submission = read_submission(control)
    assert submission is not None and process_is_alive(submission) is False
    outcome = read_outcome(control, submission.app_id)
    assert outcome is not None and outcome.verdict == "stopped"
    assert read_desired(control).state == "running", "the request stays"


def test_a_second_signal_kills_it(control: ControlFolder) -> None:
    process = start()
    wait_running(control)
    submission = read_submission(control)
    assert submission is not None and submission.pid is not None
    os.kill(submission.pid, signal.SIGSTOP)
    process.send_signal(signal.SIGINT)
    wait_until(lambda: control.stop_marker(submission.app_id).exists(), DEADLINE_SECONDS, "the request")
    process.send_signal(signal.SIGINT)
    code, _, err = finish(process)
    assert code == 128 + signal.SIGKILL and "killing the application" in err


def test_a_run_that_is_killed_leaves_an_application_that_is_known(control: ControlFolder) -> None:
    process = start()
    wait_running(control)
    process.kill()
    finish(process)
    living = living_submission(control)
    assert living is not None and living.owner is None


def test_no_second_application_is_started(control: ControlFolder) -> None:
    first = start()
    wait_running(control)
    code, out, err = finish(start())
    assert code == 1 and out == "" and "is already running; stop it first" in err
    first.send_signal(signal.SIGINT)
    assert finish(first)[0] == 0


def test_a_held_pipeline_is_refused_and_a_stopped_one_is_started(control: ControlFolder) -> None:
    change_desired(control, "held", reason="audit")
    code, _, err = finish(start())
    assert code == 1 and "held (audit)" in err
    change_desired(control, "stopped")
    write_json(control.folder / "behaviour.json", {"complete_after_seconds": 0.1})
    assert finish(start())[0] == 0
    assert read_desired(control).state == "running"


def test_a_wrong_freshness_is_wrong_usage(control: ControlFolder) -> None:
    code, _, err = finish(start("--freshness", "soon"))
    assert code == 2 and "available_now" in err
    assert read_submission(control) is None
