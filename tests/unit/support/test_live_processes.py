"""A process that ends while a test looks at it is no failure of the test."""

from __future__ import annotations

import os
import subprocess

import psutil
import pytest
from tests.support.live_processes import asked_of_each, family_of, kill_all
from tests.support.waiting import HANGS_SECONDS


def test_who_has_ended_is_left_out_and_not_killed_again() -> None:
    sleeper = subprocess.Popen(["sleep", "600"])
    (process,) = family_of(sleeper.pid)
    assert asked_of_each([process], psutil.Process.name) == {process: "sleep"}

    kill_all([process, process])
    sleeper.wait(HANGS_SECONDS)

    kill_all([process])
    with pytest.raises(psutil.NoSuchProcess):
        family_of(sleeper.pid)
    assert asked_of_each([process], psutil.Process.cmdline) == {}
    assert asked_of_each([process], lambda gone: os.getsid(gone.pid)) == {}
