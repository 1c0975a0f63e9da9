"""How much a table holds, from its metadata alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lakebound.spec.table import TableSpec
from lakebound.tables.format_rules import rules_of
from lakebound.tables.formats import PerFormat
from lakebound.tables.places import Places


@dataclass(frozen=True)
class TableSize:
    """What the table's current version holds."""

    rows: int
    files: int
    size_bytes: int


_SIZES: PerFormat[Callable[[TableSpec, Places], TableSize]] = PerFormat("lakebound.tables", "size:table_size")


def table_size(spec: TableSpec, places: Places) -> TableSize:
    """Return what an existing table holds, without reading a data file."""
    return _SIZES.of(spec.format)(spec, places)


def may_exist(spec: TableSpec, places: Places) -> bool:
    """Whether it is worth asking for the table: asking for an Iceberg table would make a catalog that is not there."""
    return rules_of(spec.format).may_exist(places)
