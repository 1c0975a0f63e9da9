"""Records of a range of offsets, read by a consumer of the driver's own that is ahead of what it is asked for.

For a small batch a Spark job costs many times what the reading costs. The consumer fetches while Spark plans the next batch,
so that a range is mostly in memory when it is asked for. What it cannot read, it refuses: Spark then reads the same range, and
says what is wrong with it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, Consumer, KafkaError, KafkaException, TopicPartition

from lakebound.kafka import client_config
from lakebound.ledger import Offsets, intervals_of
from lakebound.spec import ConnectionSpec

PATIENCE_SECONDS = 2.0
_AT_ONCE = 10_000
_QUEUED_KILOBYTES = 16_384
"""What the consumer fetches ahead of what was asked for: half of what the driver lane takes (spec.DriverLaneSpec)."""

Place = tuple[str, int]
Message = Any  # the client has no types


class DirectReadRefusedError(Exception):
    """The range was not read; nothing was changed."""


@dataclass(frozen=True)
class Records:
    """Records of one batch, as columns of the same length; timestamps are Kafka's, in epoch milliseconds."""

    topics: list[str] = field(default_factory=list)
    partitions: list[int] = field(default_factory=list)
    offsets: list[int] = field(default_factory=list)
    timestamps_ms: list[int] = field(default_factory=list)
    keys: list[bytes | None] = field(default_factory=list)
    values: list[bytes | None] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.offsets)


@dataclass
class _Partition:
    """What was taken from the consumer: ``ahead`` are all messages from ``start`` up to ``position``, not asked for yet."""

    start: int
    position: int
    ahead: list[Message] = field(default_factory=list)


class DirectReader:
    """Reads ranges that mostly follow each other. Used by one thread."""

    def __init__(self, connection: ConnectionSpec, pipeline: str, max_bytes: int) -> None:
        """Describe the reader; it connects at the first range.

        Args:
            connection: The broker.
            pipeline: Its name.
            max_bytes: Of the values of one range. How wide records are is known only from earlier batches.
        """
        self._max_bytes = max_bytes
        self._config: dict[str, Any] = {
            **client_config(connection),
            # Assigned by hand and never committed: the id only names the reader, as Spark's does.
            "group.id": f"lakebound-{pipeline}-direct",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "isolation.level": "read_committed",
            # A range may end with the marker of a transaction, which is no message: the end of the partition says it is over.
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 50,
            # A stream may rest for long, or be Spark's for long.
            "max.poll.interval.ms": 86_400_000,
            "queued.max.messages.kbytes": _QUEUED_KILOBYTES,
            "log_level": 0,
        }
        self._consumer: Any = None
        self._partitions: dict[Place, _Partition] = {}

    def read(self, wanted: Offsets, patience_seconds: float = PATIENCE_SECONDS) -> Records:
        """Return all records of the offsets, a partition's in their order.

        Raises:
            DirectReadRefusedError: They do not come in time, or are too many bytes; Kafka answers with an error; they are more
                than one range per partition; a record has no timestamp.
        """
        try:
            ranges = _ranges(wanted)
            self._go_to({place: start for place, (start, _) in ranges.items()})
            self._take(ranges, time.monotonic() + patience_seconds)
            records = Records()
            for place, (_, end) in ranges.items():
                _append(records, place, self._partitions[place], end)
        except (KafkaException, DirectReadRefusedError) as exc:
            self.close()
            raise DirectReadRefusedError(str(exc)) from exc
        return records

    def close(self) -> None:
        """Disconnect; the next range connects anew."""
        consumer, self._consumer, self._partitions = self._consumer, None, {}
        if consumer is not None:
            consumer.close()

    def _go_to(self, starts: Mapping[Place, int]) -> None:
        """Have every range's partition stand at its start; one that stands elsewhere is assigned anew."""
        if self._consumer is None:
            self._consumer = Consumer(self._config)
        moved = False
        for place, start in starts.items():
            known = self._partitions.get(place)
            if known is None or not known.start <= start <= known.position:
                self._partitions[place] = _Partition(start, start)
                moved = True
            else:
                known.start = start
                known.ahead = [message for message in known.ahead if message.offset() >= start]
        if moved:
            self._consumer.assign([TopicPartition(*place, known.position) for place, known in self._partitions.items()])

    def _take(self, ranges: Mapping[Place, tuple[int, int]], deadline: float) -> None:
        """Take messages from the consumer until every range is whole."""
        taken_bytes = 0
        while any(self._partitions[place].position < end for place, (_, end) in ranges.items()):
            messages = self._consumer.consume(_AT_ONCE, 0)
            if not messages:
                left = deadline - time.monotonic()
                if left <= 0:
                    raise DirectReadRefusedError("the records did not come in time")
                message = self._consumer.poll(left)
                messages = [] if message is None else [message]
            for message in messages:
                taken_bytes += self._put(message)
            if taken_bytes > self._max_bytes:
                raise DirectReadRefusedError(f"the records are more than {self._max_bytes:,} bytes")

    def _put(self, message: Message) -> int:
        """Keep a message, and return how many bytes its value has."""
        error = message.error()
        if error is not None and error.code() != KafkaError._PARTITION_EOF:
            raise DirectReadRefusedError(str(error))
        partition = self._partitions[message.topic(), message.partition()]
        if error is not None:
            partition.position = max(partition.position, message.offset())
            return 0
        partition.ahead.append(message)
        partition.position = message.offset() + 1
        return len(message)


def _ranges(wanted: Offsets) -> dict[Place, tuple[int, int]]:
    ranges = {}
    for topic, partition, intervals in intervals_of(wanted):
        if len(intervals) > 1:
            raise DirectReadRefusedError(f"{topic}-{partition}: more than one range")
        ranges[topic, partition] = intervals[0]
    return ranges


def _append(records: Records, place: Place, partition: _Partition, end: int) -> None:
    """Move the messages below ``end`` from the partition to the records."""
    count = next((index for index, message in enumerate(partition.ahead) if message.offset() >= end), len(partition.ahead))
    taken, partition.ahead, partition.start = partition.ahead[:count], partition.ahead[count:], end
    stamps = [message.timestamp() for message in taken]
    if any(kind == TIMESTAMP_NOT_AVAILABLE for kind, _ in stamps):
        raise DirectReadRefusedError("a record has no timestamp")
    records.topics.extend([place[0]] * count)
    records.partitions.extend([place[1]] * count)
    records.offsets.extend(message.offset() for message in taken)
    records.timestamps_ms.extend(stamp for _, stamp in stamps)
    records.keys.extend(message.key() for message in taken)
    records.values.extend(message.value() for message in taken)
