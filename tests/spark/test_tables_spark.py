"""Spark, with Delta's and Iceberg's own readers, reads what was committed, and commits beside it."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from tests.support.readers.reading_page import FOLDER, PAID, blocks, make_page_tables
from tests.support.streams.long_form import each_value_once
from tests.support.streams.spark_conf import source_of
from tests.support.tables.foreign_hands import foreign_iceberg
from tests.support.tables.local_tables import (
    FIRST_DAY_US,
    HOUR_US,
    SCHEMA,
    genesis,
    landed_offsets,
    lander,
    layout_of,
    make_table,
    offsets,
    rows,
)

from lakebound.errors import TableRestoredError
from lakebound.ledger.entry import Entry, decode
from lakebound.spec.table import TableSpec
from lakebound.tables.access import access_of
from lakebound.tables.datafiles import write_data_files
from lakebound.tables.iceberg.field_ids import leaves_with_ids
from lakebound.tables.places import Places
from lakebound.tables.table import KAFKA_TYPE, DataFile, open_table
from lakebound_spark.batch.lanes import PLAIN, write_by_cluster

pytestmark = pytest.mark.spark

Sql = Callable[[str], list[dict[str, Any]]]
NASTY = "a b/c=d%20é?#:"


def _sql(query: str) -> list[dict[str, Any]]:
    spark = SparkSession.getActiveSession()
    assert spark is not None
    try:
        return [row.asDict(recursive=True) for row in spark.sql(query).collect()]
    except PySparkException as exc:  # it cannot be pickled
        raise RuntimeError(f"{query}: {exc}") from None


def _write(source: str, spec: TableSpec, at: Places) -> list[DataFile]:
    """Write rows of one table as the cluster lane does."""
    spark = SparkSession.getActiveSession()
    assert spark is not None
    table = open_table(spec, at)
    table.read_ledger()
    written = write_by_cluster(spark.read.parquet(source).repartition(2), [table], "1", PLAIN)
    return [replace(file, stored=None) for file in written.files[spec.id]]


@pytest.fixture(scope="module")
def sql(pool: ProcessPoolExecutor) -> Sql:
    return lambda query: pool.submit(_sql, query).result(timeout=500)


def utc(offset: int) -> datetime.datetime:
    moment = datetime.datetime.fromtimestamp((FIRST_DAY_US + offset * HOUR_US) / 1e6, tz=datetime.UTC)
    return moment.replace(tzinfo=None)


DAY = f"at >= '{utc(24)}' AND at < '{utc(48)}'"


def filtered(sql: Sql, spec: TableSpec, at: Places, conditions: list[str]) -> list[list[int]]:
    """Return the ids that each condition finds when Spark pushes it down, in one query."""
    table = source_of(spec, at)
    found = sql(" UNION ALL ".join(f"SELECT {n} AS n, id FROM {table} WHERE {text}" for n, text in enumerate(conditions)))
    return [sorted(row["id"] for row in found if row["n"] == number) for number in range(len(conditions))]


@pytest.mark.parametrize(
    "spec",
    [
        TableSpec(format="delta", name="driver.plain"),
        TableSpec(format="delta", name="driver.by_city", partition_by=("city",)),
        TableSpec(format="iceberg", name="driver.plain"),
        TableSpec(format="iceberg", name="driver.by_day", partition_by=("day(at)",)),
    ],
    ids=lambda spec: spec.id,
)
def test_spark_reads_the_driver_lane(spec: TableSpec, at: Places, sql: Sql) -> None:
    make_table(spec, at)
    app = lander(spec, at)
    app.open()
    app.land(0, 30)
    app.land(30, 60)
    found = sql(f"SELECT id, city, at, items, _kafka FROM {source_of(spec, at)} ORDER BY id")
    wanted = rows(0, 60).to_pylist()
    for row in wanted:
        row["at"] = row["at"].replace(tzinfo=None)
        row["_kafka"]["timestamp"] = row["_kafka"]["timestamp"].replace(tzinfo=None)
    assert found == wanted
    counts = filtered(
        sql, spec, at, ["_kafka.offset BETWEEN 25 AND 34 AND _kafka.topic = 'orders'", DAY, "city = 'city 1' AND id < 30"]
    )
    assert [len(ids) for ids in counts] == [10, 24, 10]


CLUSTER = [
    TableSpec(format="delta", name="cluster.plain"),
    TableSpec(format="delta", name="cluster.by_city", partition_by=("city",)),
    TableSpec(format="iceberg", name="cluster.plain"),
    TableSpec(format="iceberg", name="cluster.by_day", partition_by=("day(at)", "city")),
]


@each_value_once
@pytest.mark.parametrize("with_lists", [True, False], ids=["with lists", "without"])
@pytest.mark.parametrize("spec", CLUSTER, ids=lambda spec: spec.id)
def test_files_that_spark_wrote_are_committed_and_read(
    spec: TableSpec, with_lists: bool, at: Places, sql: Sql, pool: ProcessPoolExecutor
) -> None:
    spec = spec.model_copy(update={"name": f"{spec.name}_{with_lists}".lower()})
    schema = SCHEMA if with_lists else SCHEMA.remove(SCHEMA.get_field_index("items"))
    open_table(spec, at).create(schema, genesis())
    app = lander(spec, at)
    batch = rows(0, 50)
    nasty = [NASTY if offset % 5 == 0 else None if offset % 7 == 0 else "plain" for offset in range(50)]
    batch = batch.set_column(batch.schema.get_field_index("city"), "city", pa.array(nasty))
    source = at.home / f"source-{spec.format}-{spec.short_name}"
    write_data_files(batch.select(schema.names), layout_of(TableSpec(format="iceberg", name="any"), source), "s")
    app.land(0, 50, pool.submit(_write, str(source), spec, at).result(timeout=500))
    app.land(50, 60, write_data_files(rows(50, 60).select(schema.names), app.table.layout(), "t"))
    if spec.format == "iceberg":
        for path in foreign_iceberg(spec, at).inspect.files()["file_path"].to_pylist():
            ids = [number for _, number in leaves_with_ids(pq.read_schema(path.removeprefix("file://")))]
            assert None not in ids and len({*ids}) == len(ids) == (11 if with_lists else 9)
    found = sql(f"SELECT id, city, at FROM {source_of(spec, at)} ORDER BY id")
    assert [row["city"] for row in found[:50]] == nasty
    assert [(row["id"], row["at"]) for row in found] == [(offset, utc(offset)) for offset in range(60)]
    assert filtered(sql, spec, at, [f"city = '{NASTY}'"]) == [list(range(0, 50, 5))]
    assert landed_offsets(app.table) == list(range(60))


def test_spark_skips_no_file_that_it_needs(at: Places, sql: Sql) -> None:
    """Strings beyond the bound's length, microseconds, NaN and infinities: a filter finds what a scan finds."""
    long = "x" * 32
    texts = [long + "a", long + "\U0010ffffz", "é" * 40, "", None]
    numbers = [math.nan, math.inf, -1.5, 0.0, None]
    moments = [FIRST_DAY_US + n for n in (1, 999, 1000, 1001)] + [None]
    schema = pa.schema(
        [
            pa.field("id", pa.int64()),
            pa.field("text", pa.string()),
            pa.field("number", pa.float64()),
            pa.field("moment", pa.timestamp("us", tz="UTC")),
            pa.field("_kafka", KAFKA_TYPE),
        ]
    )
    spec = TableSpec(format="delta", name="skipping.values")
    open_table(spec, at).create(schema, genesis())
    app = lander(spec, at)
    for offset in range(5):
        kafka = rows(offset, offset + 1)["_kafka"]
        columns = [[offset], [texts[offset]], [numbers[offset]], [moments[offset]]]
        batch = pa.table([*(pa.array(c, f.type) for c, f in zip(columns, schema, strict=False)), kafka], schema=schema)
        app.land(offset, offset + 1, write_data_files(batch, app.table.layout(), "t"))
    conditions = [
        *(f"text = '{text}'" for text in texts if text is not None),
        f"text > '{long}'",
        "number > 5",
        "number = double('NaN')",
        "number <= -1.5",
        "number IS NULL",
        "moment = timestamp'2023-11-15 00:00:00.000999'",
        "moment > timestamp'2023-11-15 00:00:00.001'",
        "_kafka.offset = 3",
    ]
    flags = ", ".join(f"coalesce({text}, false) AS c{number}" for number, text in enumerate(conditions))
    rows_of_all = sql(f"SELECT id, {flags} FROM {source_of(spec, at)} ORDER BY id")
    scanned = [[row["id"] for row in rows_of_all if row[f"c{number}"]] for number in range(len(conditions))]
    assert filtered(sql, spec, at, conditions) == scanned
    assert all(scanned)


def test_spark_shows_the_entry_in_deltas_history(at: Places, sql: Sql) -> None:
    spec = TableSpec(format="delta", name="history.orders")
    make_table(spec, at)
    app = lander(spec, at)
    app.land(0, 10)
    newest = sql(f"DESCRIBE HISTORY {source_of(spec, at)} LIMIT 1")[0]
    assert decode(newest["userMetadata"], "history") == app.view.entry


def test_a_restore_by_spark_is_refused(at: Places, sql: Sql) -> None:
    spec = TableSpec(format="delta", name="restored.orders")
    make_table(spec, at)
    app = lander(spec, at)
    app.land(0, 10)
    app.land(10, 20)
    sql(f"RESTORE TABLE {source_of(spec, at)} TO VERSION AS OF 1")
    with pytest.raises(TableRestoredError, match="version 3"):
        app.table.read_ledger()


def test_sparks_maintenance_of_iceberg_leaves_ledger_and_rows(at: Places, sql: Sql) -> None:
    spec = TableSpec(format="iceberg", name="kept.orders", partition_by=("day(at)",))
    make_table(spec, at)
    app = lander(spec, at)
    for start in range(0, 60, 10):
        app.land(start, start + 10)
    files = app.write(60, 70)
    result = sql(f"CALL ice.system.rewrite_data_files(table => '{spec.name}', options => map('rewrite-all', 'true'))")
    assert result[0]["rewritten_data_files_count"] >= 6
    sql(f"CALL ice.system.rewrite_manifests('{spec.name}')")
    assert app.land(60, 70, files).attempts == 2
    sql(f"ALTER TABLE ice.{spec.name} SET TBLPROPERTIES ('team' = 'shop')")
    app.land(70, 80)
    assert [row["id"] for row in sql(f"SELECT id FROM ice.{spec.name} ORDER BY id")] == list(range(80))
    entry: Entry | None = lander(spec, at).view.entry
    assert entry is not None and entry.coverage == offsets(0, 80)
    snapshots = sql(f"SELECT summary['lakebound'] AS entry FROM ice.{spec.name}.snapshots ORDER BY committed_at")
    assert decode(snapshots[-1]["entry"], "snapshot") == entry


def test_spark_reads_an_iceberg_table_after_many_appends(at: Places, sql: Sql) -> None:
    spec = TableSpec(format="iceberg", name="many.orders")
    make_table(spec, at)
    app = lander(spec, at)
    for start in range(45):
        app.land(start, start + 1)
    table = f"ice.{spec.name}"
    assert [row["id"] for row in sql(f"SELECT id FROM {table} ORDER BY id")] == list(range(45))
    first = sql(f"SELECT snapshot_id FROM {table}.snapshots ORDER BY committed_at LIMIT 1 OFFSET 20")[0]["snapshot_id"]
    assert sql(f"SELECT count(*) AS n FROM {table} VERSION AS OF {first}")[0]["n"] == 20
    added = sql(f"SELECT count(*) AS n FROM {table}.entries WHERE status = 1")[0]["n"]
    assert added + sql(f"SELECT count(*) AS n FROM {table}.entries WHERE status = 0")[0]["n"] == 45


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_spark_reads_a_table_that_went_back_and_its_maintenance_leaves_it_whole(kind: str, at: Places, sql: Sql) -> None:
    """Back to before the rewriting of all files: what the version stands on is in use again, what it undid may go."""
    spec = TableSpec.model_validate({"format": kind, "name": "rewound.orders"})
    make_table(spec, at)
    app = lander(spec, at)
    for start in range(0, 30, 10):
        app.land(start, start + 10)
    source = source_of(spec, at)
    if kind == "iceberg":
        sql(f"CALL ice.system.rewrite_data_files(table => '{spec.name}', options => map('rewrite-all', 'true'))")
    else:
        sql(f"OPTIMIZE {source}")
    lander(spec, at).land(30, 40)
    table = open_table(spec, at)
    version = next(one for one in table.history().versions() if one.entry is not None and one.entry.coverage == offsets(0, 20))
    table.restore(version.version, genesis(epoch=2).model_copy(update={"kind": "reset", "coverage": offsets(0, 20)}))
    assert [row["id"] for row in sql(f"SELECT id FROM {source} ORDER BY id")] == list(range(20))
    if kind == "iceberg":
        gone = sql(f"CALL ice.system.expire_snapshots('{spec.name}', TIMESTAMP '2999-01-01 00:00:00', 1)")[0]
        assert gone["deleted_data_files_count"] >= 3 and gone["deleted_manifest_lists_count"] >= 5
    else:
        sql("SET spark.databricks.delta.retentionDurationCheck.enabled = false")
        sql(f"VACUUM {source} RETAIN 0 HOURS")
    again = lander(spec, at, epoch=2)
    assert again.view.coverage == offsets(0, 20)
    again.land(20, 35)
    assert [row["id"] for row in sql(f"SELECT id FROM {source} ORDER BY id")] == list(range(35))
    assert landed_offsets(again.table) == list(range(35))


def _setting(name: str) -> str:
    spark = SparkSession.getActiveSession()
    assert spark is not None
    return str(spark.conf.get(name))


def test_the_lines_that_lakebound_tables_prints_read_the_table(sql: Sql, spec: TableSpec, at: Places) -> None:
    table = spec.model_copy(update={"name": "shop.printed"})
    make_table(table, at)
    lander(table, at).land(0, 5)
    assert len(sql(access_of(table, at).snippets["Spark SQL"])) == 5


def test_the_page_on_reading_tables(sql: Sql, pool: ProcessPoolExecutor, at: Places) -> None:
    """The session of these tests is the one that the page describes."""
    make_page_tables(at)

    def here(text: str) -> str:
        return text.replace(f"{FOLDER}/.lakebound/warehouse", str(at.root.path))

    (settings,) = blocks("properties")
    for line in here(settings).splitlines():
        name, _, value = line.partition("=")
        assert pool.submit(_setting, name).result(timeout=500) == value
    assert [len(sql(here(query))) for query in blocks("sql")] == [PAID, PAID]
