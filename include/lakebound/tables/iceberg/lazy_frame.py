"""An Iceberg table as Polars reads it."""

from __future__ import annotations

import polars as pl

from lakebound.spec.table import TableSpec
from lakebound.tables.iceberg.open import open_catalog
from lakebound.tables.lazy_frame import store_options
from lakebound.tables.places import Places


def lazy_frame(table: TableSpec, places: Places, version: int | None) -> pl.LazyFrame:
    """Return a table that exists, at a snapshot; None: the current one."""
    loaded = open_catalog(places).load_table((table.namespace, table.short_name))
    return pl.scan_iceberg(loaded, snapshot_id=version, storage_options=store_options(places.root))
