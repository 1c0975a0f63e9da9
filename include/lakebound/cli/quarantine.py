"""``lakebound quarantine``: what could not be landed and why, and landing what fits by now."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from lakebound.cli.backfill import in_foreground
from lakebound.cli.output import Json, moment, number, print_json, print_rows, printable, say, show

if TYPE_CHECKING:
    from lakebound.operations.release.listing import QuarantinedRecord, QuarantineListing, ReasonCount
    from lakebound.operations.release.orders import ReleaseResult
    from lakebound.settings import Settings
    from lakebound.spec.pipeline import PipelineSpec

BY = "lakebound quarantine --replay"
COPY = "copy of a landed row"


def quarantine(
    pipeline: Annotated[str, typer.Argument(help="Pipeline name.")],
    reason: Annotated[str | None, typer.Option(help="Only records with this reason.")] = None,
    samples: Annotated[int, typer.Option(min=0, help="Number of records to show for each reason, newest first.")] = 3,
    replay: Annotated[
        bool,
        typer.Option(
            "--replay", help="Decode the records again with the current schema and transform, and land those that fit."
        ),
    ] = False,
    plan: Annotated[
        bool, typer.Option("--plan", help="With --replay: decode the records and show which would land. Nothing is landed.")
    ] = False,
    json: Json = False,
) -> None:
    """Show the quarantine by reason, or land the records that fit now. Exit code 1 if a replay did not complete.

    A replay can run while the stream runs, and it can be killed and repeated: records that a table already has are never landed
    again. Nothing is deleted: a released record stays in the quarantine table and is no longer open.
    """
    from lakebound.settings import load_settings
    from lakebound.tables.declared import owned_pipeline
    from lakebound.tables.places import places_of

    if plan and not replay:
        raise typer.BadParameter("give it together with --replay", param_hint="--plan")
    settings = load_settings()
    spec = owned_pipeline(pipeline, settings)
    if replay:
        _replay(spec, settings, reason, is_trial=plan, json=json)
        return
    from lakebound.operations.release.listing import list_quarantine

    found = list_quarantine(spec, places_of(settings, spec.warehouse), reason=reason, samples=samples)
    if json:
        print_json(found.model_dump(mode="json") | {"open": found.open, "copies": found.copies})
    else:
        _print(found)


def _print(found: QuarantineListing) -> None:
    if not found.exists or not found.reasons:
        show(f"{found.table}: " + ("empty" if found.exists else "no table yet"))
        return
    headers = ("REASON", "RECORDS", "OPEN", "STATE", "FIRST (UTC)", "LAST (UTC)")
    rows = [(one.reason, number(one.records), number(one.open), state_of(one), *_times(one)) for one in found.reasons]
    print_rows(headers, rows, right=("RECORDS", "OPEN"))
    shown = [(one.reason, sample) for one in found.reasons for sample in one.samples]
    if shown:
        columns = ("REASON", "STATE", "WHERE", "AT (UTC)", "ERROR", "BYTES", "VALUE")
        print_rows(columns, [_cells(reason, sample) for reason, sample in shown], right=("BYTES",))
    for note in found.notes:
        show(f"note: {note}")
    copies = f"; {found.copies:,} are copies of landed rows: nothing is missing from the tables" if found.copies else ""
    show(f"{found.table}: {found.open:,} records are open{copies}")


def state_of(one: ReasonCount) -> str:
    """Return in words how the records of a reason stand."""
    parts = []
    if one.open:
        parts.append("open")
    if one.copies:
        parts.append(COPY if one.copies == one.records else f"{one.copies:,} x {COPY}")
    if one.records > one.open + one.copies:
        parts.append("landed since")
    return ", ".join(parts)


def _times(one: ReasonCount) -> tuple[str, ...]:
    return tuple("-" if at is None else moment(at) for at in (one.first_ms, one.last_ms))


def _cells(reason: str, sample: QuarantinedRecord) -> tuple[str, ...]:
    at = moment(sample.timestamp_ms) if sample.timestamp_ms is not None else "-"
    where = f"{sample.topic}/{sample.partition} {sample.offset}"
    state = COPY if sample.is_copy else "open"
    error = printable(sample.error, lines=False)
    return (reason, state, where, at, error, number(sample.value_bytes), "-" if sample.value is None else sample.value)


def _replay(spec: PipelineSpec, settings: Settings, reason: str | None, *, is_trial: bool, json: bool) -> None:
    from lakebound.operations.release.plan import prepare
    from lakebound.tables.places import places_of

    plan = prepare(spec, places_of(settings, spec.warehouse), reason)
    if not json:
        for share in plan.tables:
            say(f"replay: {share.table}: {share.lacking:,} records to try, {share.landed:,} already landed")
            if share.uncovered:
                say(
                    f"replay: {share.table}: {share.uncovered:,} records are skipped: the stream has not reached them yet, or "
                    f"they are from a deleted topic"
                )
    result = _run(spec, settings, plan.reasons, is_trial=is_trial) if plan.is_due else None
    if json:
        print_json({"plan": plan.model_dump(mode="json"), "result": result.model_dump(mode="json") if result else None})
    elif result is None:
        show(f"pipeline {spec.pipeline}: no record to try")
    else:
        _print_result(result)
    raise typer.Exit(0 if result is None or result.state == "completed" else 1)


def _run(spec: PipelineSpec, settings: Settings, reasons: tuple[str, ...], *, is_trial: bool) -> ReleaseResult:
    from lakebound.operations.backfill.orders import backfill_orders
    from lakebound.operations.backfill.running import check_not_held, new_app_id, run_backfill
    from lakebound.operations.release.orders import APPLICATION, ReleaseOrders, ReleaseResult

    if not is_trial:
        check_not_held(spec, settings)
    app_id = new_app_id("release", spec.pipeline, BY)
    orders = backfill_orders(ReleaseOrders, spec, settings, app_id, reasons=reasons, is_trial=is_trial)
    return run_backfill(orders, settings, APPLICATION, ReleaseResult(app_id=app_id), in_foreground("replay"))


def _print_result(result: ReleaseResult) -> None:
    if result.verdicts:
        rows = [(reason, number(found.fit), number(found.stay)) for reason, found in sorted(result.verdicts.items())]
        print_rows(("REASON", "FIT NOW", "STILL BAD"), rows, right=("FIT NOW", "STILL BAD"))
    for schema, reason in sorted(result.left_out.items()):
        show(f"{schema} does not fit the tables, so its records stay in quarantine: {reason}")
    tables = [(table, number(landed.commits), number(landed.rows)) for table, landed in result.tables.items()]
    if tables:
        print_rows(("TABLE", "COMMITS", "ROWS"), tables, right=("COMMITS", "ROWS"))
    if result.state == "refused" and not result.read:
        show(f"refused: {result.reason}; no record was tried")  # figures of 0 would read as if none were open
        return
    why = "" if result.is_trial and result.state == "completed" else f"{result.reason}; "  # it tells of landed batches
    what = "nothing was landed (--plan)" if result.is_trial else f"landed {result.landed:,}, filtered {result.filtered:,}"
    show(f"{result.state}: {why}tried {result.read:,} records: {what}, still open {result.quarantined:,}")
