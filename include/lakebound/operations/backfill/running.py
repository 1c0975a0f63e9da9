"""Runs a backfill's application beside the stream to its end, for a command as for a DAG: each follows it in its own way."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass

from lakebound.control.desired import read_desired, request_stop
from lakebound.control.folder import ControlFolder
from lakebound.control.replay_result import ReplayResult, Result, read_result
from lakebound.control.submission import Submission, app_id_for
from lakebound.errors import HeldError
from lakebound.landing.local_launch import launch_beside
from lakebound.landing.run_spec import RunSpec
from lakebound.landing.spark_command import spark_submit_command
from lakebound.settings import Settings
from lakebound.spec.pipeline import PipelineSpec


@dataclass(frozen=True)
class RunningBackfill:
    """A backfill's application that was started, in a session of its own: it outlives whoever started it.

    Attributes:
        orders: What it is told.
        submission: Its record, with its log.
        process: The process that was started.
    """

    orders: RunSpec
    submission: Submission
    process: subprocess.Popen[bytes]

    def progress(self) -> ReplayResult | None:
        """Return how far it has got, or None before its first word."""
        return read_result(self.orders.control, self.orders.app_id, ReplayResult)

    def ask_to_end(self, *, reason: str, by: str) -> None:
        """Ask it to end after the current batch; what has landed stays.

        Args:
            reason: Why.
            by: Who asks.
        """
        request_stop(self.orders.control, self.orders.app_id, reason=reason, by=by)


Follow = Callable[[RunningBackfill], int]
"""Waits until the application has ended, and returns its exit code."""


def check_not_held(spec: PipelineSpec, settings: Settings) -> None:
    """Check that the pipeline may get rows.

    Raises:
        HeldError: It is held.
    """
    desired = read_desired(ControlFolder(settings.home, spec.pipeline))
    if desired.state == "held":
        raise HeldError(spec.pipeline, desired.reason)


def new_app_id(kind: str, pipeline: str, by: str) -> str:
    """Return the id of a backfill's application.

    Args:
        kind: With which it begins.
        pipeline: The pipeline.
        by: The command or the task that starts it.
    """
    return f"{kind}-{app_id_for(pipeline, 0, f'{by}/{os.getpid()}/{time.time_ns()}')}"


def run_backfill(orders: RunSpec, settings: Settings, application: str, blank: Result, follow: Follow) -> Result:
    """Run the application to its end on this machine's Spark, and return what it says of itself.

    Args:
        orders: Its orders.
        settings: This machine's settings.
        application: Its entry point.
        blank: The record of an application that has said nothing yet.
        follow: Waits for its end.

    Raises:
        SubmitFailedError: It cannot be started.
    """
    command = spark_submit_command(orders, settings, application=application)
    submission, process = launch_beside(command, orders, settings)
    code = follow(RunningBackfill(orders, submission, process))
    result = read_result(orders.control, orders.app_id, type(blank)) or blank
    if result.state != "running":
        return result
    reason = f"the application died (exit code {code}). Run it again: landed records are skipped. Log: {submission.log}"
    return result.model_copy(update={"state": "failed", "reason": reason})
