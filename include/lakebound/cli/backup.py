"""``lakebound backup`` and ``lakebound restore``: what is beside the tables."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from lakebound.cli.output import Json, print_json, say, show


def backup(
    target: Annotated[
        Path, typer.Argument(help="Path of the new file, or a folder. In a folder, the file is named after the current time.")
    ],
    json: Json = False,
) -> None:
    """Copy the pipelines' state and the Iceberg catalog into one private file, while streams run.

    The file does not contain the tables' data, logs, the memory of the alerts, or the embedded services. Each table contains
    its own ledger; docs/how-to/recovery.md says how to copy tables.
    """
    from lakebound.operations.backup.archive import write_backup
    from lakebound.settings import load_settings

    path, manifest = write_backup(load_settings(), target)
    if json:
        print_json({"file": str(path), "pipelines": manifest.pipelines, **manifest.model_dump(mode="json")})
        return
    tables = f"the Iceberg catalog with {len(manifest.iceberg_tables)} tables" if manifest.has_catalog else "no Iceberg catalog"
    named = ", ".join(manifest.pipelines) or "none"
    show(f"{path}: state of the pipelines {named}; {tables}; {len(manifest.files)} files, {path.stat().st_size:,} bytes")
    say("backup: the tables' data is not in the file; keep the file private and on another disk")


def restore(
    source: Annotated[Path, typer.Argument(help="A file that `lakebound backup` made.")],
    plan: Annotated[bool, typer.Option("--plan", help="Show the plan (default).")] = False,
    apply: Annotated[str | None, typer.Option("--apply", metavar="HASH", help="Apply the plan with this hash.")] = None,
    json: Json = False,
) -> None:
    """Plan to restore a backup, or apply the plan.

    It is refused while an application runs, holds a lease, or uses the catalog. The present state is moved aside;
    nothing is deleted. Every restored pipeline is held until a person starts it.
    """
    from lakebound.control.person import operating_system_user
    from lakebound.operations.backup.plan import RestoreRefusedError, plan_restore
    from lakebound.operations.backup.restore import apply_restore
    from lakebound.settings import load_settings

    if plan and apply is not None:
        raise typer.BadParameter("give --plan or --apply HASH", param_hint="--plan")
    settings = load_settings()
    if apply is not None:
        done = apply_restore(settings, source, apply, by=operating_system_user())
        _print_restored(done.plan.manifest.pipelines, done.aside, done.catalog_aside, json)
        return
    found = plan_restore(settings, source)
    if json:
        print_json({**asdict(found), "manifest": found.manifest.model_dump(mode="json"), "hash": found.hash})
    else:
        for line in found.lines():
            show(line)
    if found.refusals:
        raise RestoreRefusedError(source, list(found.refusals))
    if not json:
        show(f"\nTo apply it: lakebound restore {source} --apply {found.hash}")


def _print_restored(pipelines: list[str], aside: Path, catalog_aside: Path | None, json: bool) -> None:
    if json:
        print_json({"restored": pipelines, "aside": aside, "catalog_aside": catalog_aside})
        return
    for pipeline in pipelines:
        show(f"{pipeline}: restored and held; look at it (lakebound doctor {pipeline}), then: lakebound start {pipeline}")
    show(f"the previous state is in {aside}" + (f"; the previous catalog is {catalog_aside}" if catalog_aside else ""))
