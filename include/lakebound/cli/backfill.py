"""Starts a backfill for a command, an application beside the stream, and follows it to its end."""

from __future__ import annotations

import os
import subprocess
import time
from typing import TYPE_CHECKING

from lakebound.cli import foreground
from lakebound.cli.output import say

if TYPE_CHECKING:
    from lakebound.control.replay_result import Result
    from lakebound.control.submission import Submission
    from lakebound.landing.run_spec import RunSpec
    from lakebound.settings import Settings
    from lakebound.spec.pipeline import PipelineSpec


def check_not_held(spec: PipelineSpec, settings: Settings) -> None:
    """Check that the pipeline may get rows.

    Raises:
        HeldError: It is held.
    """
    from lakebound.control.desired import read_desired
    from lakebound.control.folder import ControlFolder
    from lakebound.errors import HeldError

    desired = read_desired(ControlFolder(settings.home, spec.pipeline))
    if desired.state == "held":
        raise HeldError(spec.pipeline, desired.reason)


def new_app_id(kind: str, pipeline: str, by: str) -> str:
    """Return the id of a backfill's application.

    Args:
        kind: With which it begins.
        pipeline: The pipeline.
        by: The command that starts it.
    """
    from lakebound.control.submission import app_id_for

    return f"{kind}-{app_id_for(pipeline, 0, f'{by}/{os.getpid()}/{time.time_ns()}')}"


def run_backfill(orders: RunSpec, settings: Settings, application: str, blank: Result, *, name: str = "replay") -> Result:
    """Run the application to its end, and return what it says of itself.

    Args:
        orders: Its orders.
        settings: This machine's settings.
        application: Its entry point.
        blank: The record of an application that has said nothing yet.
        name: With which the command's lines begin.

    Raises:
        SubmitFailedError: It cannot be started.
    """
    from lakebound.control.person import operating_system_user
    from lakebound.control.replay_result import read_result

    submission, process = _started(orders, settings, application)
    say(f"{name}: {orders.app_id}; log: {submission.log}; Ctrl-C ends it after the current batch")
    code = _followed(process, orders, submission, f"{name}: ", by=operating_system_user())
    result = read_result(orders.control, orders.app_id, type(blank)) or blank
    if result.state != "running":
        return result
    reason = (
        f"the application died (exit code {code}). Run the command again: landed records are skipped. Log: {submission.log}"
    )
    return result.model_copy(update={"state": "failed", "reason": reason})


def _started(orders: RunSpec, settings: Settings, application: str) -> tuple[Submission, subprocess.Popen[bytes]]:
    """Start the application in a session of its own, so that Ctrl-C reaches this command only."""
    from lakebound.landing.local_launch import launch_beside
    from lakebound.landing.spark_command import spark_submit_command

    return launch_beside(spark_submit_command(orders, settings, application=application), orders, settings)


def _followed(process: subprocess.Popen[bytes], orders: RunSpec, submission: Submission, mark: str, *, by: str) -> int:
    """Print its progress until it has ended; return its exit code."""
    from lakebound.control.desired import request_stop
    from lakebound.control.replay_result import ReplayResult, read_result

    told = 0

    def look() -> None:
        nonlocal told
        result = read_result(orders.control, orders.app_id, ReplayResult)
        if result is not None and result.chunks_done > told:
            told = result.chunks_done
            say(f"{mark}batch {told} of {result.chunks}; {result.read:,} records read")

    def ask_to_end() -> None:
        say(f"{mark}ending after this batch; press Ctrl-C again to kill it (landed records stay)")
        request_stop(orders.control, orders.app_id, reason="Ctrl-C", by=by)

    return foreground.watch(process, submission, mark, look, ask_to_end)
