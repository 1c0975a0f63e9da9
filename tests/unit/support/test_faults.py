from __future__ import annotations

import os
import signal
import subprocess
import sys

import psutil
import pytest
from tests.support.waiting import wait_until

from lakebound import faults


@pytest.fixture
def rules(monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def]
    def set_rules(text: str) -> None:
        monkeypatch.setenv("LAKEBOUND_FAULTS", text)
        faults._rules.cache_clear()
        faults._seen.clear()

    yield set_rules
    monkeypatch.delenv("LAKEBOUND_FAULTS")
    faults._rules.cache_clear()
    faults._seen.clear()


def test_a_rule_acts_the_nth_time_its_point_is_reached(rules) -> None:  # type: ignore[no-untyped-def]
    rules("fail@after_commit/delta#2")
    faults.reach("after_commit", "delta")
    faults.reach("after_commit", "iceberg")
    with pytest.raises(faults.InjectedFaultError, match="after_commit/delta"):
        faults.reach("after_commit", "delta")
    faults.reach("after_commit", "delta")


def test_a_rule_without_detail_counts_every_detail(rules) -> None:  # type: ignore[no-untyped-def]
    rules("fail@before_commit#2")
    faults.reach("before_commit", "delta")
    with pytest.raises(faults.InjectedFaultError):
        faults.reach("before_commit", "iceberg")


@pytest.mark.parametrize("text", ["kill@nowhere", "explode@after_commit", "kill", "kill@after_commit#x"])
def test_a_rule_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="ACTION@POINT"):
        faults.parse(text)


_STOPPED_IN_A_THREAD = """
import os, threading
from lakebound import faults

def commit():
    faults.reach("before_commit")
    os.write(1, b"went on")

thread = threading.Thread(target=commit)
thread.start()
thread.join()
"""


@pytest.mark.parametrize("attempt", range(3))
def test_a_thread_that_stops_the_application_goes_no_further(attempt: int) -> None:
    """The signal went to the process: in nine of ten attempts another thread took it, and this one passed the point."""
    environment = {**os.environ, "LAKEBOUND_FAULTS": "stop@before_commit"}
    with subprocess.Popen(
        [sys.executable, "-c", _STOPPED_IN_A_THREAD], stdout=subprocess.PIPE, env=environment, start_new_session=True
    ) as child:
        try:
            assert child.stdout is not None
            wait_until(lambda: psutil.Process(child.pid).status() == psutil.STATUS_STOPPED, 30, "SIGSTOP")
            os.set_blocking(child.stdout.fileno(), False)
            assert child.stdout.read() is None
            os.killpg(child.pid, signal.SIGCONT)
            os.set_blocking(child.stdout.fileno(), True)
            assert child.stdout.read() == b"went on"
        finally:
            os.killpg(child.pid, signal.SIGKILL)
