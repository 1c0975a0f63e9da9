"""``lakebound query`` on real tables of both formats."""

from __future__ import annotations

import csv
import hashlib
import io
from pathlib import Path

import pytest
from tests.support.streams.command_line import ORDERS, answer, lakebound, settings
from tests.support.tables.local_tables import lander, make_table

from lakebound.settings import Settings
from lakebound.spec.pipeline import PipelineSpec
from lakebound.tables.places import places_of

__all__ = ["settings"]

DELTA, ICEBERG = PipelineSpec.model_validate(ORDERS).tables


@pytest.fixture
def landed(settings: Settings) -> Settings:
    """Both tables of ``orders``; that of Iceberg has one row less."""
    for spec, end in ((DELTA, 12), (ICEBERG, 11)):
        make_table(spec, places_of(settings, "default"))
        lander(spec, places_of(settings, "default")).land(0, 5)
        lander(spec, places_of(settings, "default")).land(5, end)
    return settings


def error(*arguments: str) -> str:
    return lakebound("query", *arguments, code=1).stderr


def everything_in(folder: Path) -> dict[Path, str]:
    # What readers of a SQLite file tell each other is not part of the catalog.
    files = [path for path in folder.rglob("*") if path.is_file() and not path.name.endswith("-shm")]
    return {path: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_a_format_tells_which_table_is_meant(landed: Settings) -> None:
    def count(table: str, *options: str) -> int:
        (row,) = answer("query", f"select count(*) as n from {table}", *options)["rows"]
        return int(row["n"])

    assert (count("delta.lake.orders"), count("iceberg.lake.orders")) == (12, 11)
    assert (count("lake.orders", "--format", "delta"), count("lake.orders", "--format", "iceberg")) == (12, 11)
    assert count("delta.lake.orders d anti join iceberg.lake.orders i on d.id = i.id") == 1
    assert count('delta . "lake"."orders"') == 12


def test_a_name_in_both_formats_is_explained(landed: Settings) -> None:
    said = error("select * from lake.orders")
    assert "write delta.lake.orders or iceberg.lake.orders in the query, or give --format" in said


def test_a_name_in_one_format_needs_none(settings: Settings) -> None:
    make_table(ICEBERG, places_of(settings, "default"))
    lander(ICEBERG, places_of(settings, "default")).land(0, 3)
    assert len(answer("query", "select id from lake.orders")["rows"]) == 3
    assert "table delta:lake.orders does not exist yet" in error("select * from delta.lake.orders")


def test_a_broken_catalog_keeps_nobody_from_a_delta_table(landed: Settings) -> None:
    for file in (landed.warehouse / "iceberg").glob("catalog.db*"):
        file.write_bytes(b"no database")
    assert len(answer("query", "select id from delta.lake.orders")["rows"]) == 12
    assert len(answer("query", "select id from lake.orders", "--format", "delta")["rows"]) == 12


def test_rows_beyond_the_limit_are_said_to_be_there(landed: Settings) -> None:
    result = lakebound("query", "select id from delta.lake.orders order by id desc", "--limit", "2", "--csv")
    assert result.stdout == "id\n11\n10\n"
    assert "only the first 2 rows are shown" in result.stderr
    whole = lakebound("query", "select id from delta.lake.orders", "--limit", "12")
    assert whole.stderr == "" and "12 rows" in whole.stdout
    body = answer("query", "select id from delta.lake.orders", "--limit", "0")
    assert len(body["rows"]) == 12 and body["is_cut"] is False


@pytest.mark.parametrize("format_", ["delta", "iceberg"])
def test_nested_values_and_times(landed: Settings, format_: str) -> None:
    sql = f"select at, items, _kafka from {format_}.lake.orders where _kafka.offset = 7"
    (row,) = answer("query", sql)["rows"]
    assert row["at"] == "2023-11-15T07:00:00+00:00" and row["items"] == [{"sku": "sku-7", "quantity": 1}]
    assert row["_kafka"]["offset"] == 7
    (_, line) = csv.reader(io.StringIO(lakebound("query", sql, "--csv").stdout))
    assert line[1] == '[{"sku": "sku-7", "quantity": 1}]'


def test_mistakes_are_explained(landed: Settings) -> None:
    assert "no pipeline has a table 'lake.order'; the pipelines' tables are: delta.lake.orders," in error(
        "select * from lake.order"
    )
    assert 'unable to find column "nope"; valid columns: ["id"' in error("select nope from delta.lake.orders")
    assert "the query cannot be run: sql parser error" in error("select frm where from delta.lake.orders")
    assert "begins with SELECT or WITH, but this one begins with delete" in error("delete from delta.lake.orders")
    assert "--csv" in lakebound("query", "select 1", "--csv", "--json", code=2).stderr


def test_it_writes_nothing(landed: Settings) -> None:
    before = everything_in(landed.warehouse)
    lakebound("query", "select * from iceberg.lake.orders union all select * from delta.lake.orders")
    assert everything_in(landed.warehouse) == before


def test_looking_makes_nothing(settings: Settings) -> None:
    assert "does not exist yet" in error("select * from lake.orders")
    assert not settings.warehouse.exists()
