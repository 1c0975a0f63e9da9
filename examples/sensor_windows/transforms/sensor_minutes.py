"""The transform of the example ``sensor_windows``: a row per sensor and minute."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F


def per_minute(readings: DataFrame) -> DataFrame:
    """Return number, sum and range of the readings of each sensor and minute. Readings without a value do not count."""
    # A sum of DOUBLE depends on the order of the records; one of DECIMAL does not.
    exact = F.col("value").cast("decimal(18,3)")
    windows = readings.where(F.col("value").isNotNull()).groupBy(F.window("event_time", "1 minute"), "sensor")
    return windows.agg(
        F.count("*").alias("readings"),
        F.sum(exact).alias("total"),
        F.min("value").alias("lowest"),
        F.max("value").alias("highest"),
    )
