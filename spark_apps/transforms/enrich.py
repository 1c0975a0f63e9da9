"""A pattern to copy: rows with columns of a small reference table. `make bench` measures it against Flink doing the same.

The reference table is Parquet in ``reference/devices`` below ``LAKEBOUND_HOME``, one row per device. Executors on other
machines must see the folder, too. A replay joins with what the table says then.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lakebound.settings import load_settings
from lakebound.spec.pipeline import KAFKA_COLUMN


def clean(readings: DataFrame) -> DataFrame:
    """Return the readings with site and model of their device; both are null for a device that the reference does not have."""
    folder = load_settings().home / "reference" / "devices"
    # Without a schema Spark would run a job for each batch to find it out.
    reader = readings.sparkSession.read.schema("device STRING, site STRING, model STRING")
    devices = reader.parquet(folder.absolute().as_uri())
    enriched = readings.join(F.broadcast(devices), "device", "left")
    return enriched.select("event_id", "device", "value", "kind", "site", "model", "pad", KAFKA_COLUMN)
