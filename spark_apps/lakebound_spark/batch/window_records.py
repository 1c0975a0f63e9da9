"""What a batch of a pipeline with state has read: which records are in open windows, which are late, and how far time has come.

Spark's query forgets late records without a word, so they are found by its own predicate in a job beside it: a window that ends
at or before the watermark of the batch before is closed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lakebound.formats.reasons import FAR_AHEAD
from lakebound.landing.missed_window import MissedWindow
from lakebound.ledger.windows import ReadRange
from lakebound.spec.pipeline import KAFKA_COLUMN, PipelineSpec
from lakebound_spark.batch.decode import PROBLEM, Decoder, good_columns, is_bad, is_skipped
from lakebound_spark.batch.event_times import OWN, AheadRule, with_event_times
from lakebound_spark.batch.lanes import collect
from lakebound_spark.batch.row_writer import KEY_FIELDS
from lakebound_spark.batch.transform import Transform
from lakebound_spark.batch.transform_plan import SOURCE_ALIAS
from lakebound_spark.batch.window_plan import UP, WINDOW, end_ms_of, windows_of


@dataclass(frozen=True)
class WindowRecords:
    """What a batch has read.

    Attributes:
        read: Records.
        bad: Those that the decoder refuses.
        refused: Topic, partition, offset and problem of those that go to quarantine for their event time.
        late_in_part: How many of these are in other windows that are still open.
        skipped: Tombstones that give no row.
        filtered: Records that come to no window.
        ranges: Per partition, from where on its records matter, and until when.
        far_ahead: Partitions in which records were far ahead.
        timestamps_ms: Kafka's earliest and latest.
    """

    read: int
    bad: int
    refused: pa.Table
    late_in_part: int
    skipped: int
    filtered: int
    ranges: Mapping[int, ReadRange]
    far_ahead: frozenset[int]
    timestamps_ms: tuple[int, int] | None

    @property
    def quarantined(self) -> int:
        """Records that are in no window, and in quarantine."""
        return self.quarantine_rows - self.late_in_part

    @property
    def quarantine_rows(self) -> int:
        """Rows of the quarantine table."""
        return self.bad + int(self.refused.num_rows)


def judge_records(
    records: DataFrame, spec: PipelineSpec, decoder: Decoder, function: Transform, watermark_ms: int, rule: AheadRule
) -> WindowRecords:
    """Return what a batch has read.

    Args:
        records: Kafka's columns, of a batch that is not empty.
        spec: The pipeline.
        decoder: Of the records.
        function: The pipeline's transform.
        watermark_ms: With which Spark ran the batch before.
        rule: Which records are far ahead.
    """
    decoded = with_event_times(decoder.decode(records), spec, rule).persist()
    try:
        seen = _seen(decoded, spec)
        rows = function(good_columns(decoded).alias(SOURCE_ALIAS))
        windows = _of_each_record(windows_of(rows), watermark_ms)
    finally:
        decoded.unpersist()
    assert spec.state is not None
    return _judged(seen, windows, watermark_ms, spec.state.watermark_ms)


def _seen(decoded: DataFrame, spec: PipelineSpec) -> pa.Table:
    assert spec.state is not None
    event = F.col("_parsed").getField(spec.state.event_time)
    place = [F.col(f"{KAFKA_COLUMN}.{name}").alias(name) for name in KEY_FIELDS]
    found = decoded.select(
        *place,
        F.col(OWN).alias("problem"),
        (is_bad() & F.col(OWN).isNull()).alias("bad"),
        is_skipped().alias("skipped"),
        F.when(F.col(PROBLEM).isNull(), F.unix_millis(event)).alias("event_ms"),
        F.unix_millis(F.col(f"{KAFKA_COLUMN}.timestamp")).alias("sent_ms"),
    )
    return collect(found)


def _of_each_record(windows: DataFrame, watermark_ms: int) -> pa.Table:
    start, end = F.unix_millis(F.col(f"{WINDOW}.start") + F.expr(UP)), end_ms_of(F.col(WINDOW))
    keys = [F.col(f"{KAFKA_COLUMN}.{name}").alias(name) for name in KEY_FIELDS]
    found = (
        windows.select(*keys, start.alias("start_ms"), end.alias("end_ms"))
        .groupBy(*KEY_FIELDS)
        .agg(
            F.countDistinct("end_ms").alias("windows"),
            F.countDistinct(F.when(F.col("end_ms") <= watermark_ms, F.col("end_ms"))).alias("closed"),
            F.min("start_ms").alias("start_ms"),
            F.min("end_ms").alias("first_end_ms"),
            F.max("end_ms").alias("end_ms"),
        )
    )
    return collect(found)


def _judged(seen: pa.Table, windows: pa.Table, watermark_ms: int, delay_ms: int) -> WindowRecords:
    refused = seen.filter(seen["problem"].is_valid()).select([*KEY_FIELDS, "problem"])
    late = windows.filter(pc.greater(windows["closed"], 0))
    in_part = late.filter(pc.less(late["closed"], late["windows"])).num_rows
    told = [_late(row, watermark_ms, delay_ms) for row in late.to_pylist()]
    refused = pa.concat_tables(
        [refused, late.select([*KEY_FIELDS]).append_column("problem", pa.array(told, pa.string())).cast(refused.schema)]
    ).combine_chunks()
    bad, skipped = (int(pc.sum(seen[name]).as_py() or 0) for name in ("bad", "skipped"))
    good = seen.num_rows - bad - skipped - seen["problem"].is_valid().to_numpy().sum()
    sent = seen["sent_ms"].drop_null()
    ahead = seen.filter(pc.starts_with(seen["problem"], f"{FAR_AHEAD}\t"))
    return WindowRecords(
        read=seen.num_rows,
        bad=bad,
        refused=refused,
        late_in_part=in_part,
        skipped=skipped,
        filtered=skipped + int(good) - windows.num_rows,
        ranges=_ranges(seen, windows),
        far_ahead=frozenset(ahead["partition"].to_pylist()),
        timestamps_ms=(pc.min(sent).as_py(), pc.max(sent).as_py()) if len(sent) else None,
    )


def _ranges(seen: pa.Table, windows: pa.Table) -> dict[int, ReadRange]:
    """Return per partition from where on records were read that matter, and until when.

    A record that the transform filters is in no window. It matters as long as its own time is after the watermark: it may be
    the newest one, of which Spark makes the next watermark.
    """
    good = seen.filter(seen["event_ms"].is_valid())
    starts = _by_partition(good["partition"], good["offset"], np.min)
    until = _by_partition(good["partition"], good["event_ms"], np.max)
    ends = _by_partition(windows["partition"], windows["end_ms"], np.max)
    return {p: ReadRange(start, max(until[p] + 1, ends.get(p, 0))) for p, start in starts.items()}


def _by_partition(partitions: pa.ChunkedArray, values: pa.ChunkedArray, reduce: Callable[..., Any]) -> dict[int, int]:
    of_each, numbers = partitions.to_numpy(), values.to_numpy()
    return {int(one): int(reduce(numbers[of_each == one])) for one in np.unique(of_each)}


def _late(row: Mapping[str, Any], watermark_ms: int, delay_ms: int) -> str:
    missed = MissedWindow(row["start_ms"], row["first_end_ms"], watermark_ms, row["closed"], row["windows"], delay_ms)
    return f"{missed.reason}\t{missed}"
