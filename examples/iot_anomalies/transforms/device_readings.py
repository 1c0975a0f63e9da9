"""The transform of the example ``iot_anomalies``: each reading, with what is unusual about it."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

USUAL = {
    "temperature": (5.0, 35.0),
    "humidity": (10.0, 90.0),
    "pressure": (980.0, 1045.0),
    "vibration": (0.0, 1.0),
}
"""Sensor to the lowest and the highest usual value, in the sensor's unit."""

LOW_BATTERY_PERCENT = 10
LATE_SECONDS = 3600


def mark_anomalies(readings: DataFrame) -> DataFrame:
    """Return every reading with ``anomalies``: none, or the names of what is unusual. No reading is left out."""
    delay_seconds = F.unix_timestamp(F.col("_kafka.timestamp")) - F.unix_timestamp("event_time")
    found = {
        "no_value": F.col("value").isNull() | F.isnan("value"),
        "out_of_range": _is_out_of_range(),
        "unknown_sensor": ~F.col("sensor").isin(*USUAL),
        "low_battery": F.col("battery_percent") < LOW_BATTERY_PERCENT,
        "late": delay_seconds > LATE_SECONDS,
    }
    # A condition that is null, as of a battery that nobody measured, is no anomaly.
    named = F.array(*(F.when(condition, F.lit(name)) for name, condition in found.items()))
    return readings.withColumn("anomalies", F.filter(named, lambda name: name.isNotNull())).withColumn(
        "is_anomaly", F.size("anomalies") > 0
    )


def _is_out_of_range() -> Column:
    """Return whether the value is beyond what is usual for its sensor; of an unknown sensor that is not known."""
    return F.coalesce(
        *(F.when(F.col("sensor") == sensor, ~F.col("value").between(low, high)) for sensor, (low, high) in USUAL.items())
    )
