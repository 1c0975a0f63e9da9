"""``lakebound rewind``: put tables back to a time, and have the stream start again from there."""

from __future__ import annotations

import shlex
import time
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from lakebound.cli.control import say_who_starts
from lakebound.cli.output import Json, print_json, say, show

if TYPE_CHECKING:
    from lakebound.control.incidents import Incident
    from lakebound.inspection.proof.result import Proof
    from lakebound.operations.recovery.plan import RepairPlan
    from lakebound.operations.recovery.rewind.facts import RewindRequest

To = Annotated[
    str | None,
    typer.Option("--to", metavar="TIME", help="ISO 8601 time (UTC unless it has a zone), or for example '10m ago'."),
]
OneTable = Annotated[str | None, typer.Option("--table", help="Only this table: name or format:name.")]
Undo = Annotated[bool, typer.Option("--undo", help="Undo the last rewind.")]
Apply = Annotated[str | None, typer.Option("--apply", metavar="HASH", help="Apply the plan with this hash.")]
By = Annotated[str | None, typer.Option("--by", metavar="NAME", help="Who approved the plan. Default: this user.")]


def rewind(
    pipeline: Annotated[str, typer.Argument(help="Pipeline name.")],
    to: To = None,
    table: OneTable = None,
    undo: Undo = False,
    plan: Annotated[bool, typer.Option("--plan", help="Show the plan (default).")] = False,
    apply: Apply = None,
    by: By = None,
    json: Json = False,
) -> None:
    """Restore tables and quarantine to their last version at or before a time. The stream then reads again from there.

    Planning writes nothing. The plan shows which rows are removed, what is read again, and until when the rewind can be undone.
    It is applied only if its facts are still true. Exit code 1 if the plan was refused, or if the proof fails afterwards.
    """
    from lakebound.control.person import operating_system_user
    from lakebound.inspection.proof.collect import prove
    from lakebound.landing.row_source import row_source
    from lakebound.landing.schema_files import read_schema_files
    from lakebound.operations.recovery.rewind.apply import apply_rewind
    from lakebound.operations.recovery.rewind.facts import make_plan
    from lakebound.settings import load_settings
    from lakebound.tables.declared import owned_pipeline
    from lakebound.tables.places import places_of

    request = _request(to, table, undo=undo)
    if plan and apply is not None:
        raise typer.BadParameter("give --plan or --apply HASH", param_hint="--plan")
    settings = load_settings()
    spec = owned_pipeline(pipeline, settings)
    places = places_of(settings, spec.warehouse)
    if apply is None:
        request = replace(request, source=row_source(spec, settings.apps, read_schema_files(spec, settings)))
        _print_plan(make_plan(spec, places, request).plan, request, json=json)
        return
    say(f"rewind: applying plan {apply}; the pipeline is held until this ends")
    user = operating_system_user()
    incident = apply_rewind(spec, places, request, apply, by=by or user, asked_by=user)
    proof = prove(spec, places)
    _print_applied(incident, proof, json=json)
    if not json:
        say_who_starts(spec, settings)
    raise typer.Exit(0 if proof.ok else 1)


def _request(to: str | None, table: str | None, *, undo: bool) -> RewindRequest:
    from lakebound.operations.recovery.rewind.facts import RewindRequest
    from lakebound.spec.times import parse_past

    if undo == (to is not None):
        raise typer.BadParameter("give either --to TIME or --undo", param_hint="--to")
    return RewindRequest(None if to is None else parse_past(to, round(time.time() * 1000)), table)


def _print_plan(plan: RepairPlan, request: RewindRequest, *, json: bool) -> None:
    if json:
        print_json({**plan.model_dump(mode="json"), "hash": plan.hash, "apply": _command(plan, request)})
        return
    show(plan.markdown())
    show(f"\nTo apply it: {_command(plan, request)}")


def _command(plan: RepairPlan, request: RewindRequest) -> str:
    """Return the command that applies the plan, with the time in full: what was ``10m ago`` has moved on by then."""
    words = ["lakebound", "rewind", plan.pipeline]
    if request.to_ms is None:
        words.append("--undo")
    else:
        words += ["--to", datetime.fromtimestamp(request.to_ms / 1000, UTC).isoformat()]
    if request.table is not None:
        words += ["--table", request.table]
    return shlex.join([*words, "--apply", plan.hash])


def _print_applied(incident: Incident, proof: Proof, *, json: bool) -> None:
    if json:
        print_json({"incident": incident.model_dump(mode="json"), "proof": proof.model_dump(mode="json")})
        return
    for done in incident.facts["tables"]:
        show(f"{done['table']}: version {done['restored']} is restored as version {done['as']}")
    show(f"{incident.outcome}; recorded as incident {incident.id}; {proof.sentence}")
