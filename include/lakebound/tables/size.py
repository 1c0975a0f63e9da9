"""How much a table holds, from its metadata alone."""

from __future__ import annotations

from dataclasses import dataclass

from lakebound.spec.table import TableSpec
from lakebound.tables.places import Places


@dataclass(frozen=True)
class TableSize:
    """What the table's current version holds."""

    rows: int
    files: int
    size_bytes: int


def table_size(spec: TableSpec, places: Places) -> TableSize:
    """Return what an existing table holds, without reading a data file."""
    return _delta_size(spec, places) if spec.format == "delta" else _iceberg_size(spec, places)


def may_exist(spec: TableSpec, places: Places) -> bool:
    """Whether it is worth asking for the table: asking for an Iceberg table would make a catalog that is not there."""
    if spec.format != "iceberg":
        return True
    from lakebound.tables.iceberg.catalog_file import sqlite_file

    if places.warehouse.catalog is None:
        return False
    catalog = sqlite_file(places.iceberg_catalog_uri)
    return catalog is None or catalog.is_file()


def _delta_size(spec: TableSpec, places: Places) -> TableSize:
    import pyarrow as pa

    from lakebound.tables.delta.open import open_delta

    files = pa.table(open_delta(places.folder(spec), spec.id).get_add_actions(flatten=True))
    rows, sizes = files["num_records"].to_pylist(), files["size_bytes"].to_pylist()
    return TableSize(sum(count or 0 for count in rows), len(sizes), sum(sizes))


def _iceberg_size(spec: TableSpec, places: Places) -> TableSize:
    from lakebound.tables.iceberg.open import open_catalog

    catalog = open_catalog(places)
    snapshot = catalog.load_table((spec.namespace, spec.short_name)).current_snapshot()
    if snapshot is None or snapshot.summary is None:
        return TableSize(0, 0, 0)

    def number(name: str) -> int:
        return int((snapshot.summary[name] if snapshot.summary else None) or 0)

    return TableSize(number("total-records"), number("total-data-files"), number("total-files-size"))
