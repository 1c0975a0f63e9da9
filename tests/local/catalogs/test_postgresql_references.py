"""Reference data in a real PostgreSQL: its types, its versions, and what keeps it from being used."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from tests.support.catalogs.postgresql import PASSWORD, PostgreSQL
from tests.support.catalogs.shop import SECRET, Shop
from tests.support.tables.local_tables import places

from lakebound.errors import ReferenceRefusedError
from lakebound.spec.reference import ReferenceSpec
from lakebound.tables.places import Places
from lakebound_spark.reference import postgres, rules
from lakebound_spark.reference.loaded import UnusableReferenceError
from lakebound_spark.reference.sources import Source, make_source

TABLE = """
CREATE TABLE customers (id bigint PRIMARY KEY, name text, tier varchar(10), score numeric(6,2), rate numeric, small smallint,
  number integer, half real, whole double precision, active boolean, born date, seen timestamptz, noted timestamp, code uuid,
  facts jsonb);
INSERT INTO customers VALUES (1, 'Ann', 'gold', 12.30, 0.5, 1, 2, 0.5, 0.25, true, '2000-02-29', '2024-01-01 02:00:00+02',
  '2024-01-01 00:00:00', '7f0c2f2e-6c1f-4d36-9c2b-0d3f8e1f3b11', '{"a": [1, null]}'), (2, NULL, '', NULL, NULL, NULL, NULL,
  NULL, 'NaN', NULL, NULL, NULL, NULL, NULL, NULL);
"""


@pytest.fixture
def shop(postgresql: PostgreSQL, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    monkeypatch.setenv(SECRET, PASSWORD)
    made = Shop(postgresql)
    made.run(TABLE)
    yield made
    made.proxy.close()


@pytest.fixture
def at(tmp_path: Path) -> Places:
    return places(tmp_path)


def source(shop: Shop, at: Places, **reference: Any) -> Source:
    return make_source("customers", ReferenceSpec.model_validate(shop.reference(**reference)), at)


def test_rows_and_types_are_those_of_the_table(shop: Shop, at: Places) -> None:
    loaded = source(shop, at).read_first()
    first, second = sorted(loaded.rows.to_pylist(), key=lambda row: row["id"])
    noted = datetime(2024, 1, 1, tzinfo=UTC)
    assert list(first.values()) == [
        *(1, "Ann", "gold", Decimal("12.30"), Decimal("0.5"), 1, 2, 0.5, 0.25, True, date(2000, 2, 29), noted, noted),
        *("7f0c2f2e-6c1f-4d36-9c2b-0d3f8e1f3b11", '{"a": [1, null]}'),
    ]
    assert math.isnan(second.pop("whole")) and second == {**dict.fromkeys(second), "id": 2, "tier": ""}
    types = {name: str(loaded.rows.schema.field(name).type) for name in ("score", "rate", "small", "half")}
    assert types == {"score": "decimal128(6, 2)", "rate": "decimal128(38, 18)", "small": "int16", "half": "float"}


def test_a_version_is_of_the_rows_alone(shop: Shop, at: Places) -> None:
    customers = source(shop, at, columns=["id", "name"])
    loaded = customers.read_first()
    assert loaded.rows.column_names == ["id", "name"] and customers.look() == loaded.version
    shop.run("UPDATE customers SET tier = 'none'; CREATE TABLE other AS SELECT * FROM customers ORDER BY id DESC")
    assert customers.look() == loaded.version, "columns and an order that are not read make no version"
    shop.run("UPDATE customers SET name = 'Bea' WHERE id = 2")
    newer = customers.read(loaded)
    assert newer.version == customers.look() != loaded.version
    assert {row["id"]: row["name"] for row in newer.rows.to_pylist()} == {1: "Ann", 2: "Bea"}
    shop.run("ALTER TABLE customers ALTER id TYPE integer")
    with pytest.raises(UnusableReferenceError, match="changed the type of id from BIGINT to INT"):
        customers.read(loaded)


def test_a_query_gives_what_it_selects_and_changes_nothing(shop: Shop, at: Places) -> None:
    query = "SELECT id, '100%; ' || name AS name -- all\nFROM customers WHERE active -- today"
    assert source(shop, at, query=query).read_first().rows.to_pylist() == [{"id": 1, "name": "100%; Ann"}]
    for bad in (
        "SELECT 1 AS id) AS source; COMMIT; DROP TABLE customers; SELECT * FROM (SELECT 1 AS id",
        "WITH gone AS (DELETE FROM customers RETURNING id) SELECT id FROM gone",
        "SELECT lo_create(0)::bigint AS id",
    ):
        with pytest.raises(ReferenceRefusedError, match=r"correct reference\.customers\.query"):
            source(shop, at, query=bad).read_first()
    assert source(shop, at).read_first().rows.num_rows == 2


@pytest.mark.parametrize(
    ("change", "reference", "told"),
    [
        ("DROP TABLE customers", {}, r'relation "customers" does not exist.*; correct reference\.customers\.name'),
        ("", {"key": ["active"]}, r"1 rows have no value in the key \(active\)"),
        ("UPDATE customers SET active = true", {"key": ["active"]}, r"1 rows have the key \(active\) of another row"),
        ("ALTER TABLE customers ADD secret bytea, ADD tags text[]", {}, r"secret \(bytea\), tags \(text\[\]\); leave them out"),
        ("UPDATE customers SET rate = 'NaN'", {}, "column rate has a value that"),
        ("", {"columns": ["id", "nme"]}, r'column "nme" does not exist'),
        ("", {"query": "SELECT id, name::int FROM customers"}, r"cannot make the rows: InvalidTextRepresentation"),
        ("", {"query": "SELECT 1 AS id, pg_sleep(10)::text"}, "did not finish within 30 s"),
        ("", {"login": {"database": "nowhere"}}, r"correct reference\.customers\.postgres\.database"),
        ("", {"login": {"sslmode": "require"}}, r"is away.*SSL.*; if it is elsewhere"),
        (
            "",
            {"login": {"password": {"env": "LAKEBOUND_SECRET_NONE"}}},
            r"reference\.customers\.postgres\.password: environment",
        ),
    ],
)
def test_what_keeps_it_from_being_used_is_told(
    shop: Shop, at: Places, monkeypatch: pytest.MonkeyPatch, change: str, reference: dict[str, Any], told: str
) -> None:
    if "pg_sleep" in reference.get("query", ""):  # not for the others: the machine may be busy
        monkeypatch.setitem(postgres._SESSION, "statement_timeout", "1s")
    if change:
        shop.run(change)
    with pytest.raises(ReferenceRefusedError, match=rf"reference 'customers' \(postgres .*\): .*{told}") as error:
        source(shop, at, **reference).read_first()
    assert "Ann" not in str(error.value) and PASSWORD not in str(error.value)


def test_a_refused_login_is_told_without_the_password(shop: Shop, at: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SECRET, "quite another one")
    with pytest.raises(
        ReferenceRefusedError, match=r"refuses the login.*; correct reference\.customers\.postgres\.username"
    ) as found:
        source(shop, at).read_first()
    assert "quite another one" not in str(found.value) + repr(found.value.__cause__)


def test_what_is_too_large_is_refused_before_its_rows_are_sent(shop: Shop, at: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "MOST_ROWS", 1)
    monkeypatch.setattr(postgres, "MOST_ROWS", 1)
    with pytest.raises(UnusableReferenceError, match="it has 2 rows, and may have 1"):
        source(shop, at).look()
