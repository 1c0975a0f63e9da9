"""How much an Iceberg table holds."""

from __future__ import annotations

from lakebound.spec.table import TableSpec
from lakebound.tables.iceberg.open import open_catalog
from lakebound.tables.places import Places
from lakebound.tables.size import TableSize


def table_size(spec: TableSpec, places: Places) -> TableSize:
    """Return what the current snapshot holds, by its summary."""
    snapshot = open_catalog(places).load_table((spec.namespace, spec.short_name)).current_snapshot()
    if snapshot is None or snapshot.summary is None:
        return TableSize(0, 0, 0)
    said = snapshot.summary
    rows, files, size_bytes = (int(said[name] or 0) for name in ("total-records", "total-data-files", "total-files-size"))
    return TableSize(rows, files, size_bytes)
