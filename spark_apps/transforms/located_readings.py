"""The transform of the example pipeline ``located_readings``: measurements with the place of their device."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as F


def locate(readings: DataFrame, reference: Mapping[str, DataFrame]) -> DataFrame:
    """Return the readings with site and room of their device, corrected by its calibration; unknown devices have none.

    Args:
        readings: The records.
        reference: ``devices``, one row per ``device_id``.
    """
    devices = reference["devices"].select("device_id", "site", "room", "calibration")
    located = readings.join(devices, "device_id", "left")
    return located.withColumn("value", F.col("value") * F.coalesce("calibration", F.lit(1.0))).drop("calibration")
