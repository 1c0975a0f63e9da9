"""Transforms that test pipelines name; ``make_pipeline`` puts them beside the project's own."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lakebound_spark.columns import explode

DROPPED = "drop "
"""Events whose body begins so are filtered out."""


def tag_rows(events: DataFrame) -> DataFrame:
    """Return one row per tag of an event; events that are to be dropped, or have no tag, give none."""
    return explode(events.where(f"body not like '{DROPPED}%'"), "tags", into="tag")


def tag_rows_wrongly(events: DataFrame) -> DataFrame:
    """Return what a bad deploy makes of events: none of those with an odd id, and other bodies, or none."""
    return explode(events.where("id % 2 = 0"), "tags", into="tag").withColumn("body", F.upper("body"))


def expected_tag_rows(event: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the rows that ``tag_rows`` must make of an event, worked out without Spark."""
    if event["body"].startswith(DROPPED):
        return []
    columns = {name: event[name] for name in ("id", "body", "amount")}
    return [{**columns, "tag": tag} for tag in event["tags"] or []]


def count_in_windows(readings: DataFrame) -> DataFrame:
    """Return per sensor and five seconds how many readings there are, and the sums of their numbers and values."""
    windows = readings.where("value >= 0").groupBy(F.window("at", "5 seconds"), "sensor")
    return windows.agg(F.count("*").alias("readings"), F.sum("id").alias("ids"), F.max("value").alias("highest"))


def count_more_in_windows(readings: DataFrame) -> DataFrame:
    """Return the same windows with other values: what stands above the aggregation has changed."""
    return count_in_windows(readings).withColumn("highest", F.col("highest") + 100)


def count_in_sliding_windows(readings: DataFrame) -> DataFrame:
    """Return the same per ten seconds, every five seconds."""
    windows = readings.where("value >= 0").groupBy(F.window("at", "10 seconds", "5 seconds"), "sensor")
    return windows.agg(F.count("*").alias("readings"), F.sum("id").alias("ids"), F.max("value").alias("highest"))
