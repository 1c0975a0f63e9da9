"""Which plans are a windowed aggregation that a rebuild gives again; the windows of each record, by the plan itself."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from lakebound.spec.pipeline import PipelineSpec
from lakebound_spark.batch.transform import planned_input
from lakebound_spark.batch.transform_plan import SOURCE_ALIAS
from lakebound_spark.batch.window_plan import WINDOW, empty_stream, rows_id, window_id, window_refusal, windows_of

pytestmark = pytest.mark.spark

SPEC = PipelineSpec.model_validate(
    {
        "pipeline": "minutes",
        "topics": ["readings"],
        "connection": {"bootstrap_servers": "kafka:9092"},
        "value": {
            "format": "json",
            "schema": "at TIMESTAMP, sensor STRING, n BIGINT, x DOUBLE, d DECIMAL(10,2), tags ARRAY<STRING>",
        },
        "freshness": "1s",
        "transform": "transforms.minutes.per_minute",
        "state": {"event_time": "at", "watermark": "10m"},
        "tables": [{"format": "delta", "name": "iot.minutes"}],
    }
)


def number() -> Column:
    return F.count("*").alias("n")


def in_windows(frame: DataFrame, *aggregates: Any) -> DataFrame:
    return frame.groupBy(F.window("at", "1 minute"), "sensor").agg(*(aggregates or (number(),)))


GOOD: dict[str, Callable[[DataFrame], DataFrame]] = {
    "tumbling": in_windows,
    "sliding": lambda frame: frame.groupBy(F.window("at", "10 minutes", "5 minutes")).agg(number()),
    "begun elsewhere": lambda frame: frame.groupBy(F.window("at", "1 hour", startTime="15 minutes")).agg(number()),
    "filtered before and after": lambda frame: (
        in_windows(frame.where("n > 0")).where("n > 2").select("window.end", "sensor", "n")
    ),
    "exact aggregates": lambda frame: in_windows(
        frame,
        F.sum("n").alias("a"),
        F.sum("d").alias("b"),
        F.avg("d").alias("c"),
        F.min("x").alias("e"),
        F.max("at").alias("f"),
    ),
    "exploded": lambda frame: in_windows(frame.withColumn("tag", F.explode("tags"))),
    "about how many": lambda frame: in_windows(frame, F.approx_count_distinct("n").alias("n")),
}
BAD: dict[str, tuple[Callable[[DataFrame], DataFrame], str]] = {
    "no windows": (lambda frame: frame.where("n > 0"), "makes no windows"),
    "no window among the groups": (lambda frame: frame.groupBy("sensor").agg(number()), "no window"),
    "another time": (lambda frame: frame.groupBy(F.window("_kafka.timestamp", "1 minute")).agg(number()), "another column"),
    "a changed time": (
        lambda frame: frame.groupBy(F.window(F.col("at") + F.expr("interval 1 hour"), "1 minute")).agg(number()),
        "another column",
    ),
    "sessions": (lambda frame: frame.groupBy(F.session_window("at", "5 minutes")).agg(number()), "session_window"),
    "first": (lambda frame: in_windows(frame, F.first("n").alias("n")), "order"),
    "collect_list": (lambda frame: in_windows(frame, F.collect_list("n").alias("n")), "order"),
    "percentile_approx": (lambda frame: in_windows(frame, F.percentile_approx("n", 0.5).alias("n")), "order"),
    "sum of doubles": (lambda frame: in_windows(frame, F.sum("x").alias("x")), "DECIMAL"),
    "mean of integers": (lambda frame: in_windows(frame, F.avg("n").alias("x")), "DECIMAL"),
    "inside of an expression": (lambda frame: in_windows(frame, (F.sum("x") + 1).alias("x")), "DECIMAL"),
    "distinct": (lambda frame: in_windows(frame, F.countDistinct("n").alias("n")), "distinct"),
    "deduplicated": (lambda frame: in_windows(frame.dropDuplicates(["n"])), "duplicates"),
    "a watermark of its own": (lambda frame: in_windows(frame.withWatermark("at", "1 hour")), "withWatermark"),
    "a chain": (
        lambda frame: in_windows(frame).groupBy(F.window("window", "1 hour")).agg(F.sum("n").alias("n")),
        "twice",
    ),
    "joined with itself": (lambda frame: in_windows(frame.join(frame.select("sensor"), "sensor")), "joins"),
    "without _kafka": (lambda frame: in_windows(frame.select("at", "sensor")), "_kafka"),
    "random": (lambda frame: in_windows(frame.where(F.rand() > 0.5)), "another result"),
    "by the clock": (lambda frame: in_windows(frame.where(F.col("at") < F.current_timestamp())), "time of now"),
    "a subquery": (lambda frame: in_windows(frame.where("n in (select id from range(3))")), "subquery"),
    "a rollup": (lambda frame: frame.rollup(F.window("at", "1 minute"), "sensor").agg(number()), "rollup"),
    "the highest text of a collation": (
        lambda frame: in_windows(frame.withColumn("s", F.expr("sensor collate utf8_lcase")), F.max("s").alias("m")),
        "collation",
    ),
    "a collation": (
        lambda frame: frame.groupBy(F.window("at", "1 minute"), F.expr("sensor collate utf8_lcase").alias("s")).agg(number()),
        "collation",
    ),
    "a sum that may fail": (lambda frame: in_windows(frame, F.try_sum("n").alias("x")), "try_sum"),
    "sorted": (lambda frame: in_windows(frame).orderBy("n"), "sorts"),
}


@pytest.fixture(scope="module")
def stream(session: SparkSession) -> DataFrame:
    return empty_stream(session, planned_input(session, SPEC).schema, SPEC)


@pytest.mark.parametrize("name", GOOD)
def test_a_windowed_aggregation_is_taken(name: str, stream: DataFrame) -> None:
    assert window_refusal(GOOD[name](stream)) is None


@pytest.mark.parametrize("name", BAD)
def test_anything_else_is_refused_by_name(name: str, stream: DataFrame) -> None:
    make, word = BAD[name]
    refusal = window_refusal(make(stream))
    assert refusal is not None and word in refusal


def test_each_record_has_its_windows_by_the_functions_own_plan(session: SparkSession) -> None:
    columns = planned_input(session, SPEC).schema
    rows = [
        (datetime(2026, 1, 1, 0, minute, tzinfo=UTC), "a", n, None, None, None, ("t", "id", 0, n, None, 0))
        for n, minute in enumerate([3, 7, 12, 4])
    ]
    frame = session.createDataFrame(rows, columns).where("n < 3").alias(SOURCE_ALIAS)
    found = windows_of(GOOD["sliding"](frame)).select("_kafka.offset", F.unix_seconds(f"{WINDOW}.end").alias("end")).collect()
    minutes = sorted((row["offset"], (row["end"] - 1_767_225_600) // 60) for row in found)
    assert minutes == [(0, 5), (0, 10), (1, 10), (1, 15), (2, 15), (2, 20)]


def test_another_aggregation_has_another_id(session: SparkSession) -> None:
    source = planned_input(session, SPEC).alias(SOURCE_ALIAS)
    ids = [window_id(SPEC, make(source)) for make in GOOD.values()]
    assert len(set(ids)) == len(GOOD)
    again = [window_id(SPEC, make(planned_input(session, SPEC).alias(SOURCE_ALIAS))) for make in GOOD.values()]
    assert ids == again


def test_what_stands_above_an_aggregation_changes_its_rows_and_not_its_windows(session: SparkSession) -> None:
    def ids(make: Callable[[DataFrame], DataFrame], source: str = "old") -> tuple[str, str]:
        output = make(planned_input(session, SPEC).alias(SOURCE_ALIAS))
        return window_id(SPEC, output), rows_id(output, source)

    windows, rows = ids(in_windows)
    assert (windows, rows) == ids(in_windows) == ids(in_windows, source="new")
    for above in (
        lambda frame: in_windows(frame).where("n > 2"),
        lambda frame: in_windows(frame).withColumn("m", F.col("n") * 2),
    ):
        assert ids(above)[0] == windows and ids(above)[1] != rows
    one, other = (lambda frame, tag=tag: in_windows(frame.where(F.col("sensor") != tag)) for tag in ("s#1", "s#2"))
    assert ids(one)[0] != ids(other)[0], "a text that looks like a number of Spark's"

    def by_python(frame: DataFrame) -> DataFrame:
        return in_windows(frame.withColumn("sensor", F.udf(lambda text: text.lower(), "string")("sensor")))

    assert ids(by_python) == ids(by_python)
    assert ids(by_python)[0] == ids(by_python, source="new")[0] and ids(by_python)[1] != ids(by_python, source="new")[1]
