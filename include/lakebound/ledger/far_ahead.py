"""Which records went to quarantine because their event time is far ahead: a start judges them again in the same way. Pure.

A record is far ahead of Kafka's time of it, or of the clock of the machine that reads it: producers may set both times in the
record. The clock is another one when the record is read again, and ``max_ahead`` may be. So what is kept is the rule of each
range in which a record was far ahead; in all other ranges none was.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from lakebound.frozen import FrozenRecord

CLOCK_SECONDS = 60
"""How far the clocks of Kafka's brokers and of this machine may be apart."""


class FarAhead(FrozenRecord):
    """Offsets of one partition, some of which were far ahead.

    Attributes:
        start: First offset.
        end: Offset after the last one.
        limit_ms: A later event time was far ahead of the clock.
        max_ahead_ms: An event time that is later than Kafka's time of its record by more than this was far ahead.
    """

    start: int
    end: int
    limit_ms: int
    max_ahead_ms: int


FarAheadRanges = Mapping[int, tuple[FarAhead, ...]]
"""By partition, in the order of offsets."""


def limit_step_ms(max_ahead_ms: int) -> int:
    """Return by how much ``limit_ms`` grows at a time: few ranges are kept where records are far ahead all the time."""
    return max(max_ahead_ms, CLOCK_SECONDS * 1000)


def limit_ms(clock_ms: int, max_ahead_ms: int) -> int:
    """Return the event time after which records are far ahead of the clock: by ``max_ahead``, a minute, and up to a step.

    Args:
        clock_ms: When the batch was planned, in epoch milliseconds.
        max_ahead_ms: Of the pipeline.
    """
    step = limit_step_ms(max_ahead_ms)
    return ((clock_ms + max_ahead_ms + CLOCK_SECONDS * 1000) // step + 1) * step


def with_batch(known: FarAheadRanges, batch: Mapping[int, FarAhead], found: Collection[int]) -> dict[int, tuple[FarAhead, ...]]:
    """Return the ranges with those of a batch in which a record was far ahead.

    Args:
        known: Those before.
        batch: What the batch has read of each partition.
        found: Partitions in which a record was far ahead.
    """
    ranges = dict(known)
    for partition, one in batch.items():
        before = ranges.get(partition, ())
        if before and before[-1] == one.model_copy(update={"start": before[-1].start, "end": one.start}):
            ranges[partition] = (*before[:-1], before[-1].model_copy(update={"end": one.end}))
        elif partition in found:
            ranges[partition] = (*before, one)
    return ranges


def since(known: FarAheadRanges, horizon: Mapping[int, int]) -> dict[int, tuple[FarAhead, ...]]:
    """Return the ranges that a start reads again.

    Args:
        known: All.
        horizon: First offset that is read again, by partition.
    """
    left = {p: tuple(one for one in ranges if one.end > horizon.get(p, 0)) for p, ranges in known.items()}
    return {partition: ranges for partition, ranges in left.items() if ranges}
