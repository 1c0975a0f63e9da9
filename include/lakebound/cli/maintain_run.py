"""The part of ``lakebound maintain`` that runs: the maintenance application in the foreground, line by line."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from lakebound.cli import foreground
from lakebound.cli.output import duration, number, print_json, print_rows, say, show

if TYPE_CHECKING:
    from lakebound.operations.maintenance.steps import RunReport
    from lakebound.settings import Settings
    from lakebound.spec.pipeline import PipelineSpec

BY = "lakebound maintain"


def run_maintenance(spec: PipelineSpec, settings: Settings, *, json: bool) -> int:
    """Run it to its end, print what it did, and return the exit code: 0, or 1 where a step failed or the run did.

    Ctrl-C ends it after the step in hand, a second one at once: whatever was committed stays, and another run does the rest.
    """
    from lakebound.control.submission import app_id_for
    from lakebound.landing.local_launch import launch_beside
    from lakebound.operations.maintenance.past_reading import read_run
    from lakebound.operations.maintenance.submission import PROGRESS, maintenance_command, maintenance_orders

    run_id = f"maintain-{app_id_for(spec.pipeline, 0, f'{BY}/{os.getpid()}/{time.time_ns()}')}"
    orders = maintenance_orders(spec, settings, run_id, is_waited_for=True)
    submission, process = launch_beside(maintenance_command(orders, settings), orders, settings)
    say(f"maintain: {run_id}; log: {submission.log}; Ctrl-C ends it after the current step")
    code = foreground.follow(process, submission, PROGRESS, "after this step; press Ctrl-C again to kill it")
    report = read_run(orders.control, run_id)
    if report is None:
        say(
            f"maintain: {run_id} ended without a report (exit code {code}). Read its log, then run the command again. Log: "
            f"{submission.log}"
        )
        return code or 1
    if json:
        print_json(report.model_dump(mode="json"))
    else:
        _print(report)
    return code


def _print(report: RunReport) -> None:
    rows = [
        (
            step.step.table,
            step.step.kind,
            step.outcome,
            f"{number(step.files_before)} → {number(step.files_after)}" if step.files_before else "-",
            number(step.bytes_rewritten),
            number(step.bytes_removed),
            number(step.conflicts),
            duration(step.seconds),
        )
        for step in report.steps
    ]
    headers = ("TABLE", "STEP", "OUTCOME", "FILES", "REWRITTEN", "REMOVED", "CONFLICTS", "TIME")
    if rows:
        print_rows(headers, rows, right=headers[3:])
    for step in report.steps:
        if step.problem:
            show(f"{step.step.table}: {step.step.kind}: {step.problem}")
    for warning in report.warnings:
        show(f"warning: {warning}")
    outcomes = [step.outcome for step in report.steps]
    counts = ", ".join(f"{outcomes.count(outcome)} {outcome}" for outcome in dict.fromkeys(outcomes))
    took = duration((report.ended_at_ms - report.started_at_ms) / 1000)
    show(f"pipeline {report.pipeline}: {counts or 'nothing was due'}; {took}")
