"""The page that says how to read tables, block by block; and the tables that its snippets read."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa

from lakebound.spec.table import TableSpec
from lakebound.tables.places import Places
from lakebound.tables.table import KAFKA_TYPE
from tests.support.tables.bad_orders import land, make

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "read-tables.md"
FOLDER = "/srv/lakebound"
"""Stands on the page for the folder in which Lakebound was started."""

SCHEMA = pa.schema(
    [
        pa.field("order_id", pa.string()),
        pa.field("status", pa.string()),
        pa.field("total", pa.float64()),
        pa.field("_kafka", KAFKA_TYPE),
    ]
)
STATUSES = ("placed", "paid", "shipped")
ROWS, PAID = 9, 3
TABLES = [TableSpec.model_validate({"format": name, "name": "sales.orders"}) for name in ("delta", "iceberg")]


def blocks(language: str) -> list[str]:
    """Return the page's blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)


def make_page_tables(at: Places) -> None:
    """Make the tables of the page, with a few orders in each."""
    place = {"topic": "orders", "topic_id": "t", "partition": 0, "timestamp": 1, "ordinal": 0}
    orders = [
        {"order_id": f"o-{number}", "status": STATUSES[number % 3], "total": 1.5 * number, "_kafka": place | {"offset": number}}
        for number in range(ROWS)
    ]
    for table in TABLES:
        make(table, at, SCHEMA)
        land(table, at, pa.Table.from_pylist(orders, schema=SCHEMA), 0)
