"""Starts an application that works beside the stream for a command, and follows it to its end."""

from __future__ import annotations

import subprocess
import time
from typing import TYPE_CHECKING

from lakebound.cli import foreground
from lakebound.cli.output import say
from lakebound.cli.signals import on_stop_signals

if TYPE_CHECKING:
    from lakebound.run_spec import RunSpec
    from lakebound.settings import Settings
    from lakebound.submission import Submission

POLL_SECONDS = 0.2


def start_guest(orders: RunSpec, settings: Settings, application: str) -> tuple[subprocess.Popen[bytes], Submission]:
    """Start the application in a session of its own, so that Ctrl-C reaches this command only.

    Raises:
        SubmitFailedError: It cannot be started.
    """
    import psutil

    from lakebound.submission import Submission
    from lakebound.submit import spark_submit_command

    log = orders.control.log(orders.app_id)
    command = spark_submit_command(orders, settings, application=application)
    process = foreground.start(command, log, log.parent, orders.spec.pipeline, settings)
    started_at = psutil.Process(process.pid).create_time()
    return process, Submission(app_id=orders.app_id, pid=process.pid, pid_started_at=started_at, log=log)


def follow_guest(process: subprocess.Popen[bytes], orders: RunSpec, submission: Submission, what: str, *, by: str) -> int:
    """Say how far it is until it has ended; return its exit code.

    Args:
        process: As ``start_guest`` gave it.
        orders: Its orders.
        submission: Its record.
        what: It is called so.
        by: Who asks it to end.
    """
    from lakebound.control_plane import kill_leftovers
    from lakebound.desired import request_stop
    from lakebound.replay.orders import read_result

    asked, done, told = 0, 0, 0

    def ask(requests: int) -> None:
        nonlocal asked
        asked = requests

    with on_stop_signals(ask):
        while True:
            code = process.poll()
            result = read_result(orders.control, orders.app_id)
            if result is not None and result.chunks_done > told:
                told = result.chunks_done
                say(f"{what}: batch {told} of {result.chunks}; {result.read:,} records read")
            if code is not None:
                return code
            if asked > done:
                done += 1
                if done == 1:
                    say(f"{what}: ending after this batch; Ctrl-C again kills it (what is landed stays)")
                    request_stop(orders.control, orders.app_id, reason="Ctrl-C", by=by)
                else:
                    kill_leftovers(submission)
            time.sleep(POLL_SECONDS)
