"""``lakebound maintain``: what maintenance would do to a pipeline's tables, and why; or does it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from lakebound.cli.output import Json, number, print_json, print_rows, show
from lakebound.operations.maintenance.wording import size_words

if TYPE_CHECKING:
    from lakebound.operations.maintenance.steps import MaintenancePlan, MaintenanceStep
    from lakebound.spec.pipeline import PipelineSpec

OneTable = Annotated[str | None, typer.Option("--table", help="Only this table: name or format:name.")]


def maintain(
    pipeline: Annotated[str, typer.Argument(help="Pipeline name.")],
    plan: Annotated[bool, typer.Option("--plan", help="Show the planned steps and their reasons; change nothing.")] = False,
    run: Annotated[bool, typer.Option("--run", help="Make a new plan and run it in one application.")] = False,
    table: OneTable = None,
    json: Json = False,
) -> None:
    """Plan or run the maintenance of a pipeline's tables: compaction, expiry and clean-up, with the cost and gain of each step.

    A run can work while the stream runs. It can be killed: nothing is lost, and another run does the rest.
    """
    from lakebound.operations.maintenance.next_run import plan_now
    from lakebound.settings import load_settings
    from lakebound.tables.declared import owned_pipeline
    from lakebound.tables.places import places_of

    if plan == run:
        raise typer.BadParameter(
            "give either --plan, which shows the steps, or --run, which runs them", param_hint="--plan / --run"
        )
    if run and table is not None:
        raise typer.BadParameter(
            "--run works on all tables of the pipeline; use --table with --plan only", param_hint="--table"
        )
    settings = load_settings()
    spec = owned_pipeline(pipeline, settings)
    if run:
        from lakebound.cli.maintain_run import run_maintenance

        raise typer.Exit(run_maintenance(spec, settings, json=json))
    found = plan_now(spec, places_of(settings, spec.warehouse), table=_table_id(spec, table))
    if json:
        print_json(found.model_dump(mode="json"))
    else:
        _print_plan(found)


def _table_id(spec: PipelineSpec, wanted: str | None) -> str | None:
    """Return the id of the one table that is asked for."""
    from lakebound.inspection.proof.collect import table_id

    return None if wanted is None else table_id(spec, wanted)


def _print_plan(plan: MaintenancePlan) -> None:
    if plan.steps:
        rows = [(step.table, _named(step), step.reason, _cost(step), number(step.files_removed)) for step in plan.steps]
        print_rows(("TABLE", "STEP", "WHY", "REWRITES", "FEWER"), rows, right=("REWRITES", "FEWER"))
    else:
        show(f"{plan.pipeline}: nothing is due")
    for line in plan.left:
        show(f"not done: {line}")
    for line in plan.warnings:
        show(f"warning: {line}")


def _named(step: MaintenanceStep) -> str:
    """Return the step's name, with what it is about."""
    words = step.kind.replace("_", " ")
    if step.kind == "compact":
        return f"{words} {'/'.join(f'{field}={value}' for field, value in step.partition.items())}".rstrip()
    if step.kind in ("vacuum", "remove_orphans"):
        return f"{words} ({step.mode.replace('_', ' ')})"
    if step.kind == "clean_log":
        return f"{words} before {step.before_version}"
    return words


def _cost(step: MaintenanceStep) -> str:
    return size_words(step.cost_bytes) if step.cost_bytes else "-"
