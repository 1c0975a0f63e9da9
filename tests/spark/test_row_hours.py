"""To which hours rows belong: Spark's aggregate and the driver's arithmetic say the same, of every type of a time."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from lakebound.spec.pipeline import PipelineSpec
from lakebound_spark.batch.row_hours import HourColumn, NoHourError, make_hour_column

pytestmark = pytest.mark.spark

MOMENTS = ["2026-11-25T10:59:59.999999Z", "2026-11-25T11:00:00Z", "1969-12-31T23:59:59Z", None, "2026-11-25T11:30:00Z"]
HOURS = {int(datetime(2026, 11, 25, 10, tzinfo=UTC).timestamp()) // 3600 + n for n in (0, 1)} | {-1}


def spec(**complete_hours: str) -> PipelineSpec:
    return PipelineSpec.model_validate(
        {
            "pipeline": "orders",
            "topics": ["orders"],
            "connection": {"bootstrap_servers": "nowhere:9092"},
            "value": {"format": "bytes"},
            "freshness": "1s",
            "tables": [{"format": "delta", "name": "orders"}],
            "complete_hours": complete_hours,
        }
    )


def test_both_ways_tell_the_same_hours_and_other_columns_are_refused(session: SparkSession) -> None:
    texts = session.createDataFrame([(text,) for text in MOMENTS], "text STRING")
    at = F.col("text").cast("timestamp")
    rows = texts.select(
        "text",
        at.alias("at"),
        at.cast("timestamp_ntz").alias("local"),
        at.cast("date").alias("day"),
        F.struct(at.alias("timestamp")).alias("_kafka"),
    )
    collected = rows.toArrow()
    for name in (None, "at", "local", "day"):
        column = HourColumn(name)
        [told] = rows.agg(column.aggregate().alias("hours")).collect()
        by_spark, by_driver = column.of_text(told["hours"]), column.of_rows(collected)
        assert by_spark == by_driver, name
        if name == "day":
            assert {hour // 24 for hour in by_driver} == {hour // 24 for hour in HOURS}
        else:
            assert by_driver == HOURS, name
    assert HourColumn("at").of_rows(collected.slice(0, 0)) == frozenset()
    assert make_hour_column(spec(column="day", unit="day"), rows.schema) == HourColumn("day")
    for wrong, said in (("text", "is of type string"), ("day", "is of type date"), ("then", "is not one of its columns")):
        with pytest.raises(NoHourError, match=said):
            make_hour_column(spec(column=wrong), rows.schema)
