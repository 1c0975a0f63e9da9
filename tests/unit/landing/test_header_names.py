"""A header whose name is not UTF-8, as the real client gives it: from librdkafka's own broker for tests, in this process."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import Consumer, Message, Producer, TopicPartition
from tests.support.kafka.raw_headers import send_with_header

from lakebound.landing.direct_read import DirectReadRefusedError, RecordColumns, readable_headers
from lakebound.landing.to_topics.scan import source_of

TOPIC = "strange"


def received(count: int) -> list[Message]:
    """Send a record with such a header and a plain one, and return both as a consumer gets them."""
    broker = Producer({"test.mock.num.brokers": 1, "log_level": 0})
    (address,) = [f"{one.host}:{one.port}" for one in broker.list_topics(timeout=30).brokers.values()]
    send_with_header(address, TOPIC, 0, b"value", b"\xffname", b"content")
    broker.produce(TOPIC, b"value", partition=0, headers=[("name", b"content")])
    assert broker.flush(30) == 0
    consumer = Consumer({"bootstrap.servers": address, "group.id": "test", "auto.offset.reset": "earliest", "log_level": 0})
    try:
        consumer.assign([TopicPartition(TOPIC, 0, 0)])
        found: Any = consumer.consume(count, 30)
    finally:
        consumer.close()
    return [*found]


def test_a_name_that_is_not_utf_8_is_told_or_passed_over() -> None:
    plain = [("name", b"content")]
    assert source_of(readable_headers(received(1)[0])) == (None, None, None, None)
    records = RecordColumns(offsets=[0, 1], sources=received(2))
    for _ in range(2):  # The client itself has another answer the second time, and that one ends the process.
        with pytest.raises(DirectReadRefusedError, match="the name of a header is not UTF-8"):
            records.headers()
        assert records.headers([1]) == [plain]
        assert RecordColumns(offsets=[0, 1], sources=received(2)).readable_headers() == [None, plain]
    assert records.readable_headers() == [None, plain] and records.headers() == [(), plain]


def test_it_is_told_where_the_interpreter_has_made_the_call_fast() -> None:
    """Python leaves out a check of what C code returns where it has specialised a call that was made often."""
    bad, good = received(2)
    for _ in range(1000):
        assert readable_headers(good) == [("name", b"content")]
        assert RecordColumns(offsets=[1], sources=[good]).headers() == [[("name", b"content")]]
    assert readable_headers(bad) is None
    with pytest.raises(DirectReadRefusedError, match="the name of a header is not UTF-8"):
        RecordColumns(offsets=[0], sources=[received(1)[0]]).headers()
