"""A command that goes behind everything else: its priority, its session's share, its process, its exit code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.support.waiting import HANGS_SECONDS

from lakebound.landing import background
from lakebound.landing.batch_command import behind_everything

SHARE = Path("/proc/self/autogroup")
LOOK = """
import json, os
share = open("/proc/self/autogroup").read() if os.path.exists("/proc/self/autogroup") else ""
print(json.dumps({"pid": os.getpid(), "session": os.getsid(0), "nice": os.nice(0), "share": share,
  "policy": getattr(os, "sched_getscheduler", lambda _: None)(0)}))
"""


def look(**options: Any) -> tuple[int, dict[str, Any]]:
    """Return the process id of what was started, and what the command saw of itself."""
    command = behind_everything([sys.executable, "-c", LOOK])
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **options)
    return process.pid, json.loads(process.communicate(timeout=HANGS_SECONDS)[0])


@pytest.mark.parametrize("leads", [False, True])
def test_it_is_the_last_in_line_in_a_session_of_its_own(leads: bool) -> None:
    pid, seen = look(start_new_session=leads)
    assert (seen["pid"], seen["session"], seen["nice"]) == (pid, pid, background.LOWEST)
    assert seen["policy"] == getattr(os, "SCHED_IDLE", None)
    if SHARE.exists():
        assert seen["share"].split()[-2:] == ["nice", "19"]


def test_the_session_of_who_starts_it_keeps_its_share() -> None:
    before = SHARE.read_text() if SHARE.exists() else ""
    _, seen = look(process_group=0)
    assert seen["session"] == os.getsid(0), "a leader of a group cannot have a session of its own"
    assert (SHARE.read_text() if SHARE.exists() else "") == before == seen["share"]


def test_the_exit_code_is_the_commands() -> None:
    assert subprocess.run(behind_everything([sys.executable, "-c", "raise SystemExit(3)"]), check=False).returncode == 3
    missing = subprocess.run(behind_everything(["/no/such/command"]), capture_output=True, text=True, check=False)
    assert (missing.returncode, missing.stderr) == (1, "/no/such/command: No such file or directory\n")


def test_an_application_lowers_its_own_threads_where_the_system_lets_it() -> None:
    code = f"{LOOK.strip().splitlines()[0]}\nfrom lakebound_spark.priority import lower_priority\nlower_priority()\n{LOOK}"
    seen = json.loads(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
    assert (seen["nice"], seen["policy"]) == (background.LOWEST, getattr(os, "SCHED_IDLE", None))
