"""Where a table lies, and the lines that open it in Spark SQL, pandas, Polars, DuckDB and PyIceberg. Nothing is opened."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lakebound.spec.table import TableSpec
from lakebound.tables.formats import PerFormat
from lakebound.tables.places import Places


@dataclass(frozen=True)
class IcebergCatalog:
    """The catalog of the Iceberg tables. Names no secret.

    Attributes:
        name: By which PyIceberg and Spark know it.
        kind: ``sql``, ``rest`` or ``glue``.
        uri: Its address, as PyIceberg takes it; of Glue its region.
        jdbc_uri: Its address as Spark takes it; empty where it is not of SQL.
        warehouse: The folder below which its tables lie.
    """

    name: str
    kind: str
    uri: str
    jdbc_uri: str
    warehouse: str


@dataclass(frozen=True)
class TableAccess:
    """How to open one table.

    Attributes:
        path: Its folder.
        catalog: Of an Iceberg table; None of a Delta table, whose folder says all.
        snippets: Per tool, the lines that read it.
    """

    path: str
    catalog: IcebergCatalog | None
    snippets: dict[str, str]


_ACCESS: PerFormat[Callable[[TableSpec, Places], TableAccess]] = PerFormat("lakebound.tables", "access:access_of")


def access_of(table: TableSpec, places: Places) -> TableAccess:
    """Return how to open a table, which need not exist yet."""
    return _ACCESS.of(table.format)(table, places)
