"""``lakebound validate``: whether what landed is as expected."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Annotated

import typer

from lakebound.cli.output import Json, duration, number, print_json, print_rows, say, show

if TYPE_CHECKING:
    from lakebound.inspection.validation.by_hand import ByHand
    from lakebound.inspection.validation.expectations import ExpectationFile
    from lakebound.inspection.validation.verdict import ValidatedRange, ValidationReport
    from lakebound.settings import Settings
    from lakebound.spec.pipeline import PipelineSpec

BY = "lakebound validate"

OneTable = Annotated[
    str | None, typer.Option("--table", help="Only this table: name or format:name. The result is not recorded.")
]
OneSuite = Annotated[
    str | None, typer.Option("--suite", help="Only the expectations of this suite. The result is not recorded.")
]
First = Annotated[
    str | None, typer.Option("--from", help="First version, even if it was validated before. The result is not recorded.")
]
Last = Annotated[str | None, typer.Option("--to", help="Last version. The result is not recorded.")]


def validate(
    pipeline: Annotated[str, typer.Argument(help="Pipeline name.")],
    plan: Annotated[bool, typer.Option("--plan", help="Show what is due; read only metadata.")] = False,
    table: OneTable = None,
    suite: OneSuite = None,
    first: First = None,
    last: Last = None,
    json: Json = False,
) -> None:
    """Validate the rows that landed since the last validation, with the expectations in include/expectations.

    Each commit is validated once. Exit code 2: an expectation failed. Exit code 1: the validation could not run.
    """
    from lakebound.inspection.validation.expectation_files import NoExpectationsError, expectations_path, load_expectations
    from lakebound.inspection.validation.planning import plan_validation
    from lakebound.settings import load_settings
    from lakebound.tables.declared import owned_pipeline
    from lakebound.tables.places import places_of

    settings = load_settings()
    spec = owned_pipeline(pipeline, settings)
    file = load_expectations(spec, settings)
    if file is None:
        raise NoExpectationsError(pipeline, expectations_path(pipeline, settings))
    if plan:
        due = plan_validation(spec, places_of(settings, spec.warehouse), file)
        if json:
            print_json([one.model_dump(mode="json") for one in due])
            return
        rows = [
            (one.table, f"{one.first}..{one.last}", number(one.commits), number(one.rows), number(one.expectations))
            for one in due
        ]
        print_rows(("TABLE", "VERSIONS", "COMMITS", "ROWS", "EXPECTATIONS"), rows, right=("COMMITS", "ROWS", "EXPECTATIONS"))
        return
    raise typer.Exit(_run(spec, settings, file, _by_hand(spec, table, suite, first, last), json=json))


def _by_hand(spec: PipelineSpec, table: str | None, suite: str | None, first: str | None, last: str | None) -> ByHand | None:
    """Return what is asked for by hand, or None for what is due."""
    from lakebound.inspection.proof.collect import table_id
    from lakebound.inspection.validation.by_hand import ByHand

    if table is None and suite is None and first is None and last is None:
        return None
    if table is None and (first is not None or last is not None) and len(spec.tables) > 1:
        raise typer.BadParameter(
            "--from and --to need --table, because each table has its own versions", param_hint="--from / --to"
        )
    tables = tuple(one.id for one in spec.tables) if table is None else (table_id(spec, table),)
    return ByHand(tables=tables, suite=suite, first=first, last=last)


def _run(spec: PipelineSpec, settings: Settings, file: ExpectationFile, by_hand: ByHand | None, *, json: bool) -> int:
    """Run the application to its end, print what it found, and return the exit code."""
    from lakebound.cli import foreground
    from lakebound.control.submission import app_id_for
    from lakebound.inspection.validation.report_file import read_report
    from lakebound.inspection.validation.submission import PROGRESS, validation_command, validation_orders
    from lakebound.landing.local_launch import launch_beside

    rows = _say_due(spec, settings, file) if by_hand is None else None
    run_id = f"validate-{app_id_for(spec.pipeline, 0, f'{BY}/{os.getpid()}/{time.time_ns()}')}"
    orders = validation_orders(spec, settings, file, run_id, by_hand=by_hand, rows=rows, is_waited_for=True)
    submission, process = launch_beside(validation_command(orders, settings), orders, settings)
    say(f"{PROGRESS}{run_id}; log: {submission.log}; Ctrl-C ends it after the current range")
    started = time.monotonic()
    code = foreground.follow(process, submission, PROGRESS, "after this range; press Ctrl-C again to kill it")
    say(f"{PROGRESS}it took {duration(time.monotonic() - started)}")
    report = read_report(orders.control, run_id)
    if report is None:
        say(
            f"{PROGRESS}{run_id} ended without a report (exit code {code}). Read its log, then run the command again. Log: "
            f"{submission.log}"
        )
        return code or 1
    if json:
        print_json(report.model_dump(mode="json"))
    else:
        _print(report)
    return code or (2 if report.passed < report.evaluated else 0)


def _say_due(spec: PipelineSpec, settings: Settings, file: ExpectationFile) -> int:
    """Say what will be validated, from metadata alone, and return how many rows these are."""
    from lakebound.inspection.validation.planning import plan_validation
    from lakebound.inspection.validation.submission import PROGRESS
    from lakebound.tables.places import places_of

    due = plan_validation(spec, places_of(settings, spec.warehouse), file)
    for one in due:
        say(f"{PROGRESS}{one.table}: {number(one.rows)} rows of {number(one.commits)} commits are due")
    return sum(one.rows for one in due)


def _print(report: ValidationReport) -> None:
    if not report.ranges:
        show(f"pipeline {report.pipeline}: nothing is due")
    for one in report.ranges:
        show(f"{one.table} {one.span}: {number(one.rows)} rows, {one.passed} of {one.evaluated} expectations hold")
        _print_range(one)
    for problem in report.problems:
        show(f"not validated: {problem}")
    if report.stopped:
        show(f"the stream was asked to stop: {report.stopped}")


def _print_range(one: ValidatedRange) -> None:
    for result in one.results:
        if not result.passed:
            where = f" ({', '.join(result.samples)})" if result.samples else ""
            show(f"  {result.severity.value}: {result.label}: {result.sentence}{where}")
    for label, why in one.skipped.items():
        show(f"  not evaluated: {label}: {why}")
    if one.copied:
        show(f"  {number(one.copied)} rows were copied to the quarantine")
    if one.data_docs:
        show(f"  page: {one.data_docs}")
