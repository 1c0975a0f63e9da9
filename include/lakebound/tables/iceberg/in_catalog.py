"""The Iceberg catalog: whether it answers, and lets its user do what is needed; and a repair of what it says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from lakebound.errors import LakeboundError
from lakebound.redaction import NOT_SHOWN, redacted
from lakebound.spec.table import TableSpec
from lakebound.spec.warehouse import SqlCatalogSpec
from lakebound.tables.catalogs import FormatCatalog
from lakebound.tables.places import Places

if TYPE_CHECKING:
    from lakebound.tables.iceberg.catalog import LedgerCatalog
    from lakebound.tables.iceberg.rest import RestLedgerCatalog

_RIGHTS = ("SELECT", "INSERT", "UPDATE", "DELETE")
_TABLES = ("iceberg_tables", "iceberg_namespace_properties")


class IcebergCatalog(FormatCatalog):
    """The catalog of a warehouse."""

    def problems(self, places: Places, tables: Sequence[TableSpec]) -> list[str]:
        """Return what is wrong with it; the embedded one is not asked."""
        catalog = places.warehouse.catalog
        if isinstance(catalog, SqlCatalogSpec) and catalog.is_sqlite:
            return []
        try:
            return list(_problems(places.read_only(), tables))
        except LakeboundError as exc:
            return [str(exc)]
        except Exception as exc:  # of a driver or a server: whatever it is, who runs the check is told of it
            return [
                f"the Iceberg catalog cannot be used: {redacted(exc, NOT_SHOWN)}; check its address, login and other settings"
            ]

    def name_metadata(self, spec: TableSpec, places: Places, named: str, newest: str) -> None:
        """Have it name another metadata file of a table."""
        from lakebound.tables.iceberg.open import open_catalog
        from lakebound.tables.iceberg.pointer import move_pointer

        move_pointer(open_catalog(places), spec, named, newest)


CATALOG = IcebergCatalog()


def _problems(places: Places, tables: Sequence[TableSpec]) -> Iterator[str]:
    from lakebound.tables.iceberg.catalog import LedgerCatalog
    from lakebound.tables.iceberg.open import open_catalog
    from lakebound.tables.iceberg.rest import RestLedgerCatalog

    catalog = open_catalog(places)
    if isinstance(catalog, LedgerCatalog):
        yield from _missing_rights(catalog)
        return
    catalog.list_namespaces()
    if isinstance(catalog, RestLedgerCatalog):
        yield from _vended_keys(catalog, places, tables)


def _missing_rights(catalog: LedgerCatalog) -> Iterator[str]:
    from sqlalchemy import inspect, text

    there = set(inspect(catalog.engine).get_table_names())
    with catalog.engine.connect() as connection:
        if not there.issuperset(_TABLES):
            may_create = connection.scalar(text("SELECT has_schema_privilege(current_schema(), 'CREATE')"))
            if not may_create:
                yield "catalog.username: the user may not create the catalog's tables; grant it CREATE on the schema"
            return
        for table in _TABLES:
            asked = {
                right: connection.scalar(text("SELECT has_table_privilege(:t, :r)"), {"t": table, "r": right})
                for right in _RIGHTS
            }
            if missing := [right for right, may in asked.items() if not may]:
                yield f"catalog.username: the user may not {', '.join(missing)} in {table}; grant it that"


def _vended_keys(catalog: RestLedgerCatalog, places: Places, tables: Sequence[TableSpec]) -> Iterator[str]:
    """Yield what is wrong where the catalog hands out keys, and the warehouse has none of its own."""
    from pyiceberg.exceptions import NoSuchTableError

    store = places.warehouse.store
    if places.root.is_local or (store is not None and store.access_key_id is not None):
        return
    for table in tables:
        try:
            handed = catalog.vended((table.namespace, table.short_name))
        except NoSuchTableError:
            continue
        if handed:
            yield (
                f"store: the catalog hands out keys for table {table.id} ({', '.join(sorted(handed))}), and Lakebound does not "
                f"use such keys; give the warehouse keys of its own as access_key_id and secret_access_key"
            )
            return
