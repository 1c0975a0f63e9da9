"""What a query may say, and what its names mean."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from lakebound.cli.query import plain, text
from lakebound.inspection.query import (
    NotAQueryError,
    QueryError,
    check_reads_only,
    may_be_named,
    names_of,
    resolve,
    run_query,
)
from lakebound.inspection.query_headings import headings
from lakebound.spec.table import TableSpec
from lakebound.spec.table_format import TableFormat

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


@pytest.mark.parametrize(
    ("sql", "columns", "shown"),
    [
        ("select count(*) from t", ["len"], ["count(*)"]),
        ("SELECT s, count( x ) from t group by s", ["s", "x"], ["s", "count( x )"]),
        ("select count(*) as n, sum(x) total, 'a,b' from t", ["n", "total", "literal"], ["n", "total", "literal"]),
        ("select max(x) - min(x), abs(x) from t", ["x", "x:1"], ["x", "abs(x)"]),
        ("select coalesce(a, 'x)', b) from (select 1, 2 from u)", ["a"], ["coalesce(a, 'x)', b)"]),
        ("select count(*), t.* from t", ["len", "a", "b"], ["len", "a", "b"]),
        ("with a as (select count(*) from t) select * from a", ["len"], ["len"]),
        ("select 'it''s', count(*) from t", ["literal", "len"], ["literal", "count(*)"]),
        ("select abs(x), abs(x) from t", ["x", "x:1"], ["x", "x:1"]),
        ("", [], []),
    ],
)
def test_a_column_without_an_alias_is_headed_by_what_it_is(sql: str, columns: list[str], shown: list[str]) -> None:
    assert list(headings(sql, columns)) == shown


@pytest.mark.parametrize("name", ["iceberg:lake.scans", "delta:events"])
def test_a_table_that_is_named_as_status_names_it_gets_the_name_for_queries(name: str) -> None:
    with pytest.raises(QueryError, match=f"write {name.replace(':', '.')} instead of {name}$"):
        run_query(f"select count(*) from {name} where 1 = 1", {})


def test_values_are_what_json_can_hold() -> None:
    at = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    value = {"at": at, "b": [b"\xffx", Decimal("1.50")], "n": float("nan"), "i": 1, "none": None}
    assert plain(value) == {"at": "2026-01-02T03:04:05+00:00", "b": ["\\xffx", "1.50"], "n": "nan", "i": 1, "none": None}
    assert (text(True), text([1]), text("ä"), text(2.5)) == ("true", "[1]", "ä", "2.5")
