"""``lakebound metrics``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def metrics(
    pipelines: Annotated[list[str] | None, typer.Argument(help="Pipeline names. Default: all that ever ran here.")] = None,
    output: Annotated[
        Path | None, typer.Option(help="File to replace in one step, for the node exporter's textfile collector.")
    ] = None,
) -> None:
    """Print the pipelines' metrics in Prometheus' text format, from the state alone: no table and no Kafka is asked."""
    from lakebound.metrics.page import metrics_page, write_metrics
    from lakebound.settings import load_settings

    settings = load_settings()
    if output is None:
        typer.echo(metrics_page(settings, pipelines or ()).decode(), nl=False)
    else:
        write_metrics(output, settings, pipelines or ())
