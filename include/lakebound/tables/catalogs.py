"""The catalogs that name tables: what ``lakebound check`` asks of them, and what a repair tells them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lakebound.spec.table import TableSpec
from lakebound.tables.formats import PerFormat
from lakebound.tables.places import Places


class FormatCatalog:
    """The catalog of one format; this is that of a format whose tables are found by their folders: there is none."""

    def problems(self, places: Places, tables: Sequence[TableSpec]) -> list[str]:
        """Return what is wrong with it; writes nothing.

        Args:
            places: Of the pipelines that name the warehouse.
            tables: Their tables of the format.
        """
        return []

    def name_metadata(self, spec: TableSpec, places: Places, named: str, newest: str) -> None:
        """Have it name another metadata file of a table.

        Args:
            spec: The table.
            places: Where it is.
            named: The file that it names.
            newest: The one that it is to name.

        Raises:
            CommitRefusedError: It names another file meanwhile.
        """
        raise NotImplementedError(f"no catalog names table {spec.id}")


_CATALOGS: PerFormat[FormatCatalog] = PerFormat("lakebound.tables", "in_catalog:CATALOG")


def catalog_of(format_: str) -> FormatCatalog:
    """Return the catalog of a format.

    Args:
        format_: Its name, as in the YAML.
    """
    return _CATALOGS.of(format_)


def catalog_problems(places: Places, tables: Iterable[TableSpec]) -> list[str]:
    """Return what is wrong with the catalogs of a warehouse; writes nothing.

    Args:
        places: Of the pipelines that name the warehouse.
        tables: Their tables; of those that a catalog names it is asked.
    """
    by_format: dict[str, list[TableSpec]] = {}
    for table in tables:
        by_format.setdefault(table.format, []).append(table)
    return [problem for format_, own in by_format.items() for problem in catalog_of(format_).problems(places, own)]
