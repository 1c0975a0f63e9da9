"""A Python that is forked behaves as one that was started, as far as the tests that use it depend on it."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest
from tests.support.forked_python import ForkedPython, run_forked
from tests.support.waiting import HANGS_SECONDS, wait_until

ENVIRONMENT = {"PATH": os.defpath, "NAME": "value"}
SAYS = """
import atexit, os, sys, threading, time
assert __name__ == "__main__" and sys.argv[1:] == ["one", "two"]
assert dict(os.environ) == {"PATH": os.defpath, "NAME": "value"}
assert sys.stdin.read() == "" and os.getsid(0) == os.getpid()
assert "lakebound_spark.stream.application" in sys.modules, "what it is for"
import beside
atexit.register(print, "at the end")
threading.Thread(target=lambda: (time.sleep(0.2), print("the thread"))).start()
print("first", beside.WHERE)
sys.exit(3)
"""


def program(folder: Path, text: str) -> str:
    file = folder / "program.py"
    file.write_text(text)
    return str(file)


def test_it_is_the_program_with_its_arguments_and_variables_alone_and_ends_as_python_does(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("WHERE = 'beside it'")
    log = tmp_path / "log"
    code = run_forked([program(tmp_path, SAYS), "one", "two"], ENVIRONMENT, log, timeout_seconds=60)
    assert (code, log.read_text().splitlines()) == (3, ["first beside it", "the thread", "at the end"])


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("print('good')", 0, "good"),
        ("raise SystemExit('bad')", 1, "bad"),
        ("raise ValueError('worse')", 1, "ValueError: worse"),
    ],
)
def test_its_exit_code_is_the_programs(text: str, code: int, said: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert run_forked([program(tmp_path, text)], ENVIRONMENT, log, timeout_seconds=60) == code
    assert said in log.read_text()


def test_its_group_can_be_killed_and_is_seen_to_be(tmp_path: Path) -> None:
    text = "import subprocess; child = subprocess.Popen(['sleep', '600']); print(child.pid, flush=True); child.wait()"
    log = tmp_path / "log"
    process = ForkedPython([program(tmp_path, text)], ENVIRONMENT, log)
    child = int(wait_until(lambda: log.exists() and log.read_text().strip(), 30, "its child"))
    assert process.poll() is None and os.getpgid(child) == process.pid
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    assert (process.wait(HANGS_SECONDS), process.returncode) == (-signal.SIGKILL, -signal.SIGKILL)


def test_one_that_does_not_end_in_time_is_killed_and_its_words_are_told(tmp_path: Path) -> None:
    text = "import os, time; print(os.getpid(), flush=True); time.sleep(600)"
    with pytest.raises(AssertionError, match=r"did not end within 2 s: [0-9]+") as failed:
        run_forked([program(tmp_path, text)], ENVIRONMENT, tmp_path / "log", timeout_seconds=2)
    with pytest.raises(ProcessLookupError):
        os.kill(int(str(failed.value).rpartition(" ")[2]), 0)
