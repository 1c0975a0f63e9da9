"""Where landing continues: starting offsets, or a refusal, from ledgers and Kafka's facts. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from lakebound.errors import OffsetBeyondEndError, RetentionPassedError
from lakebound.ledger.entry import Offsets, TopicOffsets, check_topic_ids, high_water_marks
from lakebound.ledger.marks import NextOffsets
from lakebound.ledger.topics import TopicFacts


def marks_for_unseen(
    coverage: Mapping[str, TopicOffsets], facts: Mapping[str, TopicFacts], start_from: Literal["earliest", "latest"]
) -> Offsets:
    """Return a mark [n, n) per partition that a table's ledger has never seen, for its ``open`` entry.

    From then on retention that passes the mark before anything landed is noticed, not skipped. ``latest`` counts only
    for a topic that the table has never seen at all: a partition added later starts at its beginning.

    Args:
        coverage: What the table's ledger covers, by topic.
        facts: First and last offsets that Kafka has, by topic.
        start_from: Where the pipeline wants to start in a new topic.
    """
    marks: Offsets = {}
    for topic, known in facts.items():
        seen = coverage[topic].partitions if topic in coverage else {}
        at_latest = start_from == "latest" and not seen
        unseen = {p: known.latest[p] if at_latest else known.earliest[p] for p in known.earliest if p not in seen}
        if unseen:
            marks[topic] = TopicOffsets(topic_id=known.topic_id, partitions={p: ((n, n),) for p, n in sorted(unseen.items())})
    return marks


def plan_start(coverages: Sequence[Mapping[str, TopicOffsets]], facts: Mapping[str, TopicFacts]) -> NextOffsets:
    """Return the offset from which each partition is read: the lowest high-water mark among the tables.

    Args:
        coverages: Of each table of the pipeline (not of its quarantine), marks included.
        facts: Of each topic of the pipeline.

    Raises:
        TopicRecreatedError: A ledger holds offsets of another incarnation of a topic.
        RetentionPassedError: Kafka has deleted records that were not landed.
        OffsetBeyondEndError: A ledger holds offsets that Kafka does not have.
    """
    topic_ids = {topic: known.topic_id for topic, known in facts.items()}
    all_marks = []
    for coverage in coverages:
        check_topic_ids(coverage, topic_ids)
        all_marks.append(high_water_marks(coverage))
    start: dict[str, dict[int, int]] = {}
    for topic, known in facts.items():
        for partition, earliest in known.earliest.items():
            marks = [marks.get(topic, {}).get(partition, earliest) for marks in all_marks]
            lowest, highest = min(marks), max(marks)
            if lowest < earliest:
                raise RetentionPassedError(topic, partition, lowest, earliest)
            if highest > known.latest[partition]:
                raise OffsetBeyondEndError(topic, partition, highest, known.latest[partition])
            start.setdefault(topic, {})[partition] = lowest
    return start


def covered_from(coverage: Mapping[str, TopicOffsets], start: NextOffsets) -> Offsets:
    """Return what of a target's coverage is read again by a start; topics without any are left out.

    Args:
        coverage: What the target's ledger covers, by topic.
        start: Next offset to read.
    """
    found: Offsets = {}
    for topic, offsets in coverage.items():
        begins = start.get(topic, {})
        kept = {
            p: tuple((max(first, begins[p]), end) for first, end in intervals if end > max(first, begins[p]))
            for p, intervals in offsets.partitions.items()
            if p in begins
        }
        kept = {p: intervals for p, intervals in kept.items() if intervals}
        if kept:
            found[topic] = TopicOffsets(topic_id=offsets.topic_id, partitions=kept)
    return found


def bound_range(wanted: Offsets, until: NextOffsets | None) -> Offsets:
    """Return ``wanted`` without the offsets at or after the bound; all of it when there is no bound."""
    if until is None:
        return wanted
    bounded: Offsets = {}
    for topic, offsets in wanted.items():
        ends = until.get(topic, {})
        kept = {
            p: tuple((start, min(end, ends[p])) for start, end in intervals if start < ends[p]) if p in ends else intervals
            for p, intervals in offsets.partitions.items()
        }
        kept = {p: intervals for p, intervals in kept.items() if intervals}
        if kept:
            bounded[topic] = TopicOffsets(topic_id=offsets.topic_id, partitions=kept)
    return bounded


def bound_reached(marks: NextOffsets, until: NextOffsets) -> bool:
    """Return whether every partition of the bound is landed up to it."""
    return all(marks.get(topic, {}).get(p, 0) >= end for topic, ends in until.items() for p, end in ends.items())
