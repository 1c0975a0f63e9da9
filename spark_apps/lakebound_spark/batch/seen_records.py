"""What is seen of a batch's records on their way, without a job of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F

from lakebound_spark.batch.decode import VALUE_BYTES, is_bad, is_skipped
from lakebound_spark.batch.quarantine import rows_of


@dataclass(frozen=True)
class Observed:
    """What was seen of a batch's records on their way, before the transform.

    Attributes:
        read: Records.
        bad: Those that go to quarantine.
        skipped: Tombstones that give no row: the transform does not get them.
        value_bytes: Of all records.
        timestamps_ms: Kafka's earliest and latest.
        bad_offsets: The lowest and the highest offset of a bad one, whatever its partition; None where there is none.
        bad_rows: The bad ones as rows of the quarantine table; None where they were not collected.
        skipped_rows: ``_kafka``, ``_key`` and ``_headers`` of the skipped ones; None where they were not collected.
    """

    read: int
    bad: int
    skipped: int
    value_bytes: int
    timestamps_ms: tuple[int, int] | None
    bad_offsets: tuple[int, int] | None
    bad_rows: pa.Table | None
    skipped_rows: pa.Table | None = None


def seen_columns() -> tuple[Column, ...]:
    """Return what every batch observes of its decoded records."""
    return (
        F.count(F.lit(1)).alias("read"),
        F.count_if(is_bad()).alias("bad"),
        F.count_if(is_skipped()).alias("skipped"),
        F.coalesce(F.sum(VALUE_BYTES), F.lit(0)).alias("value_bytes"),
        F.min("_kafka.timestamp").cast("double").alias("oldest"),
        F.max("_kafka.timestamp").cast("double").alias("newest"),
        F.min(F.when(is_bad(), F.col("_kafka.offset"))).alias("first_bad"),
        F.max(F.when(is_bad(), F.col("_kafka.offset"))).alias("last_bad"),
    )


def all_of(records: int) -> Callable[[Mapping[str, Any]], bool]:
    """Return whether values of ``seen_columns`` are of that many records.

    A batch has fewer than it has offsets where Kafka compacted the topic, or where producers write in transactions.
    """
    return lambda seen: int(seen.get("read") or 0) >= records


def observed_by(seen: Mapping[str, Any]) -> Observed:
    """Return what was seen, by the values of ``seen_columns``."""
    oldest, newest = seen.get("oldest"), seen.get("newest")
    return Observed(
        read=int(seen.get("read") or 0),
        bad=int(seen.get("bad") or 0),
        skipped=int(seen.get("skipped") or 0),
        value_bytes=int(seen.get("value_bytes") or 0),
        timestamps_ms=None if oldest is None or newest is None else (round(oldest * 1000), round(newest * 1000)),
        bad_offsets=None if seen.get("first_bad") is None else (int(seen["first_bad"]), int(seen["last_bad"])),
        bad_rows=None if seen.get("bad_rows") is None else rows_of(seen["bad_rows"]),
    )
