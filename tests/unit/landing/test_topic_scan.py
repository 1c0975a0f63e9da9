"""Reading where a topic's messages come from: as far as it had messages, and without keeping what is in them."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from typing import Any, ClassVar

import pytest
from confluent_kafka import KafkaError

from lakebound.landing.kafka import WrittenSettings
from lakebound.landing.to_topics import scan
from lakebound.ledger.topics import TopicFacts
from lakebound.spec.connection import ConnectionSpec

CONNECTION = ConnectionSpec(bootstrap_servers="kafka:9092")


class Message:
    """A row of a topic, or the word that a partition has no more."""

    def __init__(self, partition: int, offset: int, source: str | None) -> None:
        self._partition, self._offset, self._source = partition, offset, source
        self.payload = b"x" * 1000

    def error(self) -> KafkaError | None:
        return None if self._source is not None else KafkaError(KafkaError._PARTITION_EOF)

    def partition(self) -> int:
        return self._partition

    def offset(self) -> int:
        return self._offset

    def headers(self) -> list[tuple[str, bytes]]:
        assert self._source is not None
        if not self._source.isascii():
            raise SystemError("returned a result with an exception set")  # The client's: a name is not UTF-8.
        return [("lakebound_source", self._source.encode())]


class Consumer:
    """Gives made-up messages piece by piece, and notes how many of those before are still kept when it is asked for more."""

    def __init__(self, pieces: list[list[tuple[int, int, str | None]]]) -> None:
        self._pieces = pieces
        self._alive: weakref.WeakSet[Message] = weakref.WeakSet()
        self.kept: list[int] = []

    def assign(self, positions: Any) -> None:
        """Begin."""

    def consume(self, count: int, timeout: float) -> list[Message]:
        self.kept.append(len(self._alive))
        messages = [Message(*one) for one in self._pieces.pop(0)]
        for one in messages:
            self._alive.add(one)
        return messages

    def close(self) -> None:
        """End."""


class Facts:
    """Kafka's facts of the one topic."""

    settings = WrittenSettings()
    earliest: ClassVar[Mapping[int, int]] = {0: 0, 1: 0}

    def __init__(self, connection: ConnectionSpec) -> None:
        assert connection == CONNECTION

    def written_settings(self, topics: list[str]) -> dict[str, WrittenSettings]:
        return dict.fromkeys(topics, self.settings)

    def topics(self, topics: list[str]) -> dict[str, TopicFacts]:
        return {topic: TopicFacts("out-id", dict(self.earliest), {}) for topic in topics}


def scanned(monkeypatch: pytest.MonkeyPatch, consumer: Consumer, ends: Mapping[int, int]) -> Any:
    monkeypatch.setattr(scan, "KafkaFacts", Facts)
    monkeypatch.setattr(scan, "settled_ends", lambda facts, topic: ends)
    monkeypatch.setattr(scan, "make_consumer", lambda config: consumer)
    return scan.scan_sources(CONNECTION, "out", {"in": "in-id"})


def test_origins_are_read_up_to_the_end_that_the_topic_had(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan, "_AT_ONCE", 2)  # so that there are several pieces of columns
    pieces: list[list[tuple[int, int, str | None]]] = [
        [(0, 0, "in/3/7/0"), (1, 0, "in/4/8/1"), (0, 1, "other/0/0/0")],
        [(0, 2, "not a position"), (0, 3, "in/3/9/0")],  # offset 3 came after the end was asked for
        [(1, 2, None)],  # offset 1 is a transaction's marker
    ]
    rows = scanned(monkeypatch, Consumer(pieces), {0: 3, 1: 2, 2: 0})
    assert rows.select(["topic", "topic_id", "partition", "offset", "ordinal"]).to_pylist() == [
        {"topic": "in", "topic_id": "in-id", "partition": 3, "offset": 7, "ordinal": 0},
        {"topic": "in", "topic_id": "in-id", "partition": 4, "offset": 8, "ordinal": 1},
        {"topic": "other", "topic_id": None, "partition": 0, "offset": 0, "ordinal": 0},
        {"topic": None, "topic_id": None, "partition": None, "offset": None, "ordinal": None},
    ]


def test_a_message_whose_headers_cannot_be_read_has_no_origin(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = scanned(monkeypatch, Consumer([[(0, 0, "in/3/7/0"), (0, 1, "\xff")]]), {0: 2})
    assert rows["offset"].to_pylist() == [7, None]


def test_an_empty_topic_has_no_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = scanned(monkeypatch, Consumer([]), {0: 0, 1: 0})
    assert rows.num_rows == 0 and "offset" in rows.column_names


def test_messages_are_not_kept_while_others_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    pieces = [[(0, piece * 100 + number, f"in/0/{number}/0") for number in range(100)] for piece in range(5)]
    consumer = Consumer(pieces)  # type: ignore[arg-type]
    assert scanned(monkeypatch, consumer, {0: 500}).num_rows == 500
    assert max(consumer.kept) <= 1, "the one that was looked at last"


@pytest.mark.parametrize(("is_compacted", "first"), [(True, 0), (False, 5)])
def test_of_a_topic_of_which_kafka_deletes_messages_nothing_is_compared(
    is_compacted: bool, first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Facts, "settings", WrittenSettings(is_compacted=is_compacted))
    monkeypatch.setattr(Facts, "earliest", {0: first})
    pieces: list[list[tuple[int, int, str | None]]] = [[(0, 9, "in/0/0/0")]]
    assert scanned(monkeypatch, Consumer(pieces), {0: 10}) is None
