"""Records whose producer gives their time in microseconds or nanoseconds land like all others; only their time is not known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.conftest import TopicMaker
from tests.support.kafka.journal import Journal
from tests.support.kafka.producing import JournalingProducer, as_json, event
from tests.support.streams.applications import applications
from tests.support.streams.pipelines import Lane, assert_exactly_once, make_pipeline

from lakebound.local.broker import Broker

pytestmark = pytest.mark.integration

SECONDS = 1_700_000_000
UNITS = {"ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
ANY_TIME = {"message.timestamp.after.max.ms": str(2**63 - 1)}
"""Newer brokers refuse a time of the future by default, older ones take any."""


@pytest.mark.parametrize("lane", ["direct", "cluster"])
def test_a_record_lands_whatever_its_time(lane: Lane, broker: Broker, topic: TopicMaker, tmp_path: Path) -> None:
    name = topic("times", partitions=1, config=ANY_TIME)
    journal, units = Journal(), dict[int, str]()
    producer = JournalingProducer(broker.bootstrap_servers, journal)

    def send(*wanted: str) -> None:
        for unit in wanted:
            number = len(units)
            units[number] = unit
            columns = event(number)
            producer.send(name, as_json(columns), rows=[columns], partition=0, timestamp=SECONDS * UNITS[unit])
        producer.flush()

    pipeline = make_pipeline(tmp_path, broker.bootstrap_servers, name, lane=lane)
    send("ms", "us")
    with applications() as starter:
        application = starter.start(pipeline)
        application.wait_landed(journal.ends())
        send("ms", "ns", "us", "ns", "ms")
        application.wait_landed(journal.ends())
        # And one that goes to quarantine, in a batch that Spark itself cannot read.
        producer.send(name, b'{"id": 1, ', partition=0, timestamp=SECONDS * UNITS["ns"])
        producer.flush()
        application.wait_landed(journal.ends())
        assert application.stop().verdict == "stopped", application
    assert_exactly_once(pipeline, journal)
    for table in pipeline.spec.tables:
        known = {row["id"]: row["_kafka"]["timestamp"] for row in pipeline.read(table).to_pylist()}
        assert {number: _seconds(at) for number, at in known.items()} == {
            number: SECONDS if unit == "ms" else None for number, unit in units.items()
        }
    [bad] = pipeline.read(pipeline.spec.quarantine_table).to_pylist()
    assert (bad["_kafka"]["timestamp"], bad["reason"]) == (None, "malformed_json")


def _seconds(at: Any) -> int | None:
    return None if at is None else int(at.timestamp())
