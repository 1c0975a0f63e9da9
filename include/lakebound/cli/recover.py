"""``lakebound recover``: plan a repair, and apply the plan that was approved."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from lakebound.cli.control import say_who_starts
from lakebound.cli.output import Json, print_json, say, show

if TYPE_CHECKING:
    from lakebound.operations.recovery.apply import Applied
    from lakebound.operations.recovery.plan import RepairAction, RepairPlan
    from lakebound.settings import Settings
    from lakebound.spec.pipeline import PipelineSpec

AUTO = "auto"

ActionName = Annotated[
    str,
    typer.Option(
        "--action",
        help="resume, rebase, accept_loss, new_incarnation, drop_zombie, repoint, or auto: what the doctor recommends.",
    ),
]
Apply = Annotated[str | None, typer.Option("--apply", metavar="HASH", help="Apply the plan with this hash.")]
By = Annotated[str | None, typer.Option("--by", metavar="NAME", help="Who approved the plan. Default: this user.")]


def recover(
    pipeline: Annotated[str, typer.Argument(help="Pipeline name.")],
    action: ActionName = AUTO,
    plan: Annotated[bool, typer.Option("--plan", help="Show the plan (default).")] = False,
    apply: Apply = None,
    by: By = None,
    json: Json = False,
) -> None:
    """Plan a repair of a pipeline, or apply an approved plan and then run the doctor and the proof.

    Planning writes nothing. A plan is applied only if its facts are still true. Exit code 1 if the plan was refused, or if the
    proof fails afterwards.
    """
    from lakebound.control.person import operating_system_user
    from lakebound.operations.recovery.apply import apply_recovery, plan_recovery
    from lakebound.settings import load_settings
    from lakebound.tables.declared import owned_pipeline

    if plan and apply is not None:
        raise typer.BadParameter("give --plan or --apply HASH", param_hint="--plan")
    settings = load_settings()
    spec = owned_pipeline(pipeline, settings)
    chosen = _action(action, spec, settings)
    if apply is None:
        _print_plan(plan_recovery(spec, settings, chosen), json)
        return
    say(f"recover: applying plan {apply}; the pipeline is held until this ends")
    user = operating_system_user()
    applied = apply_recovery(spec, settings, chosen, apply, by=by or user, asked_by=user)
    raise typer.Exit(_print_applied(applied, spec, settings, json))


def _action(name: str, spec: PipelineSpec, settings: Settings) -> RepairAction:
    from lakebound.operations.recovery.actions import PLANNERS
    from lakebound.operations.recovery.suggestion import suggested_action

    if name == AUTO:
        chosen = suggested_action(spec, settings)
        say(f"recover: the doctor recommends the action {chosen}")
        return chosen
    known = next((known for known in PLANNERS if known == name), None)
    if known is None:
        raise typer.BadParameter(f"{name!r} is not one of {', '.join((AUTO, *PLANNERS))}", param_hint="--action")
    return known


def _print_plan(plan: RepairPlan, json: bool) -> None:
    if json:
        print_json({**plan.model_dump(mode="json"), "hash": plan.hash})
        return
    show(plan.markdown())
    show(f"\nTo apply it: lakebound recover {plan.pipeline} --action {plan.action} --apply {plan.hash}")


def _print_applied(applied: Applied, spec: PipelineSpec, settings: Settings, json: bool) -> int:
    from lakebound.inspection.doctor.examine import examine_pipeline
    from lakebound.inspection.proof.collect import prove
    from lakebound.tables.places import places_of

    diagnosis, proof = examine_pipeline(spec, settings), prove(spec, places_of(settings, spec.warehouse))
    if json:
        body: dict[str, Any] = {
            "incident": applied.incident.model_dump(mode="json"),
            "committed": applied.committed,
            "diagnosis": diagnosis.model_dump(mode="json"),
            "proof": proof.model_dump(mode="json"),
        }
        print_json(body)
    else:
        show(f"{applied.plan.action}: {applied.incident.outcome}; incident {applied.incident.id}")
        show(f"doctor: {diagnosis.verdict.replace('_', ' ')}")
        for finding in diagnosis.findings:
            show(f"  {finding.rule}: {finding.sentence}")
        show(proof.sentence)
        say_who_starts(spec, settings)
    return 0 if proof.ok else 1
