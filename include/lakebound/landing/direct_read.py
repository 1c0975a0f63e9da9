"""Records of a range of offsets, read by a consumer of the driver's own that is ahead of what it is asked for.

For a small batch a Spark job costs many times what the reading costs. The consumer fetches while Spark plans the next batch,
so that a range is mostly in memory when it is asked for. What it cannot read, it refuses: Spark then reads the same range, and
says what is wrong with it.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import compress, pairwise
from operator import itemgetter, methodcaller, ne, or_
from typing import Any, Protocol

from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, KafkaError, KafkaException, Message, TopicPartition

from lakebound.errors import KafkaForbiddenError, LakeboundError
from lakebound.formats.contract import Headers
from lakebound.landing.kafka_clients import make_consumer
from lakebound.landing.kafka_errors import who
from lakebound.landing.kafka_settings import consumer_config
from lakebound.ledger.entry import Offsets, intervals_of
from lakebound.ledger.topics import PartitionId
from lakebound.spec.connection import ConnectionSpec

PATIENCE_SECONDS = 2.0
SLICE_RECORDS = 32_768
SLICE_BYTES = 16 * 1024 * 1024
"""Maximum bytes of a large range in one slice; two are held at once. Larger slices decode no faster."""
_AT_ONCE = 10_000
_QUEUED_KILOBYTES = 32_768
"""What the consumer fetches ahead. Draining takes 210,000 records of 180 B a second with 16 MiB, 250,000 with 32 or 64."""
_TOPIC, _PARTITION, _ERROR = methodcaller("topic"), methodcaller("partition"), methodcaller("error")
_NO_TEXT = (UnicodeDecodeError, SystemError)
"""What the client raises of a header whose name is not UTF-8: its own code does not see that it has failed, but Python does."""
_headers_of = methodcaller("headers")
"""Asks a record. Where a call in Python code was made often, Python 3.11 no longer checks what C code returns: the error would
come up later, anywhere. It checks what C code calls (https://peps.python.org/pep-0659/)."""
_END = KafkaError._PARTITION_EOF
"""No error: the consumer is at the end of a partition."""
_MOST_AHEAD_BYTES = 32 * 1024 * 1024
"""Of one partition, of what was not asked for yet, while another partition is waited for."""

# Messages are Any below: the client's own type says that each of their parts may be None, which is so of errors only.


class DirectReadRefusedError(Exception):
    """The range was not read; nothing was changed."""


class HasHeaders(Protocol):
    """A record as Kafka's client has it: its headers become Python's only when they are asked for."""

    def headers(self) -> Headers | None:
        """Return them in their order; None where there are none."""


def readable_headers(record: HasHeaders) -> Headers | None:
    """Return the headers of a record; None where it has none, or where one has a name that is not UTF-8: none is read then.

    Asked once of a record: of such a one the client's second answer is a broken list, which ends the process.
    """
    try:
        return _headers_of(record)  # type: ignore[no-any-return]
    except _NO_TEXT:
        return None


@dataclass(frozen=True)
class GivenHeaders:
    """The headers of a record that did not come from Kafka's client."""

    given: Headers

    def headers(self) -> Headers:
        """Return them."""
        return self.given


class _Unreadable:
    """Stands for a record whose headers the client could not read: it must not be asked again (``readable_headers``)."""

    def headers(self) -> Headers | None:
        """Raise what the client raised."""
        raise SystemError("the name of a header is not UTF-8")


@dataclass(frozen=True)
class RecordColumns:
    """Records of one batch, as columns of the same length; timestamps are Kafka's, in epoch milliseconds.

    ``sources`` may be empty instead: then no record has headers.
    """

    topics: list[str] = field(default_factory=list)
    partitions: list[int] = field(default_factory=list)
    offsets: list[int] = field(default_factory=list)
    timestamps_ms: list[int] = field(default_factory=list)
    keys: list[bytes | None] = field(default_factory=list)
    values: list[bytes | None] = field(default_factory=list)
    sources: list[HasHeaders] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.offsets)

    def headers(self, positions: Sequence[int] | None = None) -> list[Headers | None]:
        """Return the headers of the records at these positions, of all without any; None for a record that has none.

        Raises:
            DirectReadRefusedError: The client cannot read the name of one, which is not UTF-8.
        """
        if not self.sources:
            return [None] * (len(self) if positions is None else len(positions))
        places = range(len(self)) if positions is None else positions
        found: list[Headers | None] = []
        try:
            for at in places:
                found.append(_headers_of(self.sources[at]))
        except _NO_TEXT as exc:
            self.sources[places[len(found)]] = _Unreadable()
            raise DirectReadRefusedError("the name of a header is not UTF-8") from exc
        return found

    def readable_headers(self) -> list[Headers | None]:
        """Return the headers of all records; None, too, for one whose headers the client cannot read (``readable_headers``)."""
        if not self.sources:
            return [None] * len(self)
        found = [*map(readable_headers, self.sources)]
        self.sources[:] = [GivenHeaders(one or ()) for one in found]
        return found

    def at(self, positions: Sequence[int]) -> RecordColumns:
        """Return those at these positions."""
        columns = (self.topics, self.partitions, self.offsets, self.timestamps_ms, self.keys, self.values, self.sources)
        chosen = ([column[position] for position in positions] if column else [] for column in columns)
        return RecordColumns(*chosen)  # type: ignore[arg-type]


@dataclass
class _Partition:
    """What was taken from the consumer, from ``start`` up to ``position``, and not given out yet.

    A partition is cut off where it is too far ahead: what the consumer gives of it from then on is discarded, and fetched
    again.
    """

    start: int
    position: int
    messages: list[Any] = field(default_factory=list)
    is_cut_off: bool = False

    def add(self, messages: list[Any]) -> None:
        """Keep messages that follow what there is."""
        self.messages.extend(messages)
        self.position = messages[-1].offset() + 1

    def move_to(self, records: RecordColumns, place: PartitionId, end: int) -> None:
        """Move what is below ``end`` to the records."""
        messages = self.messages[: self._count_below(end)]
        # Column by column without a Python call per message: a third of the time of a loop.
        stamps = [*map(Message.timestamp, messages)]
        if TIMESTAMP_NOT_AVAILABLE in map(itemgetter(0), stamps):
            raise DirectReadRefusedError("a record has no timestamp")
        records.topics.extend([place[0]] * len(messages))
        records.partitions.extend([place[1]] * len(messages))
        records.offsets.extend(map(Message.offset, messages))  # type: ignore[arg-type]
        records.timestamps_ms.extend(map(itemgetter(1), stamps))
        records.keys.extend(map(Message.key, messages))
        records.values.extend(map(Message.value, messages))
        records.sources.extend(messages)
        self.forget_below(end)

    def forget_below(self, offset: int) -> None:
        """Drop what is below an offset."""
        del self.messages[: self._count_below(offset)]
        self.start = min(offset, self.position)

    def _count_below(self, offset: int) -> int:
        return bisect_left(self.messages, offset, key=methodcaller("offset"))


class DirectReader:
    """Reads ranges that mostly follow each other. Used by one thread at a time."""

    def __init__(self, connection: ConnectionSpec, pipeline: str) -> None:
        """Describe the reader; it connects at the first range."""
        self._connection = connection
        self._group = f"lakebound-{pipeline}-direct"
        self._consumer: Any = None
        self._partitions: dict[PartitionId, _Partition] = {}

    def read(self, wanted: Offsets, patience_seconds: float = PATIENCE_SECONDS) -> Iterator[RecordColumns]:
        """Yield all records of the offsets, a partition's in their order; a large range in slices.

        Args:
            wanted: The offsets: one range per partition.
            patience_seconds: How long to wait for the next record.

        Raises:
            DirectReadRefusedError: For so long none came; Kafka answers with an error; the offsets are more than one range per
                partition; a record has no timestamp.
        """
        try:
            ranges = _ranges(wanted)
            self._go_to({place: start for place, (start, _) in ranges.items()})
            ends = {place: end for place, (_, end) in ranges.items()}
            while True:
                is_whole = self._take(ends, patience_seconds)
                yield self._give_out(ends)
                if is_whole:
                    return
        except (KafkaException, LakeboundError, DirectReadRefusedError) as exc:
            self.close()
            raise DirectReadRefusedError(str(exc)) from exc

    def arrived(self, starts: Mapping[PartitionId, int], wait_seconds: float) -> dict[PartitionId, int]:
        """Return up to where the consumer has all records of each partition; where it has none, it waits for the first one.

        Args:
            starts: Next offset to read of every partition that is to be looked at.
            wait_seconds: How long to wait where no record has come.

        Raises:
            DirectReadRefusedError: Kafka answers with an error.
        """
        try:
            self._go_to(starts)
            held = sum(self._partitions[place].position - start for place, start in starts.items())
            messages = self._consumer.consume(_AT_ONCE, 0) if held < _AT_ONCE else []
            if not messages and not held:
                message = self._consumer.poll(wait_seconds)
                messages = [] if message is None else [message, *self._consumer.consume(_AT_ONCE, 0)]
            self._keep(messages)
        except (KafkaException, LakeboundError, DirectReadRefusedError) as exc:
            self.close()
            raise DirectReadRefusedError(str(exc)) from exc
        return {place: self._partitions[place].position for place in starts}

    def close(self) -> None:
        """Disconnect; the next range connects again."""
        consumer, self._consumer, self._partitions = self._consumer, None, {}
        if consumer is not None:
            consumer.close()

    def _config(self) -> dict[str, Any]:
        """Return the consumer's settings; the secrets in them are read anew for each consumer."""
        return {
            "fetch.wait.max.ms": 50,
            **consumer_config(self._connection),
            # Assigned by hand and never committed: the id only names the reader, as Spark's does.
            "group.id": self._group,
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "isolation.level": "read_committed",
            # A range may end with the marker of a transaction, which is no message: the end of the partition says it is over.
            "enable.partition.eof": True,
            # A stream may rest for long, or be Spark's for long.
            "max.poll.interval.ms": 86_400_000,
            "queued.max.messages.kbytes": _QUEUED_KILOBYTES,
            # Its default makes the consumer rest for a second whenever it is that far ahead: half of the records per second.
            "fetch.queue.backoff.ms": 10,
            "log_level": 0,
        }

    def _go_to(self, starts: Mapping[PartitionId, int]) -> None:
        """Move every range's partition to its start; one that is elsewhere is assigned again."""
        if self._consumer is None:
            self._consumer = make_consumer(self._config())
        moved = any(known.is_cut_off for known in self._partitions.values())
        for place, start in starts.items():
            known = self._partitions.get(place)
            if known is None or not known.start <= start <= known.position:
                self._partitions[place] = _Partition(start, start)
                moved = True
            else:
                known.forget_below(start)
        if moved:
            self._consumer.assign([TopicPartition(*place, known.position) for place, known in self._partitions.items()])
            for known in self._partitions.values():
                known.is_cut_off = False

    def _take(self, ends: Mapping[PartitionId, int], patience_seconds: float) -> bool:
        """Take messages from the consumer until there is a slice; return whether all up to the ends are there."""
        taken_bytes, deadline = 0, time.monotonic() + patience_seconds
        while lacking := self._lacking(ends):
            held = sum(min(end, known.position) - known.start for known, end in self._of(ends))
            if held >= SLICE_RECORDS or taken_bytes >= SLICE_BYTES:
                return False
            messages = self._consumer.consume(_AT_ONCE, 0)
            if not messages:
                message = self._consumer.poll(max(0.0, deadline - time.monotonic()))
                messages = [] if message is None else [message]
            taken_bytes += self._keep(messages)
            if self._lacking(ends) < lacking:
                deadline = time.monotonic() + patience_seconds
            elif time.monotonic() > deadline:
                raise DirectReadRefusedError("the records did not come in time")
        return True

    def _lacking(self, ends: Mapping[PartitionId, int]) -> int:
        """Return how many offsets below the ends did not come yet."""
        return sum(max(0, end - known.position) for known, end in self._of(ends))

    def _of(self, ends: Mapping[PartitionId, int]) -> list[tuple[_Partition, int]]:
        return [(self._partitions[place], end) for place, end in ends.items()]

    def _keep(self, messages: list[Any]) -> int:
        """Keep messages, and return how many bytes their values have."""
        kept_bytes = 0
        for (topic, number), taken in _runs(messages):
            errors = [error for error in map(_ERROR, taken) if error is not None]
            refused = next((error for error in errors if error.code() != _END), None)
            if refused is not None:
                # Some errors are of no partition: the group may not be read, or no broker is there.
                raise self._forbidden(refused, topic) or DirectReadRefusedError(str(refused))
            partition = self._partitions[topic, number]
            if partition.is_cut_off:
                continue
            ends = [message for message in taken if message.error() is not None] if errors else []
            good = [message for message in taken if message.error() is None] if errors else taken
            if good:
                partition.add(good)
                kept_bytes += sum(map(len, good))
            for message in ends:
                partition.position = max(partition.position, message.offset())
        return kept_bytes

    def _forbidden(self, error: KafkaError, topic: str | None) -> KafkaForbiddenError | None:
        operations = {
            KafkaError.TOPIC_AUTHORIZATION_FAILED: f"READ on topic {topic}",
            KafkaError.GROUP_AUTHORIZATION_FAILED: f"DESCRIBE on group {self._group}",
        }
        operation = operations.get(error.code())
        servers = self._connection.bootstrap_servers
        return KafkaForbiddenError(servers, who(self._connection), operation) if operation else None

    def _give_out(self, ends: Mapping[PartitionId, int]) -> RecordColumns:
        """Return what is held of the ranges, and cut off what is far beyond their ends."""
        records = RecordColumns()
        for place, end in ends.items():
            partition = self._partitions[place]
            partition.move_to(records, place, end)
            if sum(map(len, partition.messages)) > _MOST_AHEAD_BYTES:
                partition.is_cut_off = True
        return records


def _ranges(wanted: Offsets) -> dict[PartitionId, tuple[int, int]]:
    ranges = {}
    for topic, partition, intervals in intervals_of(wanted):
        if len(intervals) > 1:
            raise DirectReadRefusedError(f"{topic}-{partition}: more than one range")
        ranges[topic, partition] = intervals[0]
    return ranges


def _runs(messages: list[Any]) -> Iterator[tuple[PartitionId, list[Any]]]:
    """Yield the messages of one partition that follow each other."""
    # Without a Python call per message, as ``_Partition.add``.
    topics, numbers = list(map(_TOPIC, messages)), list(map(_PARTITION, messages))
    is_another = map(or_, map(ne, topics[1:], topics), map(ne, numbers[1:], numbers))
    starts = [*range(min(1, len(messages))), *compress(range(1, len(messages)), is_another)]
    for first, end in pairwise([*starts, len(messages)]):
        yield (topics[first], numbers[first]), messages[first:end]
