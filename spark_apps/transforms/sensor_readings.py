"""The transform of the example pipeline ``sensor_readings``."""

from __future__ import annotations

from pyspark.sql import DataFrame


def clean(readings: DataFrame) -> DataFrame:
    """Return the readings of devices in the field; a test bench's devices are left out."""
    return readings.where("device_id not like 'bench-%'")
