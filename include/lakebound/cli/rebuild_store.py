"""``lakebound rebuild-store``: have a store filled again from Kafka, or fill it from a table."""

from __future__ import annotations

from typing import Annotated

import typer

from lakebound.cli.control import say_who_starts
from lakebound.cli.output import Json, print_json, say, show

Apply = Annotated[str | None, typer.Option("--apply", metavar="HASH", help="Apply the plan with this hash.")]
FromTable = Annotated[
    str | None,
    typer.Option(
        "--from-table",
        metavar="TABLE",
        help="Fill it from this table of the pipeline: name or format:name. Kafka adds the rest.",
    ),
]
By = Annotated[str | None, typer.Option("--by", metavar="NAME", help="Who approved the plan. Default: this user.")]


def rebuild_store(
    pipeline: Annotated[str, typer.Argument(help="Pipeline name.")],
    store: Annotated[str, typer.Argument(help="One of its stores: name or format:name.")],
    plan: Annotated[bool, typer.Option("--plan", help="Show the plan (default).")] = False,
    apply: Apply = None,
    by: By = None,
    from_table: FromTable = None,
    json: Json = False,
) -> None:
    """Empty a store of a pipeline, so that its next start fills it again from Kafka. The tables get no row twice.

    Planning writes nothing. The plan shows which offsets Kafka no longer has, and is applied only if its facts are still true.
    In PostgreSQL, the old table is renamed. In Redis, the keys are removed. With --from-table, the store gets the rows of a
    table, for what Kafka no longer has, and the next start goes on behind them from Kafka.
    """
    from functools import partial

    from lakebound.control.person import operating_system_user
    from lakebound.operations.recovery.store_rebuild import apply_store_rebuild, collect_store, plan_store_rebuild
    from lakebound.operations.recovery.store_refill.apply import apply_store_refill
    from lakebound.operations.recovery.store_refill.collect import collect_refill
    from lakebound.operations.recovery.store_refill.plan import plan_store_refill
    from lakebound.settings import load_settings
    from lakebound.tables.declared import owned_pipeline
    from lakebound.tables.places import places_of

    if plan and apply is not None:
        raise typer.BadParameter("give --plan or --apply HASH", param_hint="--plan")
    settings = load_settings()
    spec = owned_pipeline(pipeline, settings)
    if apply is None:
        if from_table is None:
            found = plan_store_rebuild(spec, collect_store(spec, store))
        else:
            places = places_of(settings, spec.warehouse)
            found = plan_store_refill(spec, collect_refill(spec, places, store, from_table, reads="rows"))
        if json:
            print_json({**found.model_dump(mode="json"), "hash": found.hash})
            return
        show(found.markdown())
        source = "" if from_table is None else f" --from-table {from_table}"
        show(f"\nTo apply it: lakebound rebuild-store {pipeline} {store}{source} --apply {found.hash}")
        return
    say(f"rebuild-store: applying plan {apply}; the pipeline is held until this ends")
    user = operating_system_user()
    if from_table is None:
        carry_out = partial(apply_store_rebuild, spec, settings, store)
    else:
        carry_out = partial(apply_store_refill, spec, settings, store, from_table)
    incident = carry_out(apply, by=by or user, asked_by=user)
    if json:
        print_json({"incident": incident.model_dump(mode="json")})
        return
    show(f"rebuild-store: {incident.outcome}; incident {incident.id}")
    say_who_starts(spec, settings)
