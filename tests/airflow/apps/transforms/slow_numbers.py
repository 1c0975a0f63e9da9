"""Makes numbers of texts, and raises on a text that is none. Each plan takes its time: the search for such records is long."""

from __future__ import annotations

import time

from pyspark.sql import DataFrame

PLAN_SECONDS = 0.2


def slow_numbers(frame: DataFrame) -> DataFrame:
    """Return the rows with the text as a number."""
    time.sleep(PLAN_SECONDS)
    return frame.selectExpr("id", "CAST(text AS INT) AS number", "_kafka")
