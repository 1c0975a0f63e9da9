"""Reads some records of topics, the newest or the oldest, for who only looks at them: no group, no commit, no lease."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields

from lakebound.errors import BrokerUnavailableError, LakeboundError
from lakebound.landing.direct_read import DirectReader, DirectReadRefusedError, RecordColumns
from lakebound.landing.kafka import KafkaFacts
from lakebound.ledger.entry import Offsets, TopicOffsets
from lakebound.ledger.marks import NextOffsets
from lakebound.ledger.topics import PartitionId
from lakebound.spec.connection import ConnectionSpec

MOST_BYTES = 64 * 1024 * 1024
"""A sample of very large records ends here."""
_PATIENCE_SECONDS = 15.0

Range = tuple[int, int]


class EmptyTopicError(LakeboundError):
    """There is nothing to look at."""

    def __init__(self, topics: tuple[str, ...], servers: str) -> None:
        super().__init__(
            f"there are no records in {', '.join(topics)} on the broker at {servers}; send some records, then run this again"
        )


class NoLandedRecordsError(LakeboundError):
    """No record that has landed is left to look at."""

    def __init__(self, topics: tuple[str, ...], servers: str) -> None:
        super().__init__(
            f"no record of {', '.join(topics)} that has landed is still on the broker at {servers}; without --against-landed "
            f"records are tried that have not landed"
        )


@dataclass(frozen=True)
class TopicSample:
    """Records of topics.

    Attributes:
        records: As columns.
        topic_ids: Of the topics.
        ranges: Per topic and partition, which offsets were read, the second one exclusive.
    """

    records: RecordColumns
    topic_ids: Mapping[str, str]
    ranges: Mapping[PartitionId, Range] = field(default_factory=dict)


def read_sample(
    connection: ConnectionSpec,
    topics: tuple[str, ...],
    count: int,
    *,
    newest: bool,
    reader: str,
    until: NextOffsets | None = None,
    since: NextOffsets | None = None,
) -> TopicSample:
    """Return up to ``count`` records of the topics.

    Args:
        connection: The broker.
        topics: Their names.
        count: Of all topics together; fewer where offsets have no record, and where records are very large.
        newest: Those at the end of each partition; else those at its beginning.
        reader: Names the consumer.
        until: Offsets at which to end; of a partition that is not named nothing is read. None: at the end of the topics.
        since: Offsets before which nothing is read, of the partitions that it names; None: from the first ones on.

    Raises:
        MissingTopicError: A topic is not there.
        KafkaRefusalError: Kafka refuses the login, or the user may not read the topics, or use the reader's group.
        BrokerUnavailableError: Kafka did not answer in time.
        EmptyTopicError: There are none.
        NoLandedRecordsError: There are none before ``until``.
    """
    facts = KafkaFacts(connection).topics(topics)
    known = {(name, p): (one.earliest[p], one.latest[p]) for name, one in facts.items() for p in one.latest}
    if until is not None:
        known = {(name, p): (first, min(end, until.get(name, {}).get(p, 0))) for (name, p), (first, end) in known.items()}
    if since is not None:
        known = {(name, p): (max(first, since.get(name, {}).get(p, 0)), end) for (name, p), (first, end) in known.items()}
    ranges = choose_ranges(known, count, newest=newest)
    if not ranges:
        raise (EmptyTopicError if until is None else NoLandedRecordsError)(topics, connection.bootstrap_servers)
    source, records, is_whole = DirectReader(connection, reader), RecordColumns(), True
    try:
        for one in source.read(_offsets(ranges, {name: known.topic_id for name, known in facts.items()}), _PATIENCE_SECONDS):
            for column in fields(RecordColumns):
                getattr(records, column.name).extend(getattr(one, column.name))
            if sum(len(value or b"") for value in records.values) > MOST_BYTES:
                is_whole = False
                break
    except DirectReadRefusedError as exc:
        if isinstance(exc.__cause__, LakeboundError):
            raise exc.__cause__ from None
        raise BrokerUnavailableError(connection.bootstrap_servers, str(exc)) from exc
    finally:
        source.close()
    read = ranges if is_whole else read_of(ranges, records)
    return TopicSample(records, {name: one.topic_id for name, one in facts.items()}, read)


def is_compacted(connection: ConnectionSpec, topic: str) -> bool:
    """Whether Kafka keeps only the newest record of each key of a topic; False where it does not tell.

    Args:
        connection: The broker.
        topic: Its name.
    """
    try:
        return KafkaFacts(connection).written_settings([topic])[topic].is_compacted
    except LakeboundError:
        return False


def choose_ranges(known: Mapping[PartitionId, Range], count: int, *, newest: bool) -> dict[PartitionId, Range]:
    """Return which offsets make up a sample: as many of each partition, and more of the others where one has too few. Pure.

    Args:
        known: Per topic and partition, the first offset and the next one.
        count: Of all together.
        newest: At the end of each partition; else at its beginning.
    """
    ranges: dict[PartitionId, Range] = {}
    by_size = sorted((end - start, place) for place, (start, end) in known.items() if end > start)
    for number, (size, place) in enumerate(by_size):
        share = min(size, -(-count // (len(by_size) - number)))
        count -= share
        start, end = known[place]
        if share:
            ranges[place] = (end - share, end) if newest else (start, start + share)
    return dict(sorted(ranges.items()))


def read_of(ranges: Mapping[PartitionId, Range], records: RecordColumns) -> dict[PartitionId, Range]:
    """Return what of the ranges was read, where reading broke off: of each partition up to the last record. Pure.

    Args:
        ranges: What was asked for.
        records: What came; those of a partition in their order.
    """
    ends = dict(zip(zip(records.topics, records.partitions, strict=True), records.offsets, strict=True))
    return {place: (start, ends[place] + 1) for place, (start, _) in ranges.items() if place in ends}


def _offsets(ranges: Mapping[PartitionId, Range], topic_ids: Mapping[str, str]) -> Offsets:
    topics = sorted({topic for topic, _ in ranges})
    return {
        topic: TopicOffsets(
            topic_id=topic_ids[topic], partitions={p: (span,) for (name, p), span in ranges.items() if name == topic}
        )
        for topic in topics
    }
