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

POLL_SECONDS = 0.1


def watch(
    process: subprocess.Popen[bytes],
    submission: Submission,
    mark: str,
    look: Callable[[], None],
    ask_to_end: Callable[[], None],
) -> int:
    """Return an application's exit code (negative: the signal) when it has ended; the second Ctrl-C kills it.

    Args:
        process: The application.
        submission: Its record.
        mark: The beginning of the command's lines, such as ``run: ``.
        look: Is called several times a second, and once after the application's end.
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
                if done == 1:
                    ask_to_end()
                else:
                    say(f"{mark}killing the application")
                    kill_leftovers(submission)
            time.sleep(POLL_SECONDS)


def shell_code(code: int) -> int:
    """Return an exit code as a shell gives it: 128 and the signal for a process that a signal has ended."""
    return 128 - code if code < 0 else code


def follow(process: subprocess.Popen[bytes], submission: Submission, progress: str, ending: str) -> int:
    """Print the progress lines of an application's log until it has ended; return its exit code, as a shell gives it.

    Args:
        process: The application.
        submission: Its record, with its log.
        progress: The beginning of the lines in the log that are for a person.
        ending: When the application ends after the first Ctrl-C, and what another Ctrl-C does.
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
        return shell_code(watch(process, submission, progress, look, ask_to_end))


def _say_progress(log: TextIO, rest: str, progress: str) -> str:
    """Print the new lines of the log that are for a person; return a line that has not ended yet."""
    *lines, rest = (rest + log.read()).split("\n")
    for line in lines:
        _, mark, text = line.partition(progress)
        if mark:
            # The name of the logger, which stands before the text, may end in the same word.
            say(f"{progress}{text.removeprefix(progress)}")
    return rest
