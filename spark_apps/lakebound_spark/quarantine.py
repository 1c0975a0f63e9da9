"""Rows of the quarantine table: where a record is, why it could not be landed, and its bytes."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lakebound.tables import KAFKA_COLUMN
from lakebound_spark.decode import PROBLEM, VALUE, is_bad


def quarantine_columns(decoded: DataFrame) -> DataFrame:
    """Return the bad ones of decoded records as rows of the quarantine table."""
    return decoded.where(is_bad()).select(
        F.col(KAFKA_COLUMN),
        F.substring_index(PROBLEM, "\t", 1).alias("reason"),
        F.regexp_replace(PROBLEM, r"^[^\t]*\t", "").alias("error"),
        F.col("_key").alias("key"),
        F.col(VALUE).alias("value"),
    )
