"""An Iceberg table keeps no epoch beside its entries."""

from __future__ import annotations

from lakebound.spec.table import TableSpec
from lakebound.tables.places import Places


def remembered_epoch(spec: TableSpec, places: Places) -> int | None:
    """Return None: there is only the entry."""
    return None
