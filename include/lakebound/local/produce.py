"""Sends invented records to Kafka at a given rate, and keeps a journal of what Kafka acknowledged.

The journal is for judges that know nothing of Lakebound: what it names must be in a table or in quarantine, once.
"""

from __future__ import annotations

import hashlib
import os
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO

from confluent_kafka import KafkaError, Message, Producer

from lakebound.errors import LakeboundError
from lakebound.landing.kafka_clients import make_producer
from lakebound.local.sample_records import DATASETS, READABLE_KINDS, BadKind, Dataset, Record, bad_value, key_bytes, value_bytes

JOURNAL_HEADER = "topic,partition,offset,sha256,timestamp_ms"
# What the journal says instead of a sum when the value is null.
NULL_SUM = "null"

REPORT_EVERY_SECONDS = 5.0
FLUSH_DEADLINE_SECONDS = 120.0
PAUSE_SECONDS = 0.002

Say = Callable[[str], None]


class NotAcknowledgedError(LakeboundError):
    """Kafka did not take records that were produced."""

    def __init__(self, count: int, reason: str) -> None:
        super().__init__(f"{count} records were not acknowledged by Kafka ({reason}); check the broker and the topic")


@dataclass(frozen=True)
class Feed:
    """What to send to one topic.

    Attributes:
        dataset: A name of `DATASETS`: ``orders`` or ``sensor_readings``.
        messages_per_second: The rate; 0 is as fast as Kafka takes them.
        topic: Default: the name of the dataset.
        count: Number of records after which it ends, if that comes before the time is over.
        bad_share: The share of records that are bad, 0 to 1.
        bad_kinds: Which kinds the share is drawn from.
        bad_list: Bad records to be sent once each, before anything else; they count as records.
        encode: Writes the value of a good record; bad ones are always JSON.
    """

    dataset: str
    messages_per_second: float = 100.0
    topic: str = ""
    count: int | None = None
    bad_share: float = 0.0
    bad_kinds: tuple[BadKind, ...] = tuple(BadKind)
    bad_list: tuple[BadKind, ...] = ()
    encode: Callable[[Record], bytes] = value_bytes

    @property
    def target(self) -> str:
        """The topic that receives the records."""
        return self.topic or self.dataset


@dataclass(frozen=True)
class Produced:
    """What was done.

    Attributes:
        acknowledged: Records that Kafka acknowledged, per topic.
        bad: Bad and unusual records sent, per kind.
        value_bytes: Size of all acknowledged values.
        seconds: From the first record to the last acknowledgement.
    """

    acknowledged: dict[str, int]
    bad: dict[str, int]
    value_bytes: int
    seconds: float

    @property
    def total(self) -> int:
        """Acknowledged records of all topics."""
        return sum(self.acknowledged.values())


def produce(
    config: Mapping[str, str],
    feeds: Sequence[Feed],
    seconds: float,
    *,
    journal: Path | None = None,
    seed: int = 1,
    stop: threading.Event | None = None,
    say: Say = print,
) -> Produced:
    """Send records until the time is over, every feed has its count, or ``stop`` is set; wait for all acknowledgements.

    Args:
        config: Settings of the Kafka client (``bootstrap.servers`` and how to log in).
        feeds: What to send where.
        seconds: For how long.
        journal: The CSV file to which every acknowledged record is appended; on disk when this returns.
        seed: The same seed gives the same records, but for their times.
        stop: Ends it early.
        say: Receives lines of progress.

    Raises:
        NotAcknowledgedError: Kafka refused records, or did not acknowledge them in time.
        KeyError: A feed names no dataset.
    """
    with _journal(journal) as file:
        acknowledged = _Acknowledgements(file)
        producer = make_producer(producer_config(config))
        streams = [_Stream(feed, random.Random(f"{seed}/{feed.target}")) for feed in feeds]
        started = time.monotonic()
        report = started + REPORT_EVERY_SECONDS
        while not (stop and stop.is_set()):
            elapsed = time.monotonic() - started
            if elapsed >= seconds or all(stream.is_done for stream in streams):
                break
            sent = sum(_send_due(producer, stream, elapsed, acknowledged) for stream in streams)
            producer.poll(0 if sent else PAUSE_SECONDS)
            if time.monotonic() >= report:
                report += REPORT_EVERY_SECONDS
                say(_progress(elapsed, streams, acknowledged))
        left = producer.flush(FLUSH_DEADLINE_SECONDS)
        elapsed = time.monotonic() - started
    say(_progress(elapsed, streams, acknowledged))
    if missing := len(acknowledged.failures) + left:
        raise NotAcknowledgedError(missing, next(iter(acknowledged.failures), "no answer"))
    bad = sum((stream.bad for stream in streams), Counter[str]())
    return Produced(dict(acknowledged.counts), dict(bad), acknowledged.value_bytes, elapsed)


def producer_config(config: Mapping[str, str]) -> dict[str, str | int | float]:
    """Return the settings of a producer that loses and doubles nothing, and takes records of more than 1 MiB."""
    return {
        **config,
        "acks": "all",
        "enable.idempotence": "true",
        "linger.ms": 5,
        "compression.type": "lz4",
        "message.max.bytes": 4 * 1024 * 1024,
        "delivery.timeout.ms": int(FLUSH_DEADLINE_SECONDS * 1000),
    }


@dataclass
class _Stream:
    """The state of one feed."""

    feed: Feed
    chance: random.Random
    sent: int = 0
    bad: Counter[str] = field(default_factory=Counter)

    @property
    def dataset(self) -> Dataset:
        return DATASETS[self.feed.dataset]

    @property
    def is_done(self) -> bool:
        return self.feed.count is not None and self.sent >= self.feed.count

    def due(self, elapsed_seconds: float) -> int:
        """Return how many records should be sent now; few at a time, so that acknowledgements are served between."""
        rate = self.feed.messages_per_second
        due = int(elapsed_seconds * rate) + 1 - self.sent if rate else 500
        left = due if self.feed.count is None else self.feed.count - self.sent
        return max(0, min(due, left, 500))

    def next(self, now: datetime) -> tuple[bytes, bytes | None]:
        """Return key and value of the next record."""
        record = self.dataset.make(self.chance, now)
        kind = self._bad_kind()
        self.sent += 1
        key = key_bytes(self.dataset, record)
        return key, self.feed.encode(record) if kind is None else self._spoil(kind, record)

    def _bad_kind(self) -> BadKind | None:
        if self.sent < len(self.feed.bad_list):
            return self.feed.bad_list[self.sent]
        if self.feed.bad_share and self.chance.random() < self.feed.bad_share:
            return self.chance.choice(self.feed.bad_kinds)
        return None

    def _spoil(self, kind: BadKind, record: Record) -> bytes | None:
        self.bad[kind.value] += 1
        return bad_value(kind, self.dataset, record)


class _Acknowledgements:
    """Counts what Kafka acknowledged or refused, and writes the journal."""

    def __init__(self, file: TextIO | None) -> None:
        self._file = file
        self.counts: Counter[str] = Counter()
        self.value_bytes = 0
        self.failures: list[str] = []

    def delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.failures.append(str(error))
            return
        topic, value = message.topic() or "", message.value()
        self.counts[topic] += 1
        self.value_bytes += len(value or b"")
        if self._file:
            line = journal_line(topic, message.partition(), message.offset(), value, message.timestamp()[1])
            self._file.write(line)


def journal_line(topic: str, partition: int | None, offset: int | None, value: bytes | None, timestamp_ms: int) -> str:
    """Return the journal's line for one acknowledged record.

    Args:
        topic: Topic that got the record.
        partition: Partition that Kafka acknowledged.
        offset: Offset that Kafka acknowledged.
        value: The record's value, of which the line holds a hash; None for a tombstone.
        timestamp_ms: The record's timestamp in Kafka, in epoch milliseconds.
    """
    digest = NULL_SUM if value is None else hashlib.sha256(value).hexdigest()
    return f"{topic},{partition},{offset},{digest},{timestamp_ms}\n"


@contextmanager
def _journal(path: Path | None) -> Iterator[TextIO | None]:
    if path is None:
        yield None
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", buffering=1 << 16) as file:
        if file.tell() == 0:
            file.write(JOURNAL_HEADER + "\n")
        try:
            yield file
        finally:
            file.flush()
            os.fsync(file.fileno())


def _send_due(producer: Producer, stream: _Stream, elapsed_seconds: float, acknowledged: _Acknowledgements) -> int:
    due = stream.due(elapsed_seconds)
    now = datetime.now(UTC)
    for _ in range(due):
        key, value = stream.next(now)
        while not _try_send(producer, stream.feed.target, key, value, acknowledged):
            producer.poll(0.05)
    return due


def _try_send(producer: Producer, topic: str, key: bytes, value: bytes | None, acknowledged: _Acknowledgements) -> bool:
    try:
        producer.produce(topic, value=value, key=key, on_delivery=acknowledged.delivered)
    except BufferError:  # the client's queue is full until Kafka acknowledges
        return False
    return True


def _progress(elapsed_seconds: float, streams: Sequence[_Stream], acknowledged: _Acknowledgements) -> str:
    total = acknowledged.counts.total()
    sent = sum((stream.bad for stream in streams), Counter[str]())
    unusual = sum(sent[kind] for kind in READABLE_KINDS)
    bad = sent.total() - unusual
    rate = total / elapsed_seconds if elapsed_seconds else 0.0
    text = f"produce: {elapsed_seconds:4.0f} s  {total:,} records acknowledged ({rate:,.0f}/s)"
    return text + (f", {bad:,} of them bad" if bad else "") + (f", {unusual:,} unusual but readable" if unusual else "")
