"""Starting an application that a command then follows."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from lakebound.cli.output import say
from lakebound.cli.signals import on_stop_signals
from lakebound.errors import SubmitFailedError
from lakebound.settings import Settings

if TYPE_CHECKING:
    from lakebound.control.submission import Submission

POLL_SECONDS = 0.2


def start(command: list[str], log: Path, folder: Path, pipeline: str, settings: Settings) -> subprocess.Popen[bytes]:
    """Start a command in a session of its own, so that Ctrl-C reaches only who started it; its output goes into the log.

    Raises:
        SubmitFailedError: It cannot be started.
    """
    from lakebound.landing.spark_command import spark_environment

    log.parent.mkdir(parents=True, exist_ok=True)
    try:
        with log.open("ab") as output:
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=folder,
                env=spark_environment(settings),
                start_new_session=True,
            )
    except OSError as exc:
        raise SubmitFailedError(pipeline, f"{command[0]}: {exc.strerror}") from exc


def submission_of(process: subprocess.Popen[bytes], app_id: str, log: Path) -> Submission:
    """Return the record by which a started application can be ended by force."""
    from lakebound.control.process_identity import identity_of
    from lakebound.control.submission import Submission

    return Submission(app_id=app_id, log=log).led_by(identity_of(process.pid))


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
        say(f"{progress}ending {ending} (nothing is lost, another run does the rest)")
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
