"""Where tables and the state of pipelines lie."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

from lakebound.frozen import Frozen
from lakebound.settings import Settings
from lakebound.spec.state_store import StateStoreSpec, find_state_store
from lakebound.spec.table import TableSpec
from lakebound.spec.warehouse import SqlCatalogSpec, WarehouseSpec, local_warehouse
from lakebound.spec.warehouses_file import find_warehouse
from lakebound.storage.location import Location, location_of

READ_ONLY = "?mode=ro&uri=true"
"""Ends the address of a SQLite catalog that is only looked at."""

_SQLITE = "sqlite:///"


class Places(Frozen):
    """Where a pipeline's application finds tables and state. Holds no secret, but where secrets are.

    Attributes:
        home: Folder of the state.
        warehouse: Where the tables are.
        looks_only: Nothing is made or changed, not even by opening a catalog.
        references: Folder of the files that YAML may name as reference data; None: it may name none.
        state: Where the state is that machines share; None: it is in ``home``, too.
    """

    home: Path
    warehouse: WarehouseSpec
    looks_only: bool = False
    references: Path | None = None
    state: StateStoreSpec | None = None

    def folder(self, table: TableSpec) -> Location:
        """Folder of a table that no catalog names."""
        return self.root / table.format / table.namespace / table.short_name

    def delta_path(self, table: TableSpec) -> Path:
        """Folder of a Delta table on this machine."""
        return self.folder(table).path

    def read_only(self) -> Places:
        """Return the places for who must change nothing: opening a SQLite catalog neither makes it nor tidies it up."""
        return self.model_copy(update={"looks_only": True})

    @property
    def root(self) -> Location:
        """Folder below which all tables are."""
        return Location(self.warehouse.location, self.warehouse.store)

    @property
    def local_folders(self) -> tuple[Path, ...]:
        """Folders of this machine that are written."""
        return (self.root.path, self.home) if self.root.is_local else (self.home,)

    @property
    def iceberg_catalog_uri(self) -> str:
        """SQLAlchemy address of the Iceberg catalog; empty where it is none of SQL."""
        catalog = self.warehouse.catalog
        if not isinstance(catalog, SqlCatalogSpec):
            return ""
        if not self.looks_only or not catalog.uri.startswith(_SQLITE):
            return catalog.uri
        return f"{_SQLITE}file:{quote(catalog.uri.removeprefix(_SQLITE))}{READ_ONLY}"

    @property
    def iceberg_folder(self) -> Location:
        """Folder below which a SQL catalog puts tables."""
        return self.root / "iceberg"

    @property
    def iceberg_warehouse(self) -> Path:
        """The same folder, where it is on this machine."""
        return self.iceberg_folder.path

    def file_at(self, address: str) -> Location:
        """Return the file or folder at an address that a table's metadata names."""
        return location_of(address, self.warehouse.store)


def places_of(settings: Settings, warehouse: str) -> Places:
    """Return the places of the pipelines that name a warehouse.

    Args:
        settings: Of this machine.
        warehouse: The name.

    Raises:
        InvalidWarehousesError: ``warehouses.yaml`` is wrong.
        UnknownWarehouseError: No warehouse has the name.
    """
    return Places(
        home=settings.home,
        warehouse=find_warehouse(warehouse, settings),
        references=settings.references,
        state=find_state_store(settings),
    )


def local_places(home: Path, folder: Path) -> Places:
    """Return the places of an installation whose tables lie in a folder of this machine."""
    return Places(home=home, warehouse=local_warehouse(folder))
