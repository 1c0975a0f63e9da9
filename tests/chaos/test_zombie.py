"""An application that is suspended in the middle of a batch, superseded, and wakes up again."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.conftest import TopicMaker
from tests.support.kafka.journal import Journal
from tests.support.kafka.producing import JournalingProducer, send_events
from tests.support.streams.applications import applications
from tests.support.streams.long_form import LONG_FORM
from tests.support.streams.pipelines import LANES, Lane, assert_exactly_once, make_pipeline
from tests.support.waiting import wait_until

from lakebound.local.broker import Broker

pytestmark = pytest.mark.chaos

TTL_SECONDS = 2.0
SHORT = [("driver", "stop@before_commit/iceberg#2")]
LONG = [
    (lane, rule)
    for lane in LANES
    for rule in (
        "stop@after_trim#2",
        f"stop@after_data_files/{lane}#{1 if lane == 'driver' else 2}",
        "stop@before_commit/delta#2",
        "stop@before_commit/iceberg#2",
    )
]


@pytest.mark.parametrize(("lane", "rule"), LONG if LONG_FORM else SHORT)
def test_zombie_is_refused_by_the_tables(lane: Lane, rule: str, tmp_path: Path, broker: Broker, topic: TopicMaker) -> None:
    journal, name = Journal(), topic("zombie")
    producer = JournalingProducer(broker.bootstrap_servers, journal)
    pipeline = make_pipeline(tmp_path, broker.bootstrap_servers, name, lane=lane).with_limits(lease_ttl_seconds=TTL_SECONDS)
    with applications() as starter:
        zombie = starter.start(pipeline, faults=rule)
        send_events(producer, name, range(300))
        zombie.wait_landed(journal.ends())
        send_events(producer, name, range(300, 800))
        zombie.wait_suspended()
        wait_until(lambda: not pipeline.lease_is_live, 30, "the end of the zombie's lease")

        successor = starter.start(pipeline)
        send_events(producer, name, range(800, 1000))
        successor.wait_landed(journal.ends())
        zombie.resume()
        outcome = zombie.ended()
        assert (outcome.verdict, zombie.process.returncode) == ("superseded", 4), zombie

        send_events(producer, name, range(1000, 1200))
        successor.wait_landed(journal.ends())
        assert successor.stop().verdict == "stopped", successor
    assert_exactly_once(pipeline, journal)
