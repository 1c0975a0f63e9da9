"""Reads ``warehouses.yaml``, and says of each mistake in which file, line and field it is.

Whoever runs Lakebound writes the file; a pipeline names one of its warehouses. So a pipeline's author can neither write to
another bucket nor send the keys of one to an address of their own.
"""

from __future__ import annotations

from pathlib import Path

from pydantic import Field, field_validator

from lakebound.errors import InvalidWarehousesError, UnknownWarehouseError
from lakebound.frozen import Frozen
from lakebound.settings import Settings
from lakebound.spec.operators_files import checked_names, operators_path, read_operators_file
from lakebound.spec.warehouse import DEFAULT_WAREHOUSE, WarehouseSpec, local_warehouse

FILE = "warehouses.yaml"


class WarehousesSpec(Frozen):
    """The file."""

    warehouses: dict[str, WarehouseSpec] = Field(
        description="Warehouses by name; 'default' is that of pipelines that name none."
    )

    @field_validator("warehouses")
    @classmethod
    def _names(cls, warehouses: dict[str, WarehouseSpec]) -> dict[str, WarehouseSpec]:
        return checked_names(warehouses)


def warehouses_file(settings: Settings) -> Path:
    """Return where the file is, or would be: beside the folder of pipelines."""
    return operators_path(FILE, settings)


def load_warehouses(settings: Settings) -> dict[str, WarehouseSpec]:
    """Return the warehouses by name; the embedded one is ``default`` where the file names no other so.

    Raises:
        InvalidWarehousesError: The file is wrong.
    """
    embedded = {DEFAULT_WAREHOUSE: local_warehouse(settings.warehouse)}
    found = read_operators_file(warehouses_file(settings), WarehousesSpec, "warehouses", InvalidWarehousesError)
    return embedded if found is None else {**embedded, **found.warehouses}


def find_warehouse(name: str, settings: Settings) -> WarehouseSpec:
    """Return one warehouse.

    Raises:
        InvalidWarehousesError: The file is wrong.
        UnknownWarehouseError: No warehouse has the name.
    """
    known = load_warehouses(settings)
    if name not in known:
        raise UnknownWarehouseError(name, sorted(known), warehouses_file(settings))
    return known[name]
