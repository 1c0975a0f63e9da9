"""How the process of ``lakebound`` ends: printed, with its exit code, and whatever C++ libraries do at the end of a process."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import IO

import pytest
from tests.support.waiting import HANGS_SECONDS

REPOSITORY = Path(__file__).parents[3]

# What stands for a library whose threads abort the process once `exit` destroys its objects.
ABORTS = """
import atexit, ctypes, sys
libc = ctypes.CDLL(None)
libc.__cxa_atexit(ctypes.cast(libc.abort, ctypes.c_void_p), None, None)
sys.argv[0] = "lakebound"
"""


def run(
    *arguments: str, entry: str = "", stdout: int | IO[str] = subprocess.PIPE, before: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run the command as the script that is installed does, or another entry."""
    if not entry:
        scripts = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["scripts"]
        module, _, name = scripts["lakebound"].partition(":")
        entry = f"from {module} import {name}\nsys.exit({name}())"
    code = f"{ABORTS}{before}\n{entry}"
    # As at a user's: what is printed is buffered.
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(
        command, stdout=stdout, stderr=subprocess.PIPE, text=True, check=False, timeout=HANGS_SECONDS, env=buffered
    )


def test_the_stand_in_aborts_a_process_that_ends_as_usual() -> None:
    assert run("--version", entry="from lakebound.cli import app\napp()").returncode == -6


def test_an_answer_is_printed_and_its_exit_code_stays() -> None:
    done = run("--version", before='atexit.register(print, "exit functions ran")')
    version, last = done.stdout.splitlines()
    assert (done.returncode, last, done.stderr) == (0, "exit functions ran", "") and version[0].isdigit()


def test_an_error_keeps_its_sentence_and_its_exit_code() -> None:
    done = run("ledger", "no-such-pipeline")
    assert done.returncode == 1 and done.stderr.startswith("lakebound: there is no pipeline 'no-such-pipeline'")
    assert run("no-such-command").returncode == 2


def test_debug_shows_the_traceback() -> None:
    done = run("--debug", "ledger", "no-such-pipeline")
    assert done.returncode == 1 and "Traceback" in done.stderr and "UnknownPipelineError" in done.stderr


# The command prints nothing there: what is still to be written at the end is an exit function's.
LATE = 'atexit.register(sys.stdout.write, "late")'


@pytest.mark.parametrize(("arguments", "late"), [(("schema",), ""), (("schema", "--write", os.devnull), LATE)])
def test_a_reader_that_has_gone_is_no_abort_and_no_traceback(arguments: tuple[str, ...], late: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = run(*arguments, stdout=writing, before=late)
    finally:
        os.close(writing)
    assert done.returncode == 1 and "Traceback" not in done.stderr and "roken" not in done.stderr


def test_output_that_finds_no_room_at_the_end_is_an_error() -> None:
    with open("/dev/full", "w") as full:
        done = run("schema", "--write", os.devnull, stdout=full, before=LATE)
    assert done.returncode == 1
    assert done.stderr.endswith("lakebound: the output could not be written: No space left on device\n")


def test_a_command_that_was_given_no_output_ends_well() -> None:
    assert run("--version", before="sys.stdout = None").returncode == 0
