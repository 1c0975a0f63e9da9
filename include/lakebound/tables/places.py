"""Where tables and the state of pipelines lie."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

from lakebound.frozen import Frozen
from lakebound.settings import Settings
from lakebound.spec.pipeline import TableSpec

READ_ONLY = "?mode=ro&uri=true"
"""Ends the address of a SQLite catalog that is only looked at."""


class Places(Frozen):
    """Where the application finds tables and state."""

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
        return self.model_copy(update={"iceberg_catalog_uri": f"{prefix}file:{quote(path)}{READ_ONLY}"})

    @property
    def iceberg_warehouse(self) -> Path:
        """Folder below which the Iceberg catalog puts tables."""
        return self.warehouse / "iceberg"


def places_of(settings: Settings) -> Places:
    """Return the places of this machine."""
    return Places(home=settings.home, warehouse=settings.warehouse, iceberg_catalog_uri=settings.iceberg_catalog_uri)
