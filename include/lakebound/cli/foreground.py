"""Follows an application that a command has started, until it has ended."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TextIO

from lakebound.cli.output import say
from lakebound.cli.signals import on_stop_signals

if TYPE_CHECKING:
    from lakebound.control.submission import Submission

POLL_SECONDS = 0.2


def watch(
    process: subprocess.Popen[bytes], submission: Submission, look: Callable[[], None], ask_to_end: Callable[[], None]
) -> int:
    """Return an application's exit code when it has ended; the second Ctrl-C ends it at once.

    Args:
        process: The application.
        submission: Its record.
        look: Is called again and again, and once after its end.
        ask_to_end: Is called at the first Ctrl-C.
    """
    from lakebound.control.applications import kill_leftovers

    asked, done = 0, 0

    def ask(requests: int) -> None:
        nonlocal asked
        asked = requests

    with on_stop_signals(ask):
        while True:
            code = process.poll()
            look()
            if code is not None:
                return code
            if asked > done:
                done += 1
                ask_to_end() if done == 1 else kill_leftovers(submission)
            time.sleep(POLL_SECONDS)


def follow(process: subprocess.Popen[bytes], submission: Submission, progress: str, ending: str) -> int:
    """Say what an application's log says of its progress until it has ended; return its exit code.

    Args:
        process: The application.
        submission: Its record, with its log.
        progress: What lines of the log begin with that are meant for a person.
        ending: When it will have ended, once it was asked to, and what another Ctrl-C does.
    """
    rest = ""

    def look() -> None:
        nonlocal rest
        rest = _say_progress(log, rest, progress)

    def ask_to_end() -> None:
        say(f"{progress}ending {ending} (nothing is lost; another run does the rest)")
        process.terminate()

    assert submission.log is not None
    with submission.log.open(errors="replace") as log:
        code = watch(process, submission, look, ask_to_end)
    return 128 - code if code < 0 else code


def _say_progress(log: TextIO, rest: str, progress: str) -> str:
    """Say what is new in the log and meant for a person; return a line that has not ended yet."""
    *lines, rest = (rest + log.read()).split("\n")
    for line in lines:
        _, mark, text = line.partition(progress)
        if mark:
            # The name of the logger, which stands before the text, may end in the same word.
            say(f"{progress}{text.removeprefix(progress)}")
    return rest
