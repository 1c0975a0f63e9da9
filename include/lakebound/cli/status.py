"""``lakebound status``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lakebound.cli.output import Json, duration, number, print_json, print_rows

if TYPE_CHECKING:
    from lakebound.control.status import PipelineStatus
    from lakebound.ledger.marks import NextOffsets
    from lakebound.local.stack import ServiceStatus
    from lakebound.settings import Settings

MAX_PARTITIONS_SHOWN = 8


def status(
    pipeline: Annotated[str | None, typer.Argument(help="Pipeline name. Default: all pipelines.")] = None, json: Json = False
) -> None:
    """Show services and pipelines: desired state, application, lag, freshness, last commit and next offsets."""
    from lakebound.control.status import pipeline_statuses
    from lakebound.errors import UnknownPipelineError
    from lakebound.local.stack import status as services_status
    from lakebound.settings import load_settings
    from lakebound.tables.declared import shown_pipelines

    settings = load_settings()
    services = services_status(settings)
    loaded = shown_pipelines(settings)
    pipelines = pipeline_statuses(settings, pipeline, _paused(settings), loaded)
    if pipeline is not None and not pipelines:
        raise UnknownPipelineError(pipeline, list(loaded.specs), settings.pipelines)
    if json:
        print_json({"home": str(settings.home), **_body(services, pipelines, loaded.problems)})
        return
    typer.echo(f"LAKEBOUND_HOME: {settings.home}")
    _print_services(services)
    _print_pipelines(pipelines)
    for problem in loaded.problems:
        typer.echo(problem)


def _paused(settings: Settings) -> dict[str, bool]:
    """Return whether each DAG of the embedded Airflow is paused; nothing where there is none, or it does not answer."""
    import httpx

    from lakebound.errors import LakeboundError
    from lakebound.local.stack import airflow_of

    airflow = airflow_of(settings)
    if not airflow.is_led:
        return {}
    try:
        with airflow.client() as client:
            return {name: bool(dag["is_paused"]) for name, dag in client.dags().items()}
    except (LakeboundError, httpx.HTTPError, OSError):
        return {}


def _body(services: Sequence[ServiceStatus], pipelines: Sequence[PipelineStatus], problems: list[str]) -> dict[str, Any]:
    return {
        "services": [asdict(service) for service in services],
        "pipelines": [found.model_dump(mode="json") for found in pipelines],
        "problems": problems,
    }


def _print_services(services: Sequence[ServiceStatus]) -> None:
    rows = [
        (
            service.name,
            "running" if service.running else "down",
            (service.address or "-") if service.running else "-",
            f"{service.memory_megabytes} MB" if service.running else "-",
            str(service.log) if service.log.exists() else "-",
        )
        for service in services
    ]
    print_rows(("SERVICE", "STATE", "ADDRESS", "MEMORY", "LOG"), rows)


def _print_pipelines(pipelines: Sequence[PipelineStatus]) -> None:
    if not pipelines:
        typer.echo("no pipelines")
        return
    headers = ("PIPELINE", "DESIRED", "APPLICATION", "LAG*", "FRESHNESS*", "LAST COMMIT", "NEXT OFFSETS")
    rows = [
        (
            found.pipeline,
            found.desired,
            found.app + (" (outdated)" if found.outdated else ""),
            number(found.lag_records) + (" records" if found.lag_records is not None else ""),
            duration(found.freshness_seconds),
            duration(found.last_commit_age_seconds) + (" ago" if found.last_commit_age_seconds is not None else ""),
            _marks(found.high_water_marks),
        )
        for found in pipelines
    ]
    print_rows(headers, rows)
    for found in pipelines:
        by = f" by {found.desired_by}" if found.desired_by else ""
        notes = [*found.notes] if not found.reason else [f"{found.desired}{by}: {found.reason}", *found.notes]
        for note in notes:
            typer.echo(f"{found.pipeline}: {note}")
        if found.spark_ui:
            typer.echo(f"{found.pipeline}: Spark UI {found.spark_ui}")
    typer.echo(
        "* as the application reports: lag behind Kafka's end offsets when it last read them; age of the newest record at its "
        "last commit"
    )


def _marks(marks: NextOffsets) -> str:
    return "\n".join(f"{topic} {_partitions(partitions)}" for topic, partitions in sorted(marks.items())) or "-"


def _partitions(partitions: Mapping[int, int]) -> str:
    shown = [f"{partition}:{mark}" for partition, mark in sorted(partitions.items())[:MAX_PARTITIONS_SHOWN]]
    rest = len(partitions) - len(shown)
    return " ".join(shown) + (f" and {rest} more (--json)" if rest else "")
