"""What Spark says of an epoch that has ended: its offsets, and what was counted in it. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lakebound.landing.checkpoint import parse_offsets
from lakebound.ledger.marks import NextOffsets
from lakebound_spark.batch.targets import Counts
from lakebound_spark.real_time.rows import READ, SENT


@dataclass(frozen=True)
class Epoch:
    """One epoch.

    Attributes:
        number: Spark's number of it, from 0 for each query.
        end: Next offset to read after it, by topic and partition.
        counts: Its records and rows. Where the transform makes several rows of one record, the records that gave rows are
            counted as high as can be: Spark counts rows.
        timestamps_ms: Kafka's earliest and latest of its records; None without any.
        seconds: How long it took.
    """

    number: int
    end: NextOffsets
    counts: Counts
    timestamps_ms: tuple[int, int] | None
    seconds: float


def epoch_of(text: str) -> Epoch:
    """Return the epoch of which a progress of Spark's tells.

    Args:
        text: The progress, as JSON.

    Raises:
        ValueError: It does not have what an epoch has.
    """
    body = json.loads(text)
    try:
        (source,) = body["sources"]
        end = parse_offsets(json.dumps(source["endOffset"]))
        metrics: Mapping[str, Any] = body.get("observedMetrics", {})
        seconds = body["durationMs"]["triggerExecution"] / 1000
        number = int(body["batchId"])
    except (KeyError, TypeError, AttributeError) as exc:
        raise ValueError(f"Spark tells something else of an epoch: {text[:500]!r}") from exc
    read, sent = metrics.get(READ) or {}, metrics.get(SENT) or {}
    oldest, newest = read.get("oldest_ms"), read.get("newest_ms")
    times = None if oldest is None or newest is None else (int(oldest), int(newest))
    counts = counts_of(int(read.get("read") or 0), int(sent.get("quarantined") or 0), int(sent.get("rows") or 0))
    return Epoch(number, end, counts, times, seconds)


def counts_of(read: int, quarantined: int, rows: int) -> Counts:
    """Return the records of an epoch by what became of them."""
    quarantined = min(quarantined, read)
    landed = min(rows, read - quarantined)
    return Counts(read=read, filtered=read - quarantined - landed, landed=landed, quarantined=quarantined, rows=rows)
