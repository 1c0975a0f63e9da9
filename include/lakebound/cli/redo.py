"""``lakebound redo``: what it takes to land a range of offsets again with today's transform. It writes nothing."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from lakebound.cli.output import Json, print_json, show

_BOUND = """earliest, latest, a time (2026-11-20T14:05, UTC, or '10m ago') or offsets ({"topic": {"0": 100}})."""

SourceHash = Annotated[
    str | None,
    typer.Option("--source", metavar="HASH", help="What this version of the code landed, as `ledger --by-source` shows it."),
]
From = Annotated[str | None, typer.Option("--from", help=f"First offset: {_BOUND} Required without --source.")]
To = Annotated[str, typer.Option("--to", help=f"End of the range (exclusive): {_BOUND}")]


def redo(
    pipeline: Annotated[str, typer.Argument(help="Pipeline name.")],
    source: SourceHash = None,
    start: From = None,
    end: To = "latest",
    json: Json = False,
) -> None:
    """Show what it takes to make the rows of an offset range again with today's transform. Nothing is written.

    The plan names the offsets of which Kafka still has the records and those of which it has not, the rows that would leave
    each table, and the files that would be rewritten. This version plans a redo and cannot apply one.
    """
    from lakebound.operations.redo.prepare import AskedRange, prepare
    from lakebound.operations.replay.bounds import parse_bound
    from lakebound.settings import load_settings
    from lakebound.tables.declared import owned_pipeline

    if (source is None) == (start is None):
        raise typer.BadParameter("give either --source or --from", param_hint="--source")
    if source is not None and end != "latest":
        raise typer.BadParameter("give --to with --from only", param_hint="--to")
    settings = load_settings()
    spec = owned_pipeline(pipeline, settings)
    now_ms = int(time.time() * 1000)
    bounds = None if start is None else (parse_bound("--from", start, now_ms), parse_bound("--to", end, now_ms))
    plan = prepare(spec, settings, AskedRange(source, bounds))
    if json:
        print_json(plan.model_dump(mode="json"))
        return
    for line in plan.lines():
        show(line)
    show(
        f"This version of Lakebound plans a redo and cannot apply one. `lakebound rewind {pipeline} --to TIME` lands everything"
        f" since a time again; the runbook bad-deploy says when."
    )
