"""Which records go to quarantine for their event time: they would spoil the watermark, or belong to no window."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from lakebound.formats.reasons import BEFORE_1970, FAR_AHEAD, NO_EVENT_TIME
from lakebound.ledger.far_ahead import CLOCK_SECONDS, FarAheadRanges, limit_ms, limit_step_ms
from lakebound.spec.pipeline import KAFKA_COLUMN, PipelineSpec
from lakebound_spark.batch.decode import PROBLEM

OWN = "own_problem"


@dataclass(frozen=True)
class AheadRule:
    """Which records are far ahead: by the clock in a batch, and as it was found then where records are read again.

    Attributes:
        clock_ms: When the batch was planned; None in Spark's query, which knows it of each of its batches.
        ends: Offset after the last one that is judged as it was found before, by partition.
        known: By partition, ranges before these ends in which records were far ahead.
    """

    clock_ms: int | None = None
    ends: Mapping[int, int] = field(default_factory=dict)
    known: FarAheadRanges = field(default_factory=dict)


def with_event_times(decoded: DataFrame, spec: PipelineSpec, rule: AheadRule | None) -> DataFrame:
    """Return decoded records where those have a problem, too, whose event time would spoil the watermark.

    Args:
        decoded: As ``Decoder.decode`` returns them.
        spec: The pipeline.
        rule: Which are far ahead; None where others than these are read.
    """
    state = spec.state
    assert state is not None
    event = F.col("_parsed").getField(state.event_time)
    own = (
        F.when(F.col(PROBLEM).isNotNull(), F.lit(None))
        .when(event.isNull(), F.lit(f"{NO_EVENT_TIME}\t{state.event_time} is null, so the record belongs to no window"))
        # Spark's watermark begins there; whether it drops an earlier record depends on how the batches were cut.
        .when(F.unix_micros(event) < 0, F.lit(f"{BEFORE_1970}\t{state.event_time} is before 1970, where the watermark begins"))
    )
    if rule is not None:
        own = own.when(_is_ahead(event, state.max_ahead_ms, rule), _ahead_text(event, state.event_time, state.max_ahead_text))
    return decoded.withColumn(OWN, own).withColumn(PROBLEM, F.coalesce(F.col(PROBLEM), F.col(OWN)))


def _is_ahead(event: Column, max_ahead_ms: int, rule: AheadRule) -> Column:
    event_ms, sent_ms = F.unix_millis(event), F.unix_millis(F.col(f"{KAFKA_COLUMN}.timestamp"))
    limit = _limit_of_the_query(max_ahead_ms) if rule.clock_ms is None else _long(limit_ms(rule.clock_ms, max_ahead_ms))
    found = _is_later(event_ms, sent_ms, limit, _long(max_ahead_ms))
    if not rule.ends:
        return found
    partition, offset = F.col(f"{KAFKA_COLUMN}.partition"), F.col(f"{KAFKA_COLUMN}.offset")
    ends = F.create_map(*(one for number, end in rule.ends.items() for one in (F.lit(number), _long(end))))
    again = offset < F.coalesce(F.try_element_at(ends, partition), F.lit(0))
    return F.when(again, _was_ahead(event_ms, sent_ms, partition, offset, rule)).otherwise(found)


def _was_ahead(event_ms: Column, sent_ms: Column, partition: Column, offset: Column, rule: AheadRule) -> Column:
    told = [(p, one.start, one.end, one.limit_ms, one.max_ahead_ms) for p, ranges in rule.known.items() for one in ranges]
    if not told:
        return sent_ms.isNull()
    names = ("partition", "start", "end", "limit_ms", "max_ahead_ms")
    structs = [F.struct(*(_long(value).alias(name) for name, value in zip(names, one, strict=True))) for one in told]

    def holds(one: Column) -> Column:
        there = (one["partition"] == partition) & (one["start"] <= offset) & (offset < one["end"])
        return there & _is_later(event_ms, sent_ms, one["limit_ms"], one["max_ahead_ms"])

    return sent_ms.isNull() | F.exists(F.array(*structs), holds)


def _is_later(event_ms: Column, sent_ms: Column, limit: Column, max_ahead: Column) -> Column:
    return sent_ms.isNull() | (event_ms > sent_ms + max_ahead) | (event_ms > limit)


def _long(value: int) -> Column:
    return F.lit(value).cast("long")


def _limit_of_the_query(max_ahead_ms: int) -> Column:
    """Return ``limit_ms`` of the time at which Spark has planned the batch: that is what now is in a batch of a stream."""
    step = limit_step_ms(max_ahead_ms)
    return F.expr(f"((unix_millis(current_timestamp()) + {max_ahead_ms + CLOCK_SECONDS * 1000}) div {step} + 1) * {step}")


def _ahead_text(event: Column, name: str, max_ahead: str) -> Column:
    sent, form = F.col(f"{KAFKA_COLUMN}.timestamp"), "yyyy-MM-dd HH:mm:ss"
    return F.concat(
        F.lit(f"{FAR_AHEAD}\t{name} is "),
        F.date_format(event, form),
        F.lit(f" UTC, more than {max_ahead} after Kafka's time of the record, which is "),
        F.coalesce(F.concat(F.date_format(sent, form), F.lit(" UTC")), F.lit("not known")),
        F.lit(", or after the clock of the machine that read it"),
    )
