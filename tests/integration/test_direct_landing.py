"""Batches that the driver reads and decodes by itself land as all others do; what it leaves to Spark lands, too."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions
from tests.support.kafka.journal import Journal
from tests.support.kafka.makers import topic_maker
from tests.support.kafka.producing import JournalingProducer, as_json, event, send_events
from tests.support.streams.applications import RunningApplication, applications
from tests.support.streams.pipelines import Pipeline, assert_exactly_once, make_pipeline
from tests.support.waiting import HANGS_SECONDS

from lakebound.landing.trace import read_spans
from lakebound.local.broker import Broker

pytestmark = pytest.mark.integration

REFUSED = "Spark reads this batch"
"""In the application's log, when it leaves a batch to Spark."""


@dataclass
class Landing:
    """The running application, and who writes to its topics."""

    application: RunningApplication
    pipeline: Pipeline
    journal: Journal
    producer: JournalingProducer
    topic: str
    transactional: str
    servers: str

    def assert_landed(self) -> None:
        """Wait until everything that was sent is dealt with, and judge all of it."""
        self.application.wait_landed(self.journal.ends())
        assert_exactly_once(self.pipeline, self.journal)

    def is_direct(self) -> bool:
        """Whether the last batch was read by the driver."""
        progress = self.application.progress
        return progress is not None and "direct_write" in progress.durations_ms

    def send(self, numbers: range, by: JournalingProducer | None = None) -> None:
        """Send good events without waiting for their acknowledgement."""
        for number in numbers:
            columns = event(number)
            topic = self.topic if by is None else self.transactional
            (by or self.producer).send(topic, as_json(columns), rows=[columns])

    def refusals(self) -> int:
        """How often a batch was left to Spark."""
        return self.application.log.read_text(errors="replace").count(REFUSED)


@pytest.fixture(scope="module")
def landing(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Landing]:
    servers, journal = broker.bootstrap_servers, Journal()
    make = topic_maker(servers)
    plain, transactional = make("plain", partitions=2), make("transactional", partitions=1)
    producer = JournalingProducer(servers, journal)
    send_events(producer, plain, range(100))
    pipeline = make_pipeline(tmp_path_factory.mktemp("direct"), servers, plain, transactional, lane="direct")
    pipeline = replace(pipeline, trace=True)
    with applications() as starter:
        application = starter.start(pipeline)
        found = Landing(application, pipeline, journal, producer, plain, transactional, servers)
        application.wait_running()
        found.assert_landed()
        yield found


def test_good_records_are_read_by_the_driver(landing: Landing) -> None:
    for first in range(1000, 1400, 100):
        send_events(landing.producer, landing.topic, range(first, first + 100))
        landing.application.wait_landed(landing.journal.ends())
        assert landing.is_direct()
    landing.assert_landed()
    assert landing.refusals() == 0


def test_every_millisecond_of_a_batch_is_accounted_for(landing: Landing) -> None:
    path = landing.pipeline.control.trace(landing.application.app_id)

    def last_batch() -> dict[str, dict[str, float]] | None:
        """Milliseconds per step and track, of the last batch that both have told of."""
        lines = read_spans(path)
        told = {track: {line.batch: line for line in lines if line.track == track} for track in ("Spark", "driver")}
        both = told["Spark"].keys() & told["driver"].keys() - {0}
        if not both:
            return None
        batch = max(both)
        return {track: {span.step: span.milliseconds for span in told[track][batch].spans} for track in told}

    landing.application.wait_for(lambda: last_batch() is not None, 30, "the trace of a batch")
    steps = last_batch()
    assert steps is not None
    assert {"latestOffset", "walCommit", "queryPlanning", "addBatch", "commitOffsets"} <= steps["Spark"].keys()
    commits = {f"commit {table.id}" for table in landing.pipeline.spec.tables}
    assert steps["driver"].keys() == {"direct_read", "direct_decode", "direct_write", "verify", *commits}
    # The commits run side by side; all the rest is done within Spark's addBatch, one after the other.
    assert sum(steps["driver"].values()) - min(steps["driver"][name] for name in commits) <= steps["Spark"]["addBatch"] + 1


def test_aborted_transactions_are_not_landed_and_not_missed(landing: Landing) -> None:
    transactions = JournalingProducer(landing.servers, landing.journal, transactional_id="test-direct")
    for number, commit in enumerate((True, False, True, False)):
        with transactions.transaction(commit=commit):
            landing.send(range(2000 + 100 * number, 2060 + 100 * number), by=transactions)
    send_events(landing.producer, landing.topic, range(2500, 2600))
    landing.assert_landed()
    assert landing.refusals() == 0


def test_partitions_that_are_added_are_read_from_their_beginning(landing: Landing) -> None:
    admin = AdminClient({"bootstrap.servers": landing.servers})
    admin.create_partitions([NewPartitions(landing.topic, 4)])[landing.topic].result(HANGS_SECONDS)
    fresh = JournalingProducer(landing.servers, landing.journal)
    for partition in (2, 3):
        send_events(fresh, landing.topic, range(3000 + 100 * partition, 3050 + 100 * partition), partition=partition)
    landing.assert_landed()
    assert landing.refusals() == 0


def test_bad_records_go_to_quarantine_and_the_driver_reads_on(landing: Landing) -> None:
    landing.send(range(4000, 4100))
    landing.producer.send(landing.topic, b'{"id": 1, ')
    landing.producer.send(landing.topic, None)
    landing.producer.flush()
    landing.assert_landed()
    send_events(landing.producer, landing.topic, range(4100, 4200))
    landing.assert_landed()
    assert landing.refusals() == 0
    assert landing.is_direct()
