"""A pattern to copy: rows filtered, and columns made of one column each. `make bench` measures it against Flink doing the same.

It reads the columns ``event_id, device, value, kind, pad``. Functions of Spark that need no Python are the fastest: for few
records the driver computes them without a job (docs/decisions/0024).
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lakebound.spec.pipeline import KAFKA_COLUMN


def clean(readings: DataFrame) -> DataFrame:
    """Return the readings above a value: device as its SHA-256, value in another unit, kind in upper case, a part of the id."""
    return readings.where("value > 36.9").select(
        "event_id",
        F.sha2("device", 256).alias("device"),
        (F.col("value") * 1.8 + 32.0).alias("value"),
        F.upper("kind").alias("kind"),
        F.substring("event_id", 7, 6).alias("part"),
        "pad",
        KAFKA_COLUMN,
    )
