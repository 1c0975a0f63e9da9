"""A query in real time, stopped after an epoch, has sent the records of its epochs and no other, however slow the stop is."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from tests.support.kafka.journal import Journal
from tests.support.kafka.makers import TopicMaker
from tests.support.kafka.producing import JournalingProducer, Load
from tests.support.topics.reading import assert_once, read_committed
from tests.support.waiting import wait_until

from lakebound.local.broker import Broker
from lakebound_spark.stream.epoch_end import ended_epochs, stop_after_epoch

pytestmark = pytest.mark.spark

PER_SECOND = 500
Start = Callable[[str, str, int], StreamingQuery]


class SlowStop:
    """A query whose ``stop`` begins a second late, as on a machine that has too much to do."""

    def __init__(self, query: StreamingQuery) -> None:
        self._query = query

    def __getattr__(self, name: str) -> Any:
        return getattr(self._query, name)

    def stop(self) -> None:
        time.sleep(1)
        self._query.stop()


@pytest.fixture
def start(session: SparkSession, broker: Broker, tmp_path: Path) -> Iterator[Start]:
    """Starts a query in real time from a topic to a topic, with the source position of each record."""
    name = "spark.sql.streaming.realTimeMode.minBatchDuration"
    session.conf.set(name, 1000)
    jvm: Any = session._jvm

    def started(source: str, sent: str, epoch_ms: int) -> StreamingQuery:
        kafka = {"kafka.bootstrap.servers": broker.bootstrap_servers}
        records = session.readStream.format("kafka").options(**kafka, subscribe=source, startingOffsets="earliest").load()
        place = "concat_ws('/', topic, partition, offset, 0)"
        headers = f"array(struct('lakebound_source' AS key, cast({place} AS BINARY) AS value)) AS headers"
        rows = records.selectExpr(f"'{sent}' AS topic", "value", headers)
        writer = rows.writeStream.format("kafka").options(**kafka, checkpointLocation=f"file://{tmp_path}/checkpoint")
        trigger = jvm.org.apache.spark.sql.streaming.Trigger.RealTime(epoch_ms)
        writer._jwrite = writer._jwrite.trigger(trigger)
        return writer.outputMode("update").start()

    yield started
    session.conf.unset(name)
    # The session outlives the broker, and would look for it.
    getattr(getattr(jvm.org.apache.spark.sql.kafka010.producer, "InternalKafkaProducerPool$"), "MODULE$").reset()


def test_nothing_is_sent_after_the_epoch(broker: Broker, topic: TopicMaker, start: Start) -> None:
    source, sent = topic("events", partitions=1), topic("sent", partitions=1)
    with Load(JournalingProducer(broker.bootstrap_servers, Journal()), source, PER_SECOND):
        query = start(source, sent, 1500)
        wait_epoch_with_records(query, source)
        assert stop_after_epoch(SlowStop(query), 60)  # type: ignore[arg-type]
    assert not query.isActive
    assert query.exception() is None
    end = end_of_last_epoch(query, source)
    assert_once(read_committed(broker.bootstrap_servers, sent), {f"{source}/0/{offset}/0" for offset in range(end)})


def test_an_epoch_that_does_not_end_in_time_is_not_waited_for(topic: TopicMaker, start: Start) -> None:
    query = start(topic("events", partitions=1), topic("sent", partitions=1), 600_000)
    assert not stop_after_epoch(query, 1.5)
    assert not query.isActive


def wait_epoch_with_records(query: StreamingQuery, source: str) -> None:
    """Return when an epoch has ended that sent something."""

    def has_sent() -> bool:
        assert query.isActive, query.exception()
        return end_of_last_epoch(query, source) > 0

    wait_until(has_sent, 60, "an epoch with records")


def end_of_last_epoch(query: StreamingQuery, source: str) -> int:
    """Return the next offset after the last epoch that ended; 0 where none has."""
    if not ended_epochs(query):
        return 0
    (of_source,) = json.loads(query._jsq.lastProgress().json())["sources"]
    return int(of_source["endOffset"][source]["0"])
