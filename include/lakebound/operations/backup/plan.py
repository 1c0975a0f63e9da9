"""What a restore would do, with a hash of what decides it; and why it must not be done now."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from lakebound.control.applications import living_submission, pipelines_with_state
from lakebound.control.folder import ControlFolder
from lakebound.control.lease import lease_is_live, readable_lease
from lakebound.control.lock_holder import having_open, named
from lakebound.errors import LakeboundError
from lakebound.operations.backup.archive import INSTEAD, pointers_of, read_manifest
from lakebound.operations.backup.manifest import Manifest
from lakebound.settings import Settings
from lakebound.spec.state_store import refuse_with_shared_state
from lakebound.spec.times import in_utc
from lakebound.tables.iceberg.catalog_file import files_of, sqlite_file
from lakebound.tables.iceberg.local_files import local_path

_HASH_CHARACTERS = 12


class RestoreRefusedError(LakeboundError):
    """Something uses what a restore would replace, or the backup is of other places."""

    def __init__(self, source: Path, reasons: list[str]) -> None:
        super().__init__(f"backup {source} is not restored: {'; '.join(reasons)}. Nothing was replaced")


@dataclass(frozen=True)
class RestorePlan:
    """What a restore would do.

    Attributes:
        source: The backup.
        manifest: What it holds.
        epochs: Of the pipelines' leases here, by pipeline; 0 without one.
        pointers: Metadata file that the catalog here names, by table; None where there is no catalog, or it cannot be read.
        others: Pipelines with state here that the backup does not hold.
        refusals: Why it must not be done now.
    """

    source: Path
    manifest: Manifest
    epochs: dict[str, int]
    pointers: dict[str, str] | None
    others: tuple[str, ...] = ()
    refusals: tuple[str, ...] = field(default=())

    @property
    def hash(self) -> str:
        """Twelve characters of a digest of what is restored, and of what stands there now."""
        decided = [self.manifest.model_dump(mode="json"), self.epochs, self.pointers, self.others]
        return hashlib.sha256(json.dumps(decided, sort_keys=True).encode()).hexdigest()[:_HASH_CHARACTERS]

    @property
    def made_at(self) -> str:
        """When the backup was made, in UTC."""
        return in_utc(round(self.manifest.created_at) * 1000)

    def lines(self) -> Iterator[str]:
        """Yield the plan, a line each."""
        manifest = self.manifest
        yield f"backup {self.source}: of {self.made_at}, machine {manifest.host}, Lakebound {manifest.writer}"
        for pipeline in manifest.pipelines:
            yield f"- {pipeline}: its state is moved aside and replaced; it is held until lakebound start {pipeline}"
        if manifest.has_catalog:
            yield "- the Iceberg catalog is moved aside and replaced:"
            yield from (f"  - {line}" for line in self._changed_pointers())
            yield from (f"- {pipeline}: not in the backup; it is held, too" for pipeline in self.others)
        yield "- tables' data and logs are not in a backup: they stay as they are"
        if manifest.has_catalog:
            yield (
                "- lakebound doctor PIPELINE names a table that was written after the backup, and lakebound recover PIPELINE "
                "--action repoint repairs it"
            )

    def _changed_pointers(self) -> Iterator[str]:
        now = self.pointers or {}
        for table, location in self.manifest.iceberg_tables.items():
            gone = "" if local_path(location).parent.is_dir() else "; its folder is not here: copy it before you start"
            before = f"; now it names {_name(now[table])}" if now.get(table, location) != location else ""
            yield f"{table}: it will name {_name(location)}{before}{gone}"
        for table in now:
            if table not in self.manifest.iceberg_tables:
                yield (
                    f"{table}: it will not know this table: a start would create it again and hide the rows that are there; "
                    f"do not start its pipeline, and follow the runbook catalog-behind"
                )


def plan_restore(settings: Settings, source: Path) -> RestorePlan:
    """Return what a restore would do now; changes nothing.

    Args:
        settings: Of this machine.
        source: The backup.

    Raises:
        BackupError: It is no backup, or one of a later version.
    """
    refuse_with_shared_state("lakebound restore", INSTEAD)
    manifest = read_manifest(source)
    present = [control.pipeline for control in pipelines_with_state(settings)]
    known = sorted({*present, *manifest.pipelines})
    return RestorePlan(
        source=source,
        manifest=manifest,
        epochs={pipeline: _epoch(ControlFolder(settings.home, pipeline)) for pipeline in known},
        pointers=_pointers(settings),
        others=tuple(pipeline for pipeline in present if pipeline not in manifest.pipelines),
        refusals=tuple(refusals(settings, manifest)),
    )


def refusals(settings: Settings, manifest: Manifest) -> Iterator[str]:
    """Yield why nothing may be restored now."""
    yield from running(pipelines_with_state(settings))
    catalog = sqlite_file(settings.iceberg_catalog_uri)
    if manifest.has_catalog and catalog is None:
        yield "it holds a SQLite catalog, and another kind of catalog is in use here"
    if manifest.has_catalog and catalog is not None and (users := having_open(files_of(catalog))):
        yield f"the catalog {catalog} is in use by {named(users)}; end that first (lakebound down, or your Airflow)"
    if manifest.iceberg_tables and manifest.warehouse != settings.warehouse:
        yield (
            f"its catalog names files in {manifest.warehouse}, and LAKEBOUND_WAREHOUSE is {settings.warehouse}; set "
            f"LAKEBOUND_WAREHOUSE={manifest.warehouse}, and have the tables there"
        )


def running(controls: Iterable[ControlFolder]) -> Iterator[str]:
    """Yield which applications run, or hold a lease; a damaged record of a submission says nothing, the lease does."""
    for control in controls:
        living, lease = None, readable_lease(control)
        with suppress(ValueError):
            living = living_submission(control)
        if living is not None:
            yield f"the application {living.app_id} runs; stop it: lakebound stop {control.pipeline}"
        elif lease is not None and lease_is_live(control, lease, time.time()):
            yield f"{lease.app_id} holds the lease of {control.pipeline}; wait until it ends"


def _epoch(control: ControlFolder) -> int:
    lease = readable_lease(control)
    return lease.epoch if lease is not None else 0


def _pointers(settings: Settings) -> dict[str, str] | None:
    catalog = sqlite_file(settings.iceberg_catalog_uri)
    if catalog is None or not catalog.is_file():
        return None
    try:
        return pointers_of(catalog)
    except sqlite3.DatabaseError:
        return None


def _name(location: str) -> str:
    return location.rpartition("/")[2]
