"""What Spark says of an epoch that has ended: its offsets, and what was counted in it. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from lakebound.landing.checkpoint.offset_log import parse_source_offsets
from lakebound.ledger.marks import NextOffsets
from lakebound_spark.batch.targets import Counts
from lakebound_spark.real_time.rows import READ, SENT, of_target


@dataclass(frozen=True)
class Epoch:
    """One epoch.

    Attributes:
        number: Spark's number of it, from 0 for each query.
        end: Next offset to read after it, by topic and partition.
        counts: Its records and rows. Where the transform makes several rows of one record, the records that gave rows are
            counted as high as can be: Spark counts rows.
        counts_of_targets: The same of those records alone that a target did not have already, by its id, where it had some.
        timestamps_ms: Kafka's earliest and latest of its records; None without any.
        seconds: How long it took.
    """

    number: int
    end: NextOffsets
    counts: Counts
    timestamps_ms: tuple[int, int] | None
    seconds: float
    counts_of_targets: Mapping[str, Counts] = field(default_factory=dict)


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
        end = parse_source_offsets(json.dumps(source["endOffset"]))
        metrics: Mapping[str, Any] = body.get("observedMetrics", {})
        seconds = body["durationMs"]["triggerExecution"] / 1000
        number = int(body["batchId"])
    except (KeyError, TypeError, AttributeError) as exc:
        raise ValueError(f"Spark tells something else of an epoch: {text[:500]!r}") from exc
    read, sent = metrics.get(READ) or {}, metrics.get(SENT) or {}
    oldest, newest = read.get("oldest_ms"), read.get("newest_ms")
    times = None if oldest is None or newest is None else (int(oldest), int(newest))
    targets = sorted(name.partition(" ")[2] for name in read if name.startswith(of_target("read", "")))
    of_targets = {target: _counts(read, sent, partial(of_target, target=target)) for target in targets}
    return Epoch(number, end, _counts(read, sent, str), times, seconds, of_targets)


def _counts(read: Mapping[str, Any], sent: Mapping[str, Any], named: Callable[[str], str]) -> Counts:
    number = int(read.get(named("read")) or 0)
    return counts_of(number, int(sent.get(named("quarantined")) or 0), int(sent.get(named("rows")) or 0))


def counts_of(read: int, quarantined: int, rows: int) -> Counts:
    """Return the records of an epoch by what became of them.

    Args:
        read: Records of the epoch.
        quarantined: Records that went to quarantine.
        rows: Rows that the others made.
    """
    quarantined = min(quarantined, read)
    landed = min(rows, read - quarantined)
    return Counts(read=read, filtered=read - quarantined - landed, landed=landed, quarantined=quarantined, rows=rows)
