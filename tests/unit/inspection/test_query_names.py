"""What a query may say, and what its names mean."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from lakebound.cli.query import plain, text
from lakebound.inspection.query import NotAQueryError, check_reads_only, may_be_named, names_of, resolve
from lakebound.spec.table import TableFormat, TableSpec

DELTA = TableSpec(format="delta", name="sales.orders")
ICEBERG = TableSpec(format="iceberg", name="sales.orders")
ALONE = TableSpec(format="iceberg", name="events")


@pytest.mark.parametrize(
    "sql",
    [
        "select 1",
        " WITH x as (select 1) select * from x",
        "-- why\nselect '--' from t",
        "/* delete */ (select 1)",
        "explain select 1",
        "from t",
    ],
)
def test_what_reads_is_a_query(sql: str) -> None:
    check_reads_only(sql)


@pytest.mark.parametrize(
    "sql",
    ["delete from t", "drop table t", "create table t as select 1", "truncate table t", "-- select\ndelete from t", "", "x"],
)
def test_anything_else_is_refused(sql: str) -> None:
    with pytest.raises(NotAQueryError, match="begins with SELECT or WITH"):
        check_reads_only(sql)


def test_a_name_in_both_formats_needs_a_format() -> None:
    assert resolve([DELTA, ICEBERG], None) == {
        "delta.sales.orders": DELTA,
        "iceberg.sales.orders": ICEBERG,
        "sales.orders": None,
    }
    assert resolve([DELTA, ICEBERG], "iceberg")["sales.orders"] == ICEBERG
    assert resolve([ICEBERG, DELTA], "delta")["sales.orders"] == DELTA
    assert resolve([DELTA], None)["sales.orders"] == DELTA
    assert "sales.orders" not in resolve([DELTA], "iceberg")


def test_a_table_without_a_namespace_is_in_default() -> None:
    assert names_of(ALONE) == ("events", "default.events")
    assert names_of(DELTA) == ("sales.orders",)
    assert resolve([ALONE], None)["iceberg.default.events"] == ALONE


@pytest.mark.parametrize(
    ("sql", "chosen", "meant"),
    [
        ("select * from sales.orders", None, [DELTA, ICEBERG]),
        ("select * from sales.orders", "delta", [DELTA]),
        ("select * from delta.sales.orders", None, [DELTA]),
        ('select * from "iceberg" . "sales"."orders"', "delta", [ICEBERG]),
        ("select * from delta.sales.orders join iceberg.sales.orders using (id)", None, [DELTA, ICEBERG]),
        ("select * from default.events", None, [ALONE]),
        ("select 1", None, []),
    ],
)
def test_only_tables_that_may_be_meant_are_opened(sql: str, chosen: TableFormat | None, meant: list[TableSpec]) -> None:
    assert [table for table in (DELTA, ICEBERG, ALONE) if may_be_named(sql, table, chosen)] == meant


def test_values_are_what_json_can_hold() -> None:
    at = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    value = {"at": at, "b": [b"\xffx", Decimal("1.50")], "n": float("nan"), "i": 1, "none": None}
    assert plain(value) == {"at": "2026-01-02T03:04:05+00:00", "b": ["\\xffx", "1.50"], "n": "nan", "i": 1, "none": None}
    assert (text(True), text([1]), text("ä"), text(2.5)) == ("true", "[1]", "ä", "2.5")
