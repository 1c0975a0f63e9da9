"""Reads ``warehouses.yaml``, and says of each mistake in which file, line and field it is.

Whoever runs Lakebound writes the file; a pipeline names one of its warehouses. So a pipeline's author can neither write to
another bucket nor send the keys of one to an address of their own.
"""

from __future__ import annotations

import re
from pathlib import Path

from pydantic import Field, field_validator

from lakebound.errors import InvalidWarehousesError, UnknownWarehouseError
from lakebound.frozen import Frozen
from lakebound.settings import Settings
from lakebound.spec.table import NAME
from lakebound.spec.warehouse import DEFAULT_WAREHOUSE, WarehouseSpec, local_warehouse
from lakebound.spec.yaml_model import read_model

FILE = "warehouses.yaml"


class WarehousesSpec(Frozen):
    """The file."""

    warehouses: dict[str, WarehouseSpec] = Field(
        description="Warehouses by name; 'default' is that of pipelines that name none."
    )

    @field_validator("warehouses")
    @classmethod
    def _names(cls, warehouses: dict[str, WarehouseSpec]) -> dict[str, WarehouseSpec]:
        for name in warehouses:
            if not re.fullmatch(NAME, name):
                raise ValueError(f"{name!r} must be lower-case letters, digits and _, beginning with a letter")
        return warehouses


def warehouses_file(settings: Settings) -> Path:
    """Return where the file is, or would be: beside the folder of pipelines."""
    return settings.pipelines.parent / FILE


def load_warehouses(settings: Settings) -> dict[str, WarehouseSpec]:
    """Return the warehouses by name; the embedded one is ``default`` where the file names no other so.

    Raises:
        InvalidWarehousesError: The file is wrong.
    """
    embedded = {DEFAULT_WAREHOUSE: local_warehouse(settings.warehouse)}
    path = warehouses_file(settings)
    if not path.exists() and not path.is_symlink():
        return embedded
    found, problems = read_model(path, WarehousesSpec, "warehouses")
    if found is None:
        raise InvalidWarehousesError(problems)
    return {**embedded, **found.warehouses}


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
