"""A pipeline of topics at `0ms`: what comes while a batch lands has rounds of its own, which Spark does not plan.

It is killed before and within rounds, and gets records that the driver leaves to Spark. The topics are judged by a consumer
with ``read_committed`` that knows nothing of Lakebound. The short form kills once, in a round: within its second transaction,
where the first topic has it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.support.kafka.journal import Journal
from tests.support.kafka.makers import TopicMaker
from tests.support.kafka.producing import JournalingProducer, Load
from tests.support.streams.applications import applications
from tests.support.streams.long_form import LONG_FORM
from tests.support.streams.pipelines import Pipeline, assert_exactly_once, make_pipeline
from tests.support.topics.proving import assert_topics_and_their_proof

from lakebound.landing.trace import read_spans
from lakebound.local.broker import Broker
from lakebound_spark.batch.direct import MOST_BAD

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(1200)]

PER_SECOND = 40
KILLS = (
    "kill@round_begins#20",
    "kill@topic_delivered#30",
    "kill@after_commit/topic#29,hold@before_commit/topic#30",
)
"""Before a round lands; within its transaction; where one of two topics has it. Of a batch of Spark's there are two of each."""
BESIDE: dict[str, tuple[Any, ...]] = {"two tables": ("delta", "iceberg"), "nothing": ()}


@pytest.mark.parametrize("beside", BESIDE if LONG_FORM else ["two tables"])
def test_each_row_is_there_once_whatever_ends_a_round(tmp_path: Path, broker: Broker, topic: TopicMaker, beside: str) -> None:
    journal, source, written, other = Journal(), topic("events", partitions=3), topic("clean"), topic("other", partitions=1)
    to_topics = [{"topic": written, "key": "id"}, {"topic": other}]
    servers = broker.bootstrap_servers
    pipeline = make_pipeline(
        tmp_path, servers, source, formats=BESIDE[beside], lane="direct", to_topics=to_topics, freshness="0ms"
    )
    producer = JournalingProducer(pipeline.settings.kafka, journal)
    with applications() as starter:
        with Load(producer, source, PER_SECOND):
            for rules in KILLS if LONG_FORM else KILLS[1:2]:
                starter.start(pipeline, faults=rules).wait_killed(rules)
            last = starter.start(replace(pipeline, trace=True))
            last.wait_for(lambda: len(batches_with_rounds(pipeline, last.app_id)) > 1, 60, "two batches of Spark's with rounds")
        for _ in range(2 * MOST_BAD + 2):
            producer.send(source, b"{", partition=0)
        producer.flush()
        last.wait_landed(journal.ends())
        assert last.stop().verdict == "stopped", last

    assert_exactly_once(pipeline, journal)
    assert_topics_and_their_proof(pipeline, journal, written, other)


def batches_with_rounds(pipeline: Pipeline, app_id: str) -> list[int]:
    """Return Spark's batches in which the driver has landed more than once."""
    landed = Counter(
        line.batch for line in read_spans(pipeline.control.trace(app_id)) if line.track == "driver" and line.records
    )
    return [batch for batch, count in landed.items() if count > 1]
