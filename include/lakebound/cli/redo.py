"""``lakebound redo``: make the rows of a range of offsets again with today's transform, in place of what they are."""

from __future__ import annotations

import shlex
import time
from json import dumps as json_text
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lakebound.cli.backfill import in_foreground
from lakebound.cli.output import Json, number, print_json, print_rows, say, show
from lakebound.cli.redo_undo import undo_newest
from lakebound.cli.try_pipeline import print_trial

if TYPE_CHECKING:
    from lakebound.control.replay_result import ReplayResult
    from lakebound.operations.redo.plan import RedoPlan
    from lakebound.settings import Settings
    from lakebound.spec.pipeline import PipelineSpec

_BOUND = """earliest, latest, a time (2026-11-20T14:05, UTC, or '10m ago') or offsets ({"topic": {"0": 100}})."""

SourceHash = Annotated[
    str | None,
    typer.Option("--source", metavar="HASH", help="What this version of the code landed, as `ledger --by-source` shows it."),
]
From = Annotated[str | None, typer.Option("--from", help=f"First offset: {_BOUND} Required without --source.")]
To = Annotated[str, typer.Option("--to", help=f"End of the range (exclusive): {_BOUND}")]

Apply = Annotated[str | None, typer.Option("--apply", metavar="HASH", help="Apply the plan with this hash.")]
Sample = Annotated[
    int | None,
    typer.Option(
        "--sample",
        min=1,
        max=100_000,
        metavar="N",
        help="Also show, column by column, what changes in the first table in N records of the range: the newest ones of its "
        "longest part in each partition.",
    ),
]
Undo = Annotated[bool, typer.Option("--undo", help="Undo the newest redo: the very rows that it replaced come back.")]


def redo(
    pipeline: Annotated[str, typer.Argument(help="Pipeline name.")],
    source: SourceHash = None,
    start: From = None,
    end: To = "latest",
    plan: Annotated[bool, typer.Option("--plan", help="Show the plan (default).")] = False,
    sample: Sample = None,
    undo: Undo = False,
    apply: Apply = None,
    json: Json = False,
) -> None:
    """Make the rows of an offset range again with today's transform; the old rows leave in the same commits.

    Planning writes nothing. The plan names the offsets of which Kafka still has the records and those of which it has not, the
    rows that leave each table, and the files that are rewritten. It can be applied beside the running stream, and in a held
    pipeline. Ctrl-C, or a hold that comes later, ends it after the current batch; the same command does the rest. With --undo,
    plan and application are those of undoing the newest redo. Exit code 0 if all of the plan is done.
    """
    from lakebound.operations.recovery.plan import PlanChangedError
    from lakebound.operations.redo.prepare import AskedRange, prepare
    from lakebound.operations.replay.bounds import parse_bound
    from lakebound.settings import load_settings
    from lakebound.tables.declared import owned_pipeline

    if undo:
        if source is not None or start is not None or end != "latest" or sample is not None:
            raise typer.BadParameter("it has no range of its own: that of the newest redo is undone", param_hint="--undo")
        undo_newest(pipeline, apply, json=json)
        return
    if source is None and start is None:
        raise typer.BadParameter("give --source or --from", param_hint="--source")
    if start is None and end != "latest":
        raise typer.BadParameter("give --to with --from only", param_hint="--to")
    if apply is not None and (plan or sample is not None):
        raise typer.BadParameter("give --plan or --sample to look at a plan, or --apply HASH", param_hint="--apply")
    settings = load_settings()
    spec = owned_pipeline(pipeline, settings)
    now_ms = int(time.time() * 1000)
    bounds = None if start is None else (parse_bound("--from", start, now_ms), parse_bound("--to", end, now_ms))
    found = prepare(spec, settings, AskedRange(source, bounds))
    if apply is None:
        tried = None if sample is None or not found.redone else _tried(spec, settings, found, sample)
        _print_plan(found, _command(found, source), tried, json=json)
        return
    if found.hash != apply:
        raise PlanChangedError(pipeline, apply, found.hash)
    _apply(spec, settings, found, json=json)


def _tried(spec: PipelineSpec, settings: Settings, plan: RedoPlan, records: int) -> dict[str, Any]:
    """Return what the newest records of the range give now, beside what they gave."""
    from lakebound.cli.trial import try_pipeline

    say(f"redo: Spark reads {number(records)} records of the range (it takes some seconds to start)")
    return try_pipeline(spec, settings, records=records, newest=True, rows=0, against_landed=True, between=plan.longest_ranges)


def _print_plan(plan: RedoPlan, command: str, tried: dict[str, Any] | None, *, json: bool) -> None:
    if json:
        print_json({**plan.model_dump(mode="json"), "hash": plan.hash, "apply": command, "sample": tried})
        return
    for line in plan.lines():
        show(line)
    if tried is not None:
        show("\nin a sample (the first table; the newest records of the longest part of the range in each partition):")
        print_trial(tried, against_landed=True)
    show(f"\nPlan {plan.hash}. To apply it: {command}")


def _command(plan: RedoPlan, source: str | None) -> str:
    """Return the command that applies the plan, with its bounds: rows that land meanwhile are then not part of it."""
    asked = [] if source is None else ["--source", source]
    for option, bound in zip(("--from", "--to"), plan.bounds, strict=True):
        asked += [option, json_text(bound, separators=(",", ":"), sort_keys=True)]
    return shlex.join(["lakebound", "redo", plan.pipeline, *asked, "--apply", plan.hash])


def _apply(spec: PipelineSpec, settings: Settings, plan: RedoPlan, *, json: bool) -> None:
    from lakebound.control.person import operating_system_user
    from lakebound.operations.redo.apply import apply_redo

    result: ReplayResult | None = None
    if plan.has_work:
        user = operating_system_user()
        say(f"redo: applying plan {plan.hash}")
        result = apply_redo(spec, settings, plan, in_foreground("redo"), by=user, asked_by=user).result
    if json:
        print_json({"hash": plan.hash, "result": result.model_dump(mode="json") if result else None})
    elif result is None:
        show("nothing to redo: no offset of the range is in a table and in Kafka")
    else:
        rows = [(table, number(landed.commits), number(landed.rows)) for table, landed in result.tables.items()]
        print_rows(("TABLE", "COMMITS", "ROWS"), rows, right=("COMMITS", "ROWS"))
        counts = f"read {result.read:,} records: landed {result.landed:,}, filtered {result.filtered:,}"
        show(f"{result.state}: {result.reason}; {counts}, quarantined {result.quarantined:,}")
    raise typer.Exit(0 if result is None or result.state == "completed" else 1)
