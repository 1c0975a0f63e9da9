"""A Delta table as Polars reads it."""

from __future__ import annotations

import polars as pl

from lakebound.spec.table import TableSpec
from lakebound.tables.lazy_frame import store_options
from lakebound.tables.places import Places


def lazy_frame(table: TableSpec, places: Places, version: int | None) -> pl.LazyFrame:
    """Return a table that exists, at a version; None: the newest."""
    folder = places.folder(table)
    return pl.scan_delta(folder.address, version=version, storage_options=store_options(folder))
