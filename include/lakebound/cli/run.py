"""``lakebound run``: one pipeline's application without Airflow, in the foreground or left to itself."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

from lakebound.cli import foreground
from lakebound.cli.output import Json, number, print_json, printable, say, show, wants_debug
from lakebound.cli.shown_log import ShownLog
from lakebound.errors import SubmitFailedError

if TYPE_CHECKING:
    from lakebound.control.desired import Desired
    from lakebound.control.folder import ControlFolder
    from lakebound.control.progress import Outcome
    from lakebound.control.submission import Submission
    from lakebound.landing.run_spec import RunSpec
    from lakebound.settings import Settings

BY = "lakebound run"

Freshness = Annotated[
    str | None,
    typer.Option(help="Replaces the pipeline's freshness: 500ms, 5s, ...; available_now lands the records in Kafka and ends."),
]


Trace = Annotated[
    bool, typer.Option("--trace", help="Record the time of each step of each batch, and draw a timeline at the end.")
]


Detach = Annotated[
    bool, typer.Option("--detach", help="Start the application and return. It continues when the terminal is closed.")
]


def run(
    context: typer.Context,
    pipeline: Annotated[str, typer.Argument(help="Pipeline name.")],
    freshness: Freshness = None,
    trace: Trace = False,
    detach: Detach = False,
    json: Json = False,
) -> None:
    """Run the stream of one pipeline in the foreground until Ctrl-C. A second Ctrl-C kills it.

    At the end it prints how many records it read, and how many of them were landed, filtered and quarantined.

    The exit code is that of the application. The desired state of a stopped pipeline becomes "running"; a held pipeline is
    refused. Airflow sees the application and does not start another one. With --detach, `lakebound stop` ends it, and only
    Airflow starts it again when it ends by itself.
    """
    from lakebound.control.folder import ControlFolder
    from lakebound.control.progress import read_outcome
    from lakebound.control.submission import app_id_for
    from lakebound.landing.run_spec import make_run_spec
    from lakebound.settings import load_settings
    from lakebound.tables.declared import owned_pipeline

    settings = load_settings()
    spec = owned_pipeline(pipeline, settings)
    _check_freshness(freshness)
    control = ControlFolder(settings.home, pipeline)
    desired = _wanted(control)
    if freshness is not None:
        desired = desired.model_copy(update={"freshness": freshness})
    app_id = app_id_for(pipeline, desired.generation, f"{BY}/{os.getpid()}/{time.time_ns()}")
    orders = make_run_spec(spec, settings, desired, app_id).model_copy(update={"trace": trace})
    submission, process = _start(orders, settings)
    said = f"run: {app_id}; log: {submission.log}; Spark UI: {submission.spark_ui or 'off'}"
    if detach:
        say(f"{said}; it continues without this command: lakebound status {pipeline}, lakebound stop {pipeline}")
        if json:
            print_json({"app_id": app_id, "exit_code": None, "outcome": None})
        return
    say(f"{said}; Ctrl-C stops it gracefully")
    shown = ShownLog(everything=wants_debug(context))
    code = _follow(process, control, submission, sys.stderr if json else sys.stdout, shown)
    if trace:
        _draw_trace(control.trace(app_id))
    outcome = read_outcome(control, app_id)
    if json:
        print_json({"app_id": app_id, "exit_code": code, "outcome": outcome.model_dump(mode="json") if outcome else None})
    elif outcome is None:
        say(f"run: {app_id} died without an outcome (exit code {code}). Read its log: {submission.log}")
    elif outcome.verdict != "refused" or outcome.records:
        show(f"since its start: {_counts(outcome)}")
    raise typer.Exit(code)


def _counts(outcome: Outcome) -> str:
    """Return what became of the records that the application read."""
    rows = ", ".join(f"{number(rows)} rows in {table}" for table, rows in sorted(outcome.rows.items()))
    landed = outcome.records - outcome.filtered - outcome.quarantined
    read = f"{number(outcome.records)} record{'' if outcome.records == 1 else 's'} read"
    return (
        f"{read}: {number(landed)} landed{f' ({rows})' if rows else ''}, "
        f"{number(outcome.filtered)} filtered, {number(outcome.quarantined)} quarantined"
    )


def _draw_trace(path: Path) -> None:
    """Say what each step takes per batch, and draw the last batches beside the trace's file."""
    from lakebound.landing.trace import read_spans, step_costs, timeline

    lines = read_spans(path)
    costs = step_costs(lines)
    if not costs:
        say("run: no batch was traced: the first batch of a query is not traced, because it includes compilation")
        return
    for cost in costs:
        say(f"run: {cost.track:>6} {cost.step:<32} mean {cost.mean_ms:8.1f} ms   p95 {cost.p95_ms:8.1f} ms")
    picture = path.with_suffix(".svg")
    picture.write_text(timeline(lines))
    say(f"run: timeline written to {picture}")


def _check_freshness(freshness: str | None) -> None:
    from lakebound.spec.pipeline import parse_freshness

    try:
        if freshness is not None:
            parse_freshness(freshness)
    except ValueError as exc:
        raise typer.BadParameter(str(exc), param_hint="--freshness") from exc


def _wanted(control: ControlFolder) -> Desired:
    """Return the desired state, after making it ``running``.

    Raises:
        HeldError: Somebody holds the pipeline.
    """
    from lakebound.control.desired import change_desired, read_desired
    from lakebound.control.person import operating_system_user

    desired = read_desired(control)
    if desired.wants_app:
        return desired
    return change_desired(control, "running", reason=BY, by=operating_system_user(), release_hold=False)


def _start(orders: RunSpec, settings: Settings) -> tuple[Submission, subprocess.Popen[bytes]]:
    """Start the application in a session of its own, so that Ctrl-C reaches this command only, and record it.

    Raises:
        SubmitFailedError: Another one lives, or it cannot be started.
    """
    from lakebound.landing.local_launch import launch_stream

    submission, process = launch_stream(orders, settings)
    if process is None:
        pipeline = orders.spec.pipeline
        raise SubmitFailedError(pipeline, f"{submission.app_id} is already running; stop it first: lakebound stop {pipeline}")
    return submission, process


def _follow(
    process: subprocess.Popen[bytes], control: ControlFolder, submission: Submission, output: TextIO, shown: ShownLog
) -> int:
    """Print what is shown of the log until the application has ended; return its exit code."""
    from lakebound.control.desired import request_stop

    def look() -> None:
        for text in iter(lambda: log.read(65_536), ""):
            output.write(printable(shown.take(text)))
            output.flush()

    def ask_to_end() -> None:
        say("run: stopping after this batch; press Ctrl-C again to kill it (uncommitted records are read again)")
        request_stop(control, submission.app_id, reason="Ctrl-C", by=BY)

    with Path(submission.log or os.devnull).open(errors="replace") as log:
        code = foreground.watch(process, submission, "run: ", look, ask_to_end)
        output.write(printable(shown.end()))
    return foreground.shell_code(code)
