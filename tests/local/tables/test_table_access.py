"""The lines that ``lakebound tables`` prints open the table, in each tool; Spark's are run in ``tests/spark``."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.readers.frames import rows_in
from tests.support.tables.local_tables import lander, make_table, with_catalog

from lakebound.spec.table import TableSpec
from lakebound.tables.access import access_of
from lakebound.tables.iceberg.access import catalog_of
from lakebound.tables.places import Places

TOOLS = {"delta": ["pandas", "Polars", "DuckDB"], "iceberg": ["PyIceberg", "pandas", "Polars", "DuckDB"]}


@pytest.mark.filterwarnings("ignore:Iceberg scan planning")
@pytest.mark.parametrize(("format_", "tool"), [(format_, tool) for format_, tools in TOOLS.items() for tool in tools])
def test_the_lines_read_the_table(format_: str, tool: str, at: Places) -> None:
    table = TableSpec.model_validate({"format": format_, "name": "shop.orders"})
    make_table(table, at)
    lander(table, at).land(0, 5)
    access = access_of(table, at)
    assert [name for name in access.snippets if name != "Spark SQL"] == TOOLS[format_]
    names: dict[str, Any] = {}
    exec(access.snippets[tool], names)
    assert rows_in(names["frame"]) == 5


def test_a_password_is_not_shown(at: Places) -> None:
    with pytest.raises(ValueError, match="the address must not contain user and password; give them as username and password"):
        with_catalog(at, "postgresql://me:secret@host/lake")
    elsewhere = with_catalog(at, "postgresql://host/lake")
    assert (catalog_of(elsewhere).uri, catalog_of(elsewhere).jdbc_uri) == (
        "postgresql://host/lake",
        "jdbc:postgresql://host/lake",
    )
