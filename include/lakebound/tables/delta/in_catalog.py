"""No catalog names a Delta table: it is where its folder is."""

from __future__ import annotations

from lakebound.tables.catalogs import FormatCatalog

CATALOG = FormatCatalog()
