"""Which joined tables can give a record several rows, which nobody numbers in real time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from lakebound_spark.batch.transform import Transform
from lakebound_spark.batch.transform_plan import SOURCE_ALIAS
from lakebound_spark.real_time.joined_tables import several_rows_of_a_record

pytestmark = pytest.mark.spark

UNIQUE = "('device-1', 0), (NULL, 1)"
NULLS_TWICE = "('device-1', 0), (NULL, 1), (NULL, 2)"
NAME_TWICE = "('device-1', 0), ('device-1', 3), ('device-2', 3)"
ONE_ROW_TWICE = "('device-1', 0), ('device-1', 0)"


def known(session: SparkSession, rows: str) -> DataFrame:
    return session.sql(f"SELECT CAST(name AS STRING) AS name, place FROM VALUES {rows} AS t(name, place)").alias("known")


def joined(condition: Callable[[DataFrame, DataFrame], Column], rows: str = UNIQUE, how: str = "left") -> Transform:
    def transform(frame: DataFrame) -> DataFrame:
        devices = known(frame.sparkSession, rows)
        return frame.join(F.broadcast(devices), condition(frame, devices), how)

    return transform


def by_name(frame: DataFrame, devices: DataFrame) -> Column:
    return frame["device"] == devices["name"]


def by_equal_nulls(frame: DataFrame, devices: DataFrame) -> Column:
    return frame["device"].eqNullSafe(devices["name"])


def by_place(frame: DataFrame, devices: DataFrame) -> Column:
    return frame["place"] == devices["place"]


def in_sql(query: str) -> Transform:
    """Return a transform that selects from its records, and from devices of which one has two rows."""

    def transform(frame: DataFrame) -> DataFrame:
        known(frame.sparkSession, NAME_TWICE).createOrReplaceTempView("known_devices")
        frame.createOrReplaceTempView("events")
        return frame.sparkSession.sql(query)

    return transform


def numbers(frame: DataFrame, count: int, name: str) -> DataFrame:
    return frame.sparkSession.range(count).select(F.col("id").alias(name))


ONE_ROW: dict[str, Transform] = {
    "no join": lambda f: f.where("place > 3"),
    "unique keys, inner": joined(by_name, how="inner"),
    "unique keys, left": joined(by_name),
    "nulls that equal nothing": joined(by_name, NULLS_TWICE),
    "one null that equals null": joined(by_equal_nulls),
    "a semi join": joined(by_name, NAME_TWICE, "left_semi"),
    "an anti join": joined(by_name, NAME_TWICE, "left_anti"),
    "an expression of the key": joined(lambda f, d: F.upper(f["device"]) == F.upper(d["name"])),
    "two columns, unique together": joined(lambda f, d: by_name(f, d) & by_place(f, d), NAME_TWICE),
    "one row of each name by a literal": joined(lambda f, d: by_name(f, d) & (d["place"] == 3), NAME_TWICE),
    "unique keys and a range": joined(lambda f, d: by_name(f, d) & (f["place"] > d["place"])),
    "a range on a table of one row": joined(lambda f, d: f["place"] > d["place"], "('device-1', 0)"),
    "a range on a table of no row": joined(lambda f, d: (f["place"] > d["place"]) & (d["place"] == 7), NAME_TWICE),
    "keys that an aggregate makes unique": lambda f: f.join(
        known(f.sparkSession, NAME_TWICE).groupBy(F.col("name").alias("device")).count(), "device"
    ),
    "the table on the left": lambda f: known(f.sparkSession, UNIQUE).withColumnRenamed("name", "device").join(f, "device"),
    "the records on the right": lambda f: known(f.sparkSession, UNIQUE).alias("d").join(f, F.expr("name = device"), "right"),
    "a filter above": in_sql("SELECT e.* FROM events e JOIN known_devices k ON e.device = k.name WHERE k.place = 3"),
    "an equality above": in_sql("SELECT e.* FROM events e, known_devices k WHERE e.device = k.name AND k.place = 3"),
    "a second table, joined by the first": lambda f: (
        joined(by_name)(f)
        .drop("place")
        .join(f.sparkSession.sql("SELECT * FROM VALUES ('device-1', 'north') AS r(name, region)"), "name", "left")
    ),
}
SEVERAL_ROWS: dict[str, tuple[Transform, str]] = {
    "inner": (joined(by_name, NAME_TWICE, "inner"), "joins known, which has several rows with one value of name,"),
    "left": (joined(by_name, NAME_TWICE), "one value of name,"),
    "the same row twice": (joined(by_name, ONE_ROW_TWICE), "one value of name,"),
    "nulls that equal null": (joined(by_equal_nulls, NULLS_TWICE), "one value of name,"),
    "two columns, one of them null": (
        joined(lambda f, d: by_equal_nulls(f, d) & by_place(f, d), "(NULL, 1), (NULL, 1)"),
        "one value of name, place,",
    ),
    "a literal that leaves two": (joined(lambda f, d: by_name(f, d) & (d["place"] < 9), NAME_TWICE), "one value of name,"),
    "a condition on the record alone": (joined(lambda f, d: by_name(f, d) & (f["place"] == 3), NAME_TWICE), "value of name,"),
    "an expression of the key": (
        joined(lambda f, d: f["device"] == F.lower(d["name"]), "('device-1', 0), ('DEVICE-1', 1)"),
        "one value of lower(",
    ),
    "a range": (joined(lambda f, d: f["place"] > d["place"]), "joins known, which has several rows, by no equality"),
    "one of two equalities": (joined(lambda f, d: by_name(f, d) | by_place(f, d)), "by no equality"),
    "equal to another column of the table": (
        joined(lambda f, d: d["place"] == d["place"] * 0, ONE_ROW_TWICE),
        "by no equality",
    ),
    "a cross join": (lambda f: f.crossJoin(numbers(f, 2, "one")), "the table with the columns one, which has several rows"),
    "a filter above that leaves two": (
        in_sql("SELECT e.* FROM events e JOIN known_devices k ON e.device = k.name WHERE k.place < 9"),
        "one value of name,",
    ),
    "two tables that are joined by each other": (
        lambda f: f.crossJoin(numbers(f, 2, "one")).crossJoin(numbers(f, 2, "other")).where("one = other"),
        "the table with the columns one, which has several rows, by no equality",
    ),
}


def records(session: SparkSession) -> DataFrame:
    return session.createDataFrame([], "device STRING, place INT").alias(SOURCE_ALIAS)


@pytest.mark.parametrize("name", ONE_ROW)
def test_a_join_that_finds_one_row_of_a_record_at_most_is_accepted(session: SparkSession, name: str) -> None:
    assert several_rows_of_a_record(session, ONE_ROW[name](records(session))) is None


@pytest.mark.parametrize("name", SEVERAL_ROWS)
def test_a_join_that_can_find_several_rows_of_a_record_is_named(session: SparkSession, name: str) -> None:
    transform, reason = SEVERAL_ROWS[name]
    assert reason in (several_rows_of_a_record(session, transform(records(session))) or "no reason")


def test_a_table_that_gets_a_second_row_of_a_key_is_named_by_its_place(session: SparkSession, tmp_path: Path) -> None:
    folder = (tmp_path / "devices").as_uri()

    def transform(frame: DataFrame) -> DataFrame:
        devices = frame.sparkSession.read.schema("device STRING, site STRING").parquet(folder)
        return frame.join(F.broadcast(devices), "device", "left")

    session.sql("SELECT 'device-1' AS device, 'north' AS site").write.parquet(folder)
    assert several_rows_of_a_record(session, transform(records(session))) is None
    session.sql("SELECT 'device-1' AS device, 'south' AS site").write.mode("append").parquet(folder)
    reason = str(several_rows_of_a_record(session, transform(records(session))))
    assert "/devices, which has several rows with one value of device," in reason
