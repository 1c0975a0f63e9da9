"""Tables that are compacted and expired between a crash and the restart: nothing lands twice.

What plain Spark makes of the same shows tests/chaos/test_plain_spark_after_crash.py.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.kafka.journal import Journal
from tests.support.kafka.makers import TopicMaker
from tests.support.kafka.producing import JournalingProducer, Load
from tests.support.streams.applications import applications
from tests.support.streams.pipelines import ANY_LANE, assert_exactly_once, make_pipeline
from tests.support.tables.maintained import rewrite_iceberg
from tests.support.tables.maintenance import compact_delta, expire_iceberg

from lakebound.local.broker import Broker
from lakebound.tables.places import places_of

pytestmark = pytest.mark.integration

PER_SECOND = 100


def test_compacted_and_expired_between_crash_and_restart(tmp_path: Path, broker: Broker, topic: TopicMaker) -> None:
    journal, name = Journal(), topic("maintained")
    producer = JournalingProducer(broker.bootstrap_servers, journal)
    pipeline = make_pipeline(tmp_path, broker.bootstrap_servers, name, lane=ANY_LANE)
    at = places_of(pipeline.settings, "default")
    delta, iceberg = sorted(pipeline.spec.tables, key=lambda table: table.format)
    with applications() as starter:
        crashing = starter.start(pipeline, faults="kill@batch_ends#3")
        with Load(producer, name, PER_SECOND):
            crashing.wait_killed("after the commits of the third batch")

        rewrite_iceberg(iceberg, at)
        assert expire_iceberg(iceberg, at) >= 3
        assert compact_delta(delta, at) >= 3

        last = starter.start(pipeline)
        last.wait_landed(journal.ends())
        assert last.stop().verdict == "stopped", last
    assert_exactly_once(pipeline, journal)
