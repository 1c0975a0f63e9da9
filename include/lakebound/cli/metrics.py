"""``lakebound metrics``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def metrics(
    pipelines: Annotated[
        list[str] | None, typer.Argument(help="Pipeline names. Default: all pipelines that have run here.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option(help="Write to this file in one atomic step, for the node exporter's textfile collector.")
    ] = None,
) -> None:
    """Print the pipelines' metrics in Prometheus' text format. They come from the state; tables and Kafka are not read."""
    from lakebound.metrics.page import metrics_page, write_metrics
    from lakebound.settings import load_settings

    settings = load_settings()
    if output is None:
        typer.echo(metrics_page(settings, pipelines or ()).decode(), nl=False)
    else:
        write_metrics(output, settings, pipelines or ())
