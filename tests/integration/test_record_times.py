"""Records whose producer gives their time in microseconds or nanoseconds land like all others; only their time is not known.

Those with a time of two days ago are late: their hour is announced, with a version that holds them. The short form has one
application, whose last batch has so many bad records that Spark reads it; the long form has one in which Spark reads them all.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from tests.support.kafka.journal import Journal
from tests.support.kafka.makers import TopicMaker
from tests.support.kafka.producing import JournalingProducer, as_json, event
from tests.support.streams.applications import applications
from tests.support.streams.long_form import only_in_long_form
from tests.support.streams.pipelines import Lane, Pipeline, assert_exactly_once, make_pipeline

from lakebound.control.complete_hours import HourSpan
from lakebound.control.complete_hours_file import read_complete_hours
from lakebound.ledger.entry import high_water_marks
from lakebound.local.broker import Broker
from lakebound.tables.table import open_table
from lakebound_spark.batch.direct import MOST_BAD

pytestmark = pytest.mark.integration

SECONDS = int(time.time()) - 2 * 86_400
HOUR = HourSpan().key(SECONDS // 3600)
UNITS = {"ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
ANY_TIME = {"message.timestamp.after.max.ms": str(2**63 - 1)}
"""Newer brokers refuse a time of the future by default, older ones take any."""


@pytest.mark.parametrize("lane", ["direct", pytest.param("cluster", marks=only_in_long_form)])
def test_a_record_lands_whatever_its_time(lane: Lane, broker: Broker, topic: TopicMaker, tmp_path: Path) -> None:
    name = topic("times", partitions=1, config=ANY_TIME)
    journal, units = Journal(), dict[int, str]()
    producer = JournalingProducer(broker.bootstrap_servers, journal)

    def send(*wanted: str, by: JournalingProducer = producer) -> None:
        for unit in wanted:
            number = len(units)
            units[number] = unit
            columns = event(number)
            by.send(name, as_json(columns), rows=[columns], partition=0, timestamp=SECONDS * UNITS[unit])
        by.flush()

    pipeline = make_pipeline(tmp_path, broker.bootstrap_servers, name, lane=lane, complete_hours={"grace": "1s"})
    send("ms", "us")
    with applications() as starter:
        application = starter.start(pipeline)
        application.wait_landed(journal.ends())
        application.wait_for(lambda: len(told(pipeline)) == 2, 60, "the hour of the first records, in both tables")
        send("ms", "ns", "us", "ns", "ms")
        application.wait_landed(journal.ends())
        last = journal.ends()[name][0]
        application.wait_for(lambda: set(reached(pipeline).values()) == {last}, 60, "a further event of it, in both tables")
        # And one that goes to quarantine, in a batch that Spark itself cannot read.
        producer.send(name, b'{"id": 1, ', partition=0, timestamp=SECONDS * UNITS["ns"])
        producer.flush()
        application.wait_landed(journal.ends())
        # And more than the driver sorts out, beside good ones. A transaction is there all at once: it is one batch.
        at_once = JournalingProducer(broker.bootstrap_servers, journal, transactional_id=name)
        with at_once.transaction():
            send("us", "ns", "ms", by=at_once)
            for _ in range(MOST_BAD + 100):
                at_once.send(name, b'{"id": 1, ', partition=0, timestamp=SECONDS * UNITS["ns"])
        application.wait_landed(journal.ends())
        assert application.progress is not None and "direct_write" not in application.progress.durations_ms
        assert application.stop().verdict == "stopped", application
    assert_exactly_once(pipeline, journal)
    for table in pipeline.spec.tables:
        known = {row["id"]: row["_kafka"]["timestamp"] for row in pipeline.read(table).to_pylist()}
        assert {number: _seconds(at) for number, at in known.items()} == {
            number: SECONDS if unit == "ms" else None for number, unit in units.items()
        }
    held = pipeline.read(pipeline.spec.quarantine_table).to_pylist()
    assert {(bad["_kafka"]["timestamp"], bad["reason"]) for bad in held} == {(None, "malformed_json")}


def told(pipeline: Pipeline) -> dict[str, str]:
    """Return per table the version that was announced of the records' hour."""
    hours = read_complete_hours(pipeline.control)
    tables = hours.tables if hours is not None else {}
    found = {name: [one.version for one in known.announced if one.hour == HOUR] for name, known in tables.items()}
    return {name: versions[0] for name, versions in found.items() if versions}


def reached(pipeline: Pipeline) -> dict[str, int]:
    """Return per table the offset before which everything had landed in the version that was announced."""
    found = {}
    for spec in pipeline.spec.tables:
        version = told(pipeline)[spec.id]
        entries = open_table(spec, pipeline.places).entries()
        entry = next(one.entry for one in entries if one.version == version)
        [marks] = high_water_marks(entry.coverage).values()
        found[spec.id] = marks[0]
    return found


def _seconds(at: Any) -> int | None:
    return None if at is None else int(at.timestamp())
