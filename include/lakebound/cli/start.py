"""``lakebound start``: says that a pipeline may run, whatever kept it from running."""

from __future__ import annotations

import getpass
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from lakebound.settings import Settings


def start(
    pipeline: Annotated[str, typer.Argument(help="Pipeline name.")],
    reason: Annotated[str, typer.Option("--reason", help="The reason; `lakebound status` shows it.")] = "",
) -> None:
    """Start a pipeline. This ends a stop, a hold or a crash loop, and unpauses its DAG in the embedded Airflow."""
    from lakebound.control.desired import change_desired
    from lakebound.control.folder import ControlFolder
    from lakebound.settings import load_settings
    from lakebound.tables.declared import owned_pipeline

    settings = load_settings()
    spec = owned_pipeline(pipeline, settings)
    control = ControlFolder(settings.home, spec.pipeline)
    change_desired(control, "running", reason=reason or "lakebound start", by=getpass.getuser())
    dag = f"ingest__{spec.pipeline}"
    if _unpause(dag, settings):
        typer.echo(
            f"{spec.pipeline}: the desired state is running, and the DAG {dag} is unpaused; see: lakebound status "
            f"{spec.pipeline}"
        )
    else:
        typer.echo(
            f"{spec.pipeline}: the desired state is running. No embedded Airflow runs here: unpause the DAG {dag} in your "
            f"Airflow, or run the pipeline without Airflow: lakebound run {spec.pipeline}"
        )


def _unpause(dag: str, settings: Settings) -> bool:
    from lakebound.local.stack import airflow_of

    airflow = airflow_of(settings)
    if not airflow.is_led:
        return False
    with airflow.client() as client:
        client.unpause(dag)
    return True
