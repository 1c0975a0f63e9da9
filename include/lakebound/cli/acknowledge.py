"""``lakebound acknowledge``."""

from __future__ import annotations

from typing import Annotated

import typer

from lakebound.cli.output import show


def acknowledge(
    pipeline: Annotated[str, typer.Argument(help="Pipeline name.")],
    table: Annotated[str, typer.Argument(help="Name of the table, or format:name.")],
    version: Annotated[
        list[str] | None, typer.Option("--version", help="Only this Delta version or Iceberg snapshot id; may be repeated.")
    ] = None,
    by: Annotated[str | None, typer.Option("--by", metavar="NAME", help="Who decided it. Default: this user.")] = None,
) -> None:
    """Acknowledge that others changed rows of a table: the doctor's finding rows-changed-by-others ends.

    It commits to the table, without any row, also while the stream runs. The proof with --deep still names missing and doubled
    rows.
    """
    from lakebound.control.folder import ControlFolder
    from lakebound.control.incidents import Decision, record_incident
    from lakebound.control.person import operating_system_user
    from lakebound.inspection.proof.collect import table_id
    from lakebound.operations.acknowledge import acknowledge as acknowledge_changes
    from lakebound.settings import load_settings
    from lakebound.tables.declared import owned_pipeline
    from lakebound.tables.places import places_of

    settings = load_settings()
    spec = owned_pipeline(pipeline, settings)
    wanted = table_id(spec, table)
    chosen = next(one for one in (*spec.tables, spec.quarantine_table) if one.id == wanted)
    done = acknowledge_changes(spec, chosen, places_of(settings, spec.warehouse), version or ())
    user = operating_system_user()
    what = f"changes of {wanted} by others were acknowledged: {'; '.join(map(str, done))}"
    decision = Decision(asked_by=user, approved_by=by or user)
    record_incident(ControlFolder(settings.home, pipeline), "repair", what, outcome="acknowledged", decision=decision)
    show(what)
