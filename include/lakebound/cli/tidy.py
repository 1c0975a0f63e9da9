"""``lakebound tidy``: removes old logs and scratch now, and not only once an hour."""

from __future__ import annotations

from typing import Annotated

import typer

from lakebound.cli.output import Json, print_json, show


def tidy(
    plan: Annotated[bool, typer.Option("--plan", help="Only say how much would be removed.")] = False,
    keep_days: Annotated[
        float | None,
        typer.Option("--keep-days", min=1, help="Remove files older than this many days. Default: LAKEBOUND_KEEP_DAYS."),
    ] = None,
    json: Json = False,
) -> None:
    """Remove old logs, outcomes and scratch of applications, and logs of the embedded Airflow.

    The rounds of alerts do this once an hour. Files of running applications and of the last application of each pipeline are
    kept, and so are files that a repair, an undo or a proof needs.
    """
    import time
    from dataclasses import replace

    from lakebound.control.disks import in_words
    from lakebound.control.old_files import Removed, old_files, remove_old_files
    from lakebound.settings import load_settings

    settings = load_settings()
    if keep_days is not None:
        settings = replace(settings, keep_days=keep_days)
    if plan:
        old = old_files(settings, time.time())
        removed = Removed(len(old), sum(file.size_bytes for file in old))
    else:
        removed = remove_old_files(settings, time.time())
    if json:
        print_json({"is_plan": plan, "files": removed.files, "bytes": removed.bytes})
        return
    show(f"{'to be removed' if plan else 'removed'}: {removed.files} files, {in_words(removed.bytes)}")
