"""From where to where a replay goes, as a person writes it. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from lakebound.errors import LakeboundError
from lakebound.ledger.entry import Offsets, TopicOffsets
from lakebound.ledger.intervals import Intervals
from lakebound.ledger.marks import NextOffsets
from lakebound.ledger.topics import TopicFacts
from lakebound.spec.times import BadMomentError, parse_past


class BadBoundError(LakeboundError):
    """A bound of a replay is written wrongly, or names what the pipeline does not have."""

    def __init__(self, option: str, text: str, reason: str) -> None:
        forms = """earliest, latest, a time such as 2026-11-20T14:05 (UTC) or '10m ago', or offsets as {"topic": {"0": 100}}"""
        super().__init__(f"{option}: {text!r} {reason}; give {forms}")


@dataclass(frozen=True)
class ReplayBound:
    """One end of the range: what was written, and what it means; exactly one of the last three is given."""

    option: str
    text: str
    end: Literal["first", "earliest", "latest"] | None = None
    timestamp_ms: int | None = None
    offsets: NextOffsets | None = None


FIRST = ReplayBound("--from", "0", end="first")
"""Offset 0 of every partition, whether Kafka still has it or not."""


def parse_bound(option: str, text: str, now_ms: int) -> ReplayBound:
    """Return the bound in ``text``: earliest, latest, a past time (``lakebound.spec.times``), or JSON offsets.

    Args:
        option: Name of the command-line option, such as ``--from``, for messages.
        text: What the person wrote after it.
        now_ms: Epoch milliseconds of now; a time such as ``10m ago`` counts from it.

    Raises:
        BadBoundError: It is none of them.
    """
    wanted = text.strip()
    if wanted == "earliest":
        return ReplayBound(option, wanted, end="earliest")
    if wanted == "latest":
        return ReplayBound(option, wanted, end="latest")
    if wanted.startswith("{"):
        return ReplayBound(option, wanted, offsets=_offsets(option, wanted))
    try:
        return ReplayBound(option, wanted, timestamp_ms=parse_past(wanted, now_ms))
    except BadMomentError:
        raise BadBoundError(option, text, "is neither a place in Kafka nor a time in the past") from None


def resolve(bound: ReplayBound, topics: Mapping[str, TopicFacts], at_time: NextOffsets | None) -> NextOffsets:
    """Return the bound's offset per topic and partition; JSON names some partitions, the others name all.

    Args:
        bound: The bound.
        topics: Kafka's facts of the pipeline's topics.
        at_time: For a time: Kafka's first offset that is not older.

    Raises:
        BadBoundError: It names a topic or partition that the pipeline does not have.
    """
    if bound.offsets is not None:
        for topic, partitions in bound.offsets.items():
            if topic not in topics:
                raise BadBoundError(bound.option, bound.text, f"names {topic!r}, which is not a topic of the pipeline")
            strange = sorted(set(partitions) - set(topics[topic].latest))
            if strange:
                raise BadBoundError(bound.option, bound.text, f"names partition {strange[0]}, which {topic!r} does not have")
        return bound.offsets
    if bound.timestamp_ms is not None:
        return at_time or {}
    if bound.end == "first":
        return {topic: dict.fromkeys(known.latest, 0) for topic, known in topics.items()}
    return {topic: known.earliest if bound.end == "earliest" else known.latest for topic, known in topics.items()}


def between(start: NextOffsets, end: NextOffsets, topics: Mapping[str, TopicFacts]) -> Offsets:
    """Return the offsets from ``start`` up to but without ``end``, in the partitions that both name.

    Args:
        start: First offset that is asked for, per topic and partition.
        end: Offset after the last one that is asked for, per topic and partition.
        topics: What Kafka has of each topic in ``start``; the topic ids come from here.
    """
    result: Offsets = {}
    for topic, starts in start.items():
        ends = end.get(topic, {})
        intervals: dict[int, Intervals] = {
            p: ((starts[p], ends[p]),) for p in sorted(starts) if p in ends and starts[p] < ends[p]
        }
        if intervals:
            result[topic] = TopicOffsets(topic_id=topics[topic].topic_id, partitions=intervals)
    return result


def _offsets(option: str, text: str) -> NextOffsets:
    try:
        body: Any = json.loads(text)
        found = {str(topic): {int(p): offset for p, offset in partitions.items()} for topic, partitions in body.items()}
    except (ValueError, AttributeError):
        raise BadBoundError(option, text, "is not JSON of topics, partitions and offsets") from None
    for partitions in found.values():
        for offset in partitions.values():
            if not isinstance(offset, int) or isinstance(offset, bool) or offset < 0:
                raise BadBoundError(option, text, f"holds {offset!r} where an offset belongs")
    return found
