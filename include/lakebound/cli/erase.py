"""``lakebound erase``: take rows out of a pipeline's tables for good, by a plan that a person approves."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Annotated

import typer

from lakebound.cli.output import Json, print_json, say, show

if TYPE_CHECKING:
    from lakebound.control.incidents import Incident
    from lakebound.inspection.proof.result import Proof
    from lakebound.ledger.marks import NextOffsets
    from lakebound.operations.erase.plan import ErasePlan

Where = Annotated[str, typer.Option("--where", metavar="SQL", help="Which rows: a condition on the tables' columns.")]
Below = Annotated[
    str | None,
    typer.Option(
        "--below", metavar="OFFSETS", help='Only rows of offsets below these, as the plan gives them: {"topic": {"0": 9}}.'
    ),
]
Apply = Annotated[str | None, typer.Option("--apply", metavar="HASH", help="Apply the plan with this hash.")]
By = Annotated[str | None, typer.Option("--by", metavar="NAME", help="Who approved the plan. Default: this user.")]
Reason = Annotated[
    str, typer.Option("--reason", metavar="TEXT", help="Why, for the record. A ticket's number, but no personal data.")
]


def erase(
    pipeline: Annotated[str, typer.Argument(help="Pipeline name.")],
    where: Where,
    below: Below = None,
    plan: Annotated[bool, typer.Option("--plan", help="Show the plan (default).")] = False,
    apply: Apply = None,
    by: By = None,
    reason: Reason = "",
    json: Json = False,
) -> None:
    """Erase rows from all tables of a pipeline by decision, for example for data protection. They are never landed again.

    Planning writes nothing. The plan shows how many rows each table loses, how long older versions still show them, and which
    places keep copies. It can be applied while the stream runs; if it is interrupted, run the same command again. Proofs count
    the rows as erased, not as missing. The condition is not recorded. Exit code 1 if the plan was refused.
    """
    from lakebound.control.person import operating_system_user
    from lakebound.inspection.proof.collect import prove
    from lakebound.operations.erase.apply import apply_erase
    from lakebound.operations.erase.prepare import prepare
    from lakebound.settings import load_settings
    from lakebound.tables.declared import owned_pipeline
    from lakebound.tables.places import places_of

    if plan and apply is not None:
        raise typer.BadParameter("give --plan or --apply HASH", param_hint="--plan")
    bound = None if below is None else _bound(below)
    settings = load_settings()
    spec = owned_pipeline(pipeline, settings)
    places = places_of(settings, spec.warehouse)
    if apply is None:
        _print_plan(prepare(spec, places, where, bound), json=json)
        return
    say(f"erase: applying plan {apply}")
    user = operating_system_user()
    incident = apply_erase(spec, places, where, apply, below=bound, by=by or user, asked_by=user, reason=reason)
    _print_applied(incident, prove(spec, places), json=json)


def _bound(text: str) -> NextOffsets:
    from lakebound.operations.replay.bounds import parse_bound

    found = parse_bound("--below", text, 0).offsets
    if found is None:
        raise typer.BadParameter("give the offsets as the plan prints them", param_hint="--below")
    return found


def _print_plan(plan: ErasePlan, *, json: bool) -> None:
    if json:
        print_json({**plan.facts(), "where": plan.where, "below": plan.below, "apply": _command(plan)})
        return
    show(plan.markdown())
    show(f"\nTo apply it: {_command(plan)}")


def _command(plan: ErasePlan) -> str:
    """Return the command that applies the plan, with its bound: rows that land meanwhile are then not part of it."""
    from lakebound.operations.erase.plan import dumped_bound

    words = ["lakebound", "erase", plan.pipeline, "--where", plan.where, "--below", dumped_bound(plan.below)]
    return shlex.join([*words, "--apply", plan.hash])


def _print_applied(incident: Incident, proof: Proof, *, json: bool) -> None:
    if json:
        print_json({"incident": incident.model_dump(mode="json"), "proof": proof.model_dump(mode="json")})
        return
    for table, version in incident.facts["versions"].items():
        show(f"{table}: erased in version {version}")
    show(f"{incident.what}; {incident.outcome}; recorded as incident {incident.id}; {proof.sentence}")
