"""``lakebound replay``: land the records below the tables' next offsets that the tables do not have."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer

from lakebound.cli.backfill import in_foreground
from lakebound.cli.output import Json, number, print_json, print_rows, say, show

if TYPE_CHECKING:
    from lakebound.control.replay_result import ReplayResult
    from lakebound.operations.replay.plan import ReplayPlan
    from lakebound.settings import Settings
    from lakebound.spec.pipeline import PipelineSpec

BY = "lakebound replay"
_BOUND = """earliest, latest, a time (2026-11-20T14:05, UTC, or '10m ago') or offsets ({"topic": {"0": 100}})."""

From = Annotated[str | None, typer.Option("--from", help=f"First offset: {_BOUND} Required without --missing.")]
To = Annotated[str, typer.Option("--to", help=f"End of the range (exclusive): {_BOUND}")]
Missing = Annotated[
    bool,
    typer.Option(
        "--missing", help="Land only the records that `prove --deep` finds missing, including records whose rows were deleted."
    ),
]
PlanOnly = Annotated[bool, typer.Option("--plan", help="Show the plan and exit.")]


def replay(
    pipeline: Annotated[str, typer.Argument(help="Pipeline name.")],
    start: From = None,
    end: To = "latest",
    missing: Missing = False,
    plan_only: PlanOnly = False,
    json: Json = False,
) -> None:
    """Land the records of an offset range that the tables do not have, with the pipeline's own transform.

    A replay can run while the stream runs. It can be repeated: records that a table already has are skipped. Offsets at or
    above the lowest next offset of the tables are left to the stream. Ctrl-C ends it after the current batch; a second Ctrl-C
    ends it at once. Exit code 0 if the whole range is landed.
    """
    from lakebound.operations.replay.bounds import FIRST, parse_bound
    from lakebound.operations.replay.prepare import prepare
    from lakebound.settings import load_settings
    from lakebound.tables.declared import owned_pipeline

    if start is None and not missing:
        raise typer.BadParameter("give a start, or --missing", param_hint="--from")
    settings = load_settings()
    spec = owned_pipeline(pipeline, settings)
    now_ms = int(time.time() * 1000)
    first, last = FIRST if start is None else parse_bound("--from", start, now_ms), parse_bound("--to", end, now_ms)
    if missing:
        say(f"replay: comparing the rows of {len(spec.tables) + 1} tables with {', '.join(spec.topics)}")
    plan = prepare(spec, settings, first, last, missing=missing)
    if plan_only:
        _show(plan, json=json)
        return
    if not json:
        _show(plan, json=False)
    plan.check()
    result = _run(spec, settings, plan) if plan.chunks else None
    if json:
        print_json({"plan": plan.model_dump(mode="json"), "result": result.model_dump(mode="json") if result else None})
    elif result is not None:
        _print_result(result)
    raise typer.Exit(0 if result is None or result.state == "completed" else 1)


def _show(plan: ReplayPlan, *, json: bool) -> None:
    if json:
        print_json(plan.model_dump(mode="json"))
        return
    from lakebound.ledger.entry import count
    from lakebound.operations.replay.plan import describe

    headers = ("TABLE", "TO LAND", "ALREADY LANDED", "UNCOVERED FIRST", "RANGES")
    rows = [
        (s.table, number(count(s.lands)), number(s.covered), number(count(s.takes_back)), describe(s.lands))
        for s in plan.tables
    ]
    print_rows(headers, rows, right=headers[1:4])
    for topic, partitions in plan.kafka.items():
        held = ", ".join(f"{partition} [{first}, {end})" for partition, (first, end) in partitions.items())
        show(f"offsets in Kafka, {topic}: {held}")
    if count(plan.left_to_stream):
        show(f"left to the stream, {count(plan.left_to_stream):,} offsets: {describe(plan.left_to_stream)}")
    if count(plan.gone):
        show(f"no longer in Kafka, {count(plan.gone):,} offsets: {describe(plan.gone)}")
    for note in plan.notes:
        show(f"note: {note}")
    batches = "1 batch" if plan.chunks == 1 else f"{plan.chunks} batches"
    show(f"pipeline {plan.pipeline}: {count(plan.wanted):,} offsets to read, in {batches}")


def _run(spec: PipelineSpec, settings: Settings, plan: ReplayPlan) -> ReplayResult:
    from lakebound.control.person import operating_system_user
    from lakebound.control.replay_result import ReplayResult
    from lakebound.operations.backfill.orders import backfill_orders
    from lakebound.operations.backfill.running import check_not_held, new_app_id, run_backfill
    from lakebound.operations.replay.alone import take_back_alone
    from lakebound.operations.replay.orders import APPLICATION, ReplayOrders

    check_not_held(spec, settings)
    if plan.takes_back:
        for table, offsets in take_back_alone(spec, settings, plan, by=operating_system_user()).items():
            say(f"replay: {table}: {offsets:,} offsets without rows were removed from the coverage")
    app_id = new_app_id("replay", spec.pipeline, BY)
    orders = backfill_orders(ReplayOrders, spec, settings, app_id, wanted=plan.wanted)
    return run_backfill(orders, settings, APPLICATION, ReplayResult(app_id=app_id), in_foreground("replay"))


def _print_result(result: ReplayResult) -> None:
    rows = [(table, number(landed.commits), number(landed.rows)) for table, landed in result.tables.items()]
    if rows:
        print_rows(("TABLE", "COMMITS", "ROWS"), rows, right=("COMMITS", "ROWS"))
    counts = f"read {result.read:,} records: landed {result.landed:,}, filtered {result.filtered:,}"
    show(f"{result.state}: {result.reason}; {counts}, quarantined {result.quarantined:,}")
