"""What one application is told: the whole spec as one argument, and never a secret."""

from __future__ import annotations

import hashlib
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from lakebound.control import ControlFolder
from lakebound.desired import Bound, Desired
from lakebound.settings import Settings
from lakebound.spec import PipelineSpec, TableSpec

READ_ONLY = "?mode=ro&uri=true"
"""Ends the address of a SQLite catalog that is only looked at."""


class Places(BaseModel):
    """Where the application finds tables and state."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    home: Path
    warehouse: Path
    iceberg_catalog_uri: str

    def delta_path(self, table: TableSpec) -> Path:
        """Folder of a Delta table."""
        return self.warehouse / "delta" / table.namespace / table.short_name

    def read_only(self) -> Places:
        """Return the places for who must change nothing: opening a SQLite catalog neither makes it nor tidies it up."""
        prefix = "sqlite:///"
        if not self.iceberg_catalog_uri.startswith(prefix) or READ_ONLY in self.iceberg_catalog_uri:
            return self
        path = self.iceberg_catalog_uri.removeprefix(prefix)
        return self.model_copy(update={"iceberg_catalog_uri": f"{prefix}file:{path}{READ_ONLY}"})

    @property
    def iceberg_warehouse(self) -> Path:
        """Folder below which the Iceberg catalog puts tables."""
        return self.warehouse / "iceberg"


class RunSpec(BaseModel):
    """One application's orders."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    spec: PipelineSpec
    places: Places
    app_id: str
    generation: int = 0
    freshness: str
    until: Bound | None = None
    source_hash: str = ""
    trace: bool = False

    @property
    def control(self) -> ControlFolder:
        """The pipeline's folder."""
        return ControlFolder(self.places.home, self.spec.pipeline)


def places_of(settings: Settings) -> Places:
    """Return the places of this machine."""
    return Places(home=settings.home, warehouse=settings.warehouse, iceberg_catalog_uri=settings.iceberg_catalog_uri)


def make_run_spec(spec: PipelineSpec, settings: Settings, desired: Desired, app_id: str) -> RunSpec:
    """Return the orders for an application that is about to be submitted."""
    return RunSpec(
        spec=spec,
        places=places_of(settings),
        app_id=app_id,
        generation=desired.generation,
        freshness=desired.freshness or spec.freshness,
        until=desired.until,
        source_hash=source_hash(spec, settings.apps),
    )


def source_hash(spec: PipelineSpec, apps: Path) -> str:
    """Return a short hash of the YAML's meaning and of the transform's module, by which an application shows as outdated."""
    # Maintenance is another application's: a change of its policy needs no restart.
    digest = hashlib.sha256(spec.model_dump_json(by_alias=True, exclude={"maintenance"}).encode())
    if spec.transform:
        module = apps.joinpath(*spec.transform.split(".")[:-1]).with_suffix(".py")
        if module.is_file():
            digest.update(module.read_bytes())
    return digest.hexdigest()[:16]
