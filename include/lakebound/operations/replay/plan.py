"""What a replay would land: the range that was asked for, ledgers and Kafka's facts in, the plan out. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

from pydantic import Field

from lakebound.errors import LakeboundError, OffsetBeyondEndError
from lakebound.frozen import Frozen
from lakebound.ledger.entry import (
    Offsets,
    TopicOffsets,
    add,
    check_topic_ids,
    common,
    count,
    high_water_marks,
    intervals_of,
    missing,
)
from lakebound.ledger.intervals import Intervals, merge, subtract
from lakebound.ledger.marks import NextOffsets, lowest_of_all
from lakebound.ledger.topics import TopicFacts

_NAMED_RANGES = 6


class GoneFromKafkaError(LakeboundError):
    """Kafka has deleted what is to be replayed."""

    def __init__(self, pipeline: str, gone: Offsets) -> None:
        super().__init__(
            f"pipeline {pipeline!r}: Kafka no longer has {count(gone)} of the offsets to be replayed: {describe(gone)}; "
            f"nothing was written. Use --from earliest to replay the offsets that Kafka still has"
        )


class TableShare(Frozen):
    """What a replay does to one table.

    Attributes:
        table: Its id.
        lands: Offsets that it gets.
        covered: Offsets of the range that it holds already: they are skipped.
        takes_back: Offsets that its coverage claims though no row and no quarantined record stands for them: they are
            taken out of the coverage first, and are part of ``lands``.
    """

    table: str
    lands: Offsets = Field(default_factory=dict)
    covered: int = 0
    takes_back: Offsets = Field(default_factory=dict)


class ReplayPlan(Frozen):
    """What a replay would do, as of now.

    Attributes:
        pipeline: Its name.
        wanted: All offsets that are read: what any table gets.
        tables: What each gets.
        left_to_stream: Offsets of the range at or above the lowest high-water mark, which the stream itself reads.
        gone: Offsets of ``wanted`` that Kafka no longer has.
        kafka: What it has of the partitions that are read: the first offset, and the one after the last.
        chunks: In how many pieces it is read.
        notes: What else is to be known.
    """

    pipeline: str
    wanted: Offsets = Field(default_factory=dict)
    tables: tuple[TableShare, ...] = ()
    left_to_stream: Offsets = Field(default_factory=dict)
    gone: Offsets = Field(default_factory=dict)
    kafka: dict[str, dict[int, tuple[int, int]]] = Field(default_factory=dict)
    chunks: int = 0
    notes: tuple[str, ...] = ()

    @property
    def takes_back(self) -> dict[str, Offsets]:
        """Per table id, what is taken out of a coverage; tables without any are left out."""
        return {share.table: share.takes_back for share in self.tables if count(share.takes_back)}

    def check(self) -> None:
        """Raise GoneFromKafkaError when Kafka has not everything that is to be read.

        Raises:
            GoneFromKafkaError: Kafka has deleted some of it.
        """
        if count(self.gone):
            raise GoneFromKafkaError(self.pipeline, self.gone)


def make_plan(
    pipeline: str,
    asked: Offsets,
    coverages: Mapping[str, Offsets],
    topics: Mapping[str, TopicFacts],
    *,
    takes_back: Mapping[str, Offsets] | None = None,
) -> ReplayPlan:
    """Return the plan.

    Args:
        pipeline: Its name.
        asked: The range; everything that a table holds is left out of it.
        coverages: Of each target, by its id.
        topics: Kafka's facts.
        takes_back: Per table id, offsets of the coverage to be landed again.

    Raises:
        TopicRecreatedError: A ledger holds offsets of another incarnation of a topic.
        OffsetBeyondEndError: A ledger holds offsets that Kafka does not have.
    """
    ids = {topic: known.topic_id for topic, known in topics.items()}
    for coverage in coverages.values():
        check_topic_ids(coverage, ids)
    below = below_marks(asked, lowest_marks(list(coverages.values())))
    shares = tuple(_share(table, below, held, (takes_back or {}).get(table, {})) for table, held in coverages.items())
    wanted: Offsets = reduce(add, (share.lands for share in shares), {})
    return ReplayPlan(
        pipeline=pipeline,
        wanted=wanted,
        tables=shares,
        left_to_stream=missing(asked, below),
        gone=deleted_by_kafka(wanted, topics),
        kafka={
            topic: {p: (topics[topic].earliest[p], topics[topic].latest[p]) for p in offsets.partitions}
            for topic, offsets in wanted.items()
        },
    )


def lowest_marks(coverages: Sequence[Offsets]) -> NextOffsets:
    """Return, per topic and partition, the lowest high-water mark among the tables; a partition new to one of them has none.

    A stream starts from these marks and fills what tables lack above them, so a replay has to stay below.
    """
    return lowest_of_all([high_water_marks(coverage) for coverage in coverages])


def below_marks(asked: Offsets, marks: NextOffsets) -> Offsets:
    """Return the offsets below the marks; partitions without a mark are left out."""
    bounds = {
        topic: TopicOffsets(
            topic_id=offsets.topic_id,
            partitions={p: ((0, mark),) for p in offsets.partitions if (mark := marks.get(topic, {}).get(p, 0))},
        )
        for topic, offsets in asked.items()
    }
    return common(asked, bounds)


def deleted_by_kafka(wanted: Offsets, topics: Mapping[str, TopicFacts]) -> Offsets:
    """Return those of the offsets that Kafka no longer has.

    Args:
        wanted: Offsets.
        topics: Kafka's facts of their topics.

    Raises:
        OffsetBeyondEndError: Kafka never had some of them.
    """
    for topic, partition, intervals in intervals_of(wanted):
        latest = topics[topic].latest.get(partition, 0)
        if intervals[-1][1] > latest:
            raise OffsetBeyondEndError(topic, partition, intervals[-1][1], latest)
    return below_marks(wanted, {topic: known.earliest for topic, known in topics.items()})


def announced(wanted: Offsets, coverage: Offsets) -> Offsets:
    """Return a mark where the range begins, per partition in which that lies before everything that the table holds.

    Committed before the first batch, it makes all that is still to be landed a gap: a replay that was cut short is reported
    by a proof, in every table, and found by the next one.

    Args:
        wanted: Offsets that the replay will land.
        coverage: Offsets that the table has.
    """
    result: Offsets = {}
    for topic, partition, intervals in intervals_of(wanted):
        held = coverage[topic].partitions.get(partition, ()) if topic in coverage else ()
        first = intervals[0][0]
        if held and first < held[0][0]:
            known = result[topic].partitions if topic in result else {}
            marks = {**known, partition: ((first, first),)}
            result[topic] = TopicOffsets(topic_id=wanted[topic].topic_id, partitions=marks)
    return result


def without(coverage: Offsets, taken: Offsets) -> Offsets:
    """Return the coverage without some of its offsets. Its ends stay where they are, as marks if need be.

    So the stream goes on where it was, and what was taken is a gap that a proof reports until it has landed again.
    """
    result: Offsets = {}
    for topic, held in coverage.items():
        removed = taken[topic].partitions if topic in taken else {}
        partitions = {p: _with_ends(intervals, removed.get(p, ())) for p, intervals in held.partitions.items()}
        result[topic] = TopicOffsets(topic_id=held.topic_id, partitions=partitions)
    return result


def describe(offsets: Offsets) -> str:
    """Return the offsets as text, the first few ranges of them."""
    texts = [f"{topic}/{p} [{start}, {end})" for topic, p, intervals in intervals_of(offsets) for start, end in intervals]
    more = len(texts) - _NAMED_RANGES
    return ", ".join(texts[:_NAMED_RANGES]) + (f" and {more} more ranges" if more > 0 else "") or "-"


def _share(table: str, asked: Offsets, coverage: Offsets, takes_back: Offsets) -> TableShare:
    taken = common(common(asked, coverage), takes_back)
    lands = missing(asked, without(coverage, taken))
    return TableShare(table=table, lands=lands, covered=count(asked) - count(lands), takes_back=taken)


def _with_ends(intervals: Intervals, removed: Intervals) -> Intervals:
    rest = subtract(intervals, removed)
    if not intervals:
        return rest
    first, last = intervals[0][0], intervals[-1][1]
    return merge((*rest, (first, first), (last, last)))
