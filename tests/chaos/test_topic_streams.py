"""A pipeline with a table and two topics, killed between and within their commits: each holds each row once.

The topics are judged by a consumer with ``read_committed`` that knows nothing of Lakebound, by the source positions.

In the long form alone: in the short one ``test_rounds.py`` has tables and two topics, and is judged alike; each point of a
topic's commit is in tests/integration/test_topic_targets.py.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.kafka.journal import Journal
from tests.support.kafka.makers import TopicMaker
from tests.support.kafka.producing import JournalingProducer, Load
from tests.support.streams.applications import applications
from tests.support.streams.long_form import only_in_long_form
from tests.support.streams.pipelines import Lane, assert_exactly_once, make_pipeline
from tests.support.topics.proving import assert_topics_and_their_proof

from lakebound.local.broker import Broker

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(1200), only_in_long_form]

PER_SECOND = 40

KILLS: tuple[tuple[str, Lane, str], ...] = (
    ("the table alone committed", "direct", "kill@after_commit/delta#2,hold@before_commit/topic#3,hold@before_commit/topic#4"),
    ("a topic alone committed", "driver", "kill@after_commit/topic#3,hold@before_commit/delta#2"),
    ("the transaction is open, its rows are in the topic", "cluster", "kill@topic_delivered#5"),
)


def test_a_table_and_two_topics_of_one_pipeline_get_each_row_once(tmp_path: Path, broker: Broker, topic: TopicMaker) -> None:
    journal, source, written, other = Journal(), topic("events"), topic("clean"), topic("other", partitions=1)
    to_topics = [{"topic": written, "key": "id"}, {"topic": other}]
    pipeline = make_pipeline(tmp_path, broker.bootstrap_servers, source, formats=("delta",), to_topics=to_topics)
    with applications() as starter:
        with Load(JournalingProducer(pipeline.settings.kafka, journal), source, PER_SECOND):
            for what, lane, rules in KILLS:
                starter.start(pipeline.with_lane(lane), faults=rules).wait_killed(f"where {what}")
        last = starter.start(pipeline.with_lane("direct"))
        last.wait_landed(journal.ends())
        assert last.stop().verdict == "stopped", last

    assert_exactly_once(pipeline, journal)
    assert_topics_and_their_proof(pipeline, journal, written, other)
