"""Streams whose Delta tables lie in an object store: killed, answered with errors and left alone; the oracle judges.

In the long form alone: in the short one ``test_cataloged_streams.py`` has a Delta table in a bucket, with the same faults.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.kafka.journal import Journal
from tests.support.kafka.makers import TopicMaker
from tests.support.kafka.producing import JournalingProducer, Load
from tests.support.s3.faults import around_commits
from tests.support.s3.running import S3Server
from tests.support.streams.applications import applications
from tests.support.streams.long_form import only_in_long_form
from tests.support.streams.pipelines import Lane, assert_exactly_once, make_pipeline
from tests.support.streams.zombies import assert_a_zombie_is_refused
from tests.support.tables.stored import stored

from lakebound.local.broker import Broker

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(1800), only_in_long_form]

PER_SECOND = 200


@pytest.mark.parametrize("lane", ["direct", "cluster"])
def test_a_stream_into_a_store_is_killed_and_started_again(
    lane: Lane, tmp_path: Path, broker: Broker, topic: TopicMaker, s3_server: S3Server, s3_bucket: str
) -> None:
    pipeline = stored(
        make_pipeline(tmp_path, broker.bootstrap_servers, topic("stored"), lane=lane, formats=("delta",)), s3_server, s3_bucket
    )
    journal = Journal()
    name = pipeline.spec.topics[0]
    rules = ["kill@after_data_files#2", "kill@after_commit/delta#2"]
    with applications() as starter:
        with Load(JournalingProducer(pipeline.settings.kafka, journal), name, PER_SECOND, None):
            for rule in rules:
                starter.start(pipeline, faults=rule).wait_killed(rule)
            for fault in around_commits():
                s3_server.faults.add(fault)
            last = starter.start(pipeline)
            last.wait_running()
        last.wait_landed(journal.ends())
        assert last.stop().verdict == "stopped", last
    assert_exactly_once(pipeline, journal)


@pytest.mark.parametrize("lane", ["direct", "cluster"])
@pytest.mark.parametrize("rule", ["stop@after_trim#2", "stop@before_commit/delta#2"])
def test_a_zombie_is_refused_by_a_store(
    lane: Lane, rule: str, tmp_path: Path, broker: Broker, topic: TopicMaker, s3_server: S3Server, s3_bucket: str
) -> None:
    made = make_pipeline(tmp_path, broker.bootstrap_servers, topic("zombie"), lane=lane, formats=("delta",))
    assert_a_zombie_is_refused(stored(made, s3_server, s3_bucket), rule)
