"""A batch lands, and its records are counted, where Spark leaves the records out of its plan or names them as a view."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from tests.support.streams.long_form import each_value_once
from tests.support.tables.value_lanes import LaneWorld, Sent

from lakebound.landing.rollup_recorder import Lane
from lakebound.spec.pipeline import PipelineSpec
from lakebound_spark.batch.observation import watch
from lakebound_spark.batch.seen_records import all_of
from lakebound_spark.batch.transform import Transform

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("as_applications_write"), pytest.mark.timeout(120)]

BODY = {
    "pipeline": "orders",
    "topics": ["orders"],
    "connection": {"bootstrap_servers": "127.0.0.1:1"},
    "value": {"format": "json", "schema": "id BIGINT NOT NULL, name STRING NOT NULL"},
    "freshness": "1s",
}
TABLES = {
    "one table": [{"format": "delta", "name": "shop.orders"}],
    "two tables": [{"format": "delta", "name": "shop.orders"}, {"format": "iceberg", "name": "shop.orders"}],
}
GOOD, BAD = 20, 3
Keeps = Callable[[int], bool]


def slowly(number: int) -> int:
    time.sleep(0.1)
    return number


def none(_: int) -> bool:
    return False


def always_false(frame: DataFrame) -> DataFrame:
    return frame.where(F.lit(False))


def null_that_is_never(frame: DataFrame) -> DataFrame:
    return frame.where("name is null")


def joined_with_no_rows(frame: DataFrame) -> DataFrame:
    return frame.join(frame.sparkSession.range(0), "id")


def joined_with_an_empty_relation(frame: DataFrame) -> DataFrame:
    return frame.join(frame.sparkSession.createDataFrame([], "id BIGINT"), "id", "left_semi")


def joined_with_what_a_filter_leaves(frame: DataFrame) -> DataFrame:
    """Spark finds out while it runs that the other side is empty."""
    other = frame.sparkSession.range(1000).repartition(2).where("id * 2 = 1")
    return frame.join(F.broadcast(other), "id")


def found_empty_while_the_records_are_read(frame: DataFrame) -> DataFrame:
    """Spark stops to read the records as soon as it finds the other side to be empty."""
    other = frame.sparkSession.range(1000).repartition(2).where("id * 2 = 1").hint("merge")
    return frame.withColumn("id", F.udf(slowly, "bigint")("id")).join(other, "id")


def by_sql(frame: DataFrame) -> DataFrame:
    return frame.sparkSession.sql("select *, upper(name) as big from {records} where id % 2 = 0", records=frame)


def by_view(frame: DataFrame) -> DataFrame:
    frame.createOrReplaceTempView("records_of_a_batch")
    return frame.sparkSession.table("records_of_a_batch")


FUNCTIONS: dict[Transform, Keeps] = {
    always_false: none,
    null_that_is_never: none,
    joined_with_no_rows: none,
    joined_with_an_empty_relation: none,
    joined_with_what_a_filter_leaves: none,
    found_empty_while_the_records_are_read: none,
    by_sql: lambda number: number % 2 == 0,
    by_view: lambda number: True,
}


@each_value_once
@pytest.mark.parametrize("way", ["direct", "driver", "cluster"])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_a_batch_is_counted_whatever_spark_makes_of_its_plan(
    session: SparkSession, tmp_path: Path, function: Transform, way: Lane
) -> None:
    tables = TABLES["two tables" if function is by_sql else "one table"]
    world = LaneWorld(
        session, tmp_path, PipelineSpec.model_validate(BODY | {"tables": tables}), way, function, has_transform=True
    )
    values: list[bytes | None] = [json.dumps({"id": number, "name": f"n{number}"}).encode() for number in range(GOOD)]
    sent = [*values, *[b"{"] * BAD]
    world.land(Sent(0, sent, [1_700_000_000_000] * len(sent)))
    landed = world.read()
    kept = {number for number in range(GOOD) if FUNCTIONS[function](number)}
    assert [{*rows} for rows in landed.tables.values()] == [kept] * len(tables)
    assert {*landed.bad} == {*range(GOOD, GOOD + BAD)}
    counts = world.counts
    assert (counts.read, counts.landed, counts.quarantined, counts.filtered) == (len(sent), len(kept), BAD, GOOD - len(kept))
    world.close()


def test_an_action_that_takes_some_of_the_rows_is_told_from_one_that_takes_all(session: SparkSession) -> None:
    rows = session.range(0, 100, 1, 1)
    watched = watch(rows, "some of them", F.count(F.lit(1)).alias("read"))
    assert len(watched.rows.limit(3).collect()) == 3
    assert watched.seen()["read"] < 100
    assert watched.seen(all_of(100)) == {"read": 100}
