"""Tables as Polars reads them. Nothing of their data is read yet."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from lakebound.spec.table import TableSpec
from lakebound.storage.location import Location
from lakebound.tables.formats import PerFormat
from lakebound.tables.places import Places

if TYPE_CHECKING:
    import polars as pl

_FRAMES: PerFormat[Callable[[TableSpec, Places, int | None], pl.LazyFrame]] = PerFormat(
    "lakebound.tables", "lazy_frame:lazy_frame"
)


def scan_table(table: TableSpec, places: Places, version: str | None = None) -> pl.LazyFrame:
    """Return a table that exists as Polars reads it.

    Args:
        table: The table.
        places: Where it is.
        version: Delta version or Iceberg snapshot id; None: the newest.
    """
    return _FRAMES.of(table.format)(table, places, None if version is None else int(version))


def store_options(place: Location) -> dict[str, str] | None:
    """Return what Polars is told of a store; None of a folder of this machine."""
    options = place.delta_options
    if options is None:
        return None
    return {
        name: value for name, value in options.items() if name.startswith("aws_")
    }  # it has other names for how often it tries
