"""``lakebound stop``: says that a pipeline shall not run."""

from __future__ import annotations

import getpass
from typing import Annotated

import typer


def stop(
    pipeline: Annotated[str, typer.Argument(help="Pipeline name.")],
    reason: Annotated[str, typer.Option("--reason", help="The reason; `lakebound status` shows it.")] = "",
) -> None:
    """Stop a pipeline: its application ends after the current batch, and nothing starts it until `lakebound start`."""
    from lakebound.control.desired import change_desired
    from lakebound.control.folder import ControlFolder
    from lakebound.settings import load_settings
    from lakebound.tables.declared import owned_pipeline

    settings = load_settings()
    control = ControlFolder(settings.home, owned_pipeline(pipeline, settings).pipeline)
    change_desired(control, "stopped", reason=reason or "lakebound stop", by=getpass.getuser())
    typer.echo(f"{pipeline}: the desired state is stopped; it ends after the current batch. See: lakebound status {pipeline}")
