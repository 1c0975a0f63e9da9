"""Starts an application that works beside the stream for a command, and follows it to its end."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from lakebound.cli import foreground
from lakebound.cli.output import say

if TYPE_CHECKING:
    from lakebound.control.submission import Submission
    from lakebound.landing.run_spec import RunSpec
    from lakebound.settings import Settings


def start_guest(orders: RunSpec, settings: Settings, application: str) -> tuple[Submission, subprocess.Popen[bytes]]:
    """Start the application in a session of its own, so that Ctrl-C reaches this command only.

    Raises:
        SubmitFailedError: It cannot be started.
    """
    from lakebound.landing.local_launch import launch_beside
    from lakebound.landing.spark_command import spark_submit_command

    return launch_beside(spark_submit_command(orders, settings, application=application), orders, settings)


def follow_guest(process: subprocess.Popen[bytes], orders: RunSpec, submission: Submission, what: str, *, by: str) -> int:
    """Print its progress until it has ended; return its exit code.

    Args:
        process: As ``start_guest`` gave it.
        orders: Its orders.
        submission: Its record.
        what: It is called so.
        by: Who asks it to end.
    """
    from lakebound.control.desired import request_stop
    from lakebound.control.replay_result import read_result

    told = 0

    def look() -> None:
        nonlocal told
        result = read_result(orders.control, orders.app_id)
        if result is not None and result.chunks_done > told:
            told = result.chunks_done
            say(f"{what}: batch {told} of {result.chunks}; {result.read:,} records read")

    def ask_to_end() -> None:
        say(f"{what}: ending after this batch; press Ctrl-C again to kill it (landed records stay)")
        request_stop(orders.control, orders.app_id, reason="Ctrl-C", by=by)

    return foreground.watch(process, submission, f"{what}: ", look, ask_to_end)
