"""What Spark has planned for the batch that it runs, asked of Spark itself: its log of it may be written later, or never."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql.streaming.query import StreamingQuery

from lakebound.errors import LakeboundError
from lakebound.landing.checkpoint.offset_log import parse_source_offsets
from lakebound.ledger.marks import NextOffsets
from lakebound_spark.batch.spark_objects import items_of

PROGRESS_IN_MEMORY = {
    "asyncProgressTrackingEnabled": "true",
    "asyncProgressTrackingCheckpointIntervalMs": "60000",
    # Spark offers this to sinks that forgive a batch that is planned again with other offsets, as ours does: it goes by the
    # offsets in the tables, and no start reads what Spark has noted. The name of the option is Spark's own, for its tests.
    "_asyncProgressTrackingOverrideSinkSupportCheck": "true",
}
"""Options with which Spark does not write two files per batch, for each of which it starts several processes (chmod, stat)."""


class PlannedOffsetsError(LakeboundError):
    """Spark does not say which offsets a batch has."""

    def __init__(self, batch: int, reason: str) -> None:
        super().__init__(f"batch {batch}: Spark does not report the offsets of the batch: {reason}; the query starts again")


def planned_ends(query: StreamingQuery, batch: int) -> NextOffsets:
    """Return per topic and partition the end offset (exclusive) of the batch that is running.

    Args:
        query: Has one Kafka source.
        batch: Its id, as ``foreachBatch`` was told.

    Raises:
        PlannedOffsetsError: Spark is at another batch, or its answer is of another form.
    """
    context = _context(query)
    if context.batchId() != batch:
        raise PlannedOffsetsError(batch, f"it is at batch {context.batchId()}")
    ends = context.endOffsets()
    if ends.size() != 1:
        raise PlannedOffsetsError(batch, f"it names {ends.size()} sources")
    text = ends.values().head().json()
    try:
        return parse_source_offsets(text)
    except (ValueError, AttributeError, TypeError) as exc:
        raise PlannedOffsetsError(batch, f"its answer is {text!r}") from exc


def planned_watermark_ms(query: StreamingQuery) -> int:
    """Return the watermark with which Spark runs the batch that is running, in epoch milliseconds."""
    return int(_context(query).offsetSeqMetadata().batchWatermarkMs())


def planned_at_ms(query: StreamingQuery) -> int:
    """Return when Spark has planned the batch that is running, in epoch milliseconds: what now is in its plan."""
    return int(_context(query).offsetSeqMetadata().batchTimestampMs())


def newest_event_ms(query: StreamingQuery) -> int | None:
    """Return the latest event time that Spark has seen in the batch that is running, by which it moves its watermark.

    Spark may filter records before it looks at their event time, so only Spark can say it.

    Args:
        query: Its batch's rows have been evaluated.

    Returns:
        Epoch milliseconds; None where no record had an event time.
    """
    nodes = _nodes(_context(query).executionPlan().executedPlan())
    seen = [node.eventTimeStats().value() for node in nodes if node.getClass().getSimpleName() == "EventTimeWatermarkExec"]
    return max((int(one.max()) for one in seen if one.count() > 0), default=None)


def _context(query: StreamingQuery) -> Any:
    return query._jsq.streamingQuery().getLatestExecutionContext()


def _nodes(plan: Any) -> Iterator[Any]:
    yield plan
    for child in items_of(plan.children()):
        yield from _nodes(child)
