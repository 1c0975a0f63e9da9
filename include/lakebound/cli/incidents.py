"""``lakebound incidents``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from lakebound.cli.output import Json, moment, number, print_json, print_rows, show

if TYPE_CHECKING:
    from lakebound.control.incidents import Incident


def incidents(
    pipeline: Annotated[str | None, typer.Argument(help="Pipeline name. Default: all pipelines.")] = None, json: Json = False
) -> None:
    """List incidents and the repairs that followed, newest first."""
    from lakebound.control.applications import pipelines_with_state
    from lakebound.control.folder import ControlFolder
    from lakebound.control.incidents import read_incidents
    from lakebound.settings import load_settings
    from lakebound.tables.declared import owned_pipeline

    settings = load_settings()
    folders = pipelines_with_state(settings)
    if pipeline is not None:
        folders = [folder for folder in folders if folder.pipeline == pipeline]
        if not folders:
            owned_pipeline(pipeline, settings)  # says so if there is no such pipeline
            folders = [ControlFolder(settings.home, pipeline)]
    found = sorted(
        (incident for folder in folders for incident in read_incidents(folder)), key=lambda one: one.at, reverse=True
    )
    if json:
        print_json([incident.model_dump(mode="json") for incident in found])
        return
    if not found:
        show("no incidents")
        return
    headers = ("AT (UTC)", "PIPELINE", "KIND", "WHAT", "LOST", "ASKED BY", "APPROVED BY", "OUTCOME", "RUNBOOK")
    print_rows(headers, [_row(incident) for incident in found], right=("LOST",))


def _row(incident: Incident) -> tuple[str, ...]:
    from lakebound.ledger.marks import loss

    lost = loss(incident.loses)
    return (
        moment(int(incident.at * 1000)),
        incident.pipeline,
        incident.kind,
        incident.what,
        number(lost) if lost else "-",
        incident.asked_by or "-",
        incident.approved_by or "-",
        incident.outcome or "-",
        incident.runbook or "-",
    )
