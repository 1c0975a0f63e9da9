"""Topics in real time beside tables: killed within an epoch, then topics alone, then all in batches, then both again.

The short form has one start fewer: after the batches topics alone. That batches after a graceful end in real time send nothing
twice, it has in tests/integration/test_feature_patterns.py.

No row is lost. The topics are judged by a consumer that knows nothing of Lakebound, by the source positions: in real time a row
may come twice, and only a row of the time after the last entry before a kill; what is sent in batches comes once. The tables
are judged by the oracle: each row is there once, whatever runs beside them.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import TopicMaker
from tests.oracle import quarantine_rows
from tests.support.kafka.journal import Journal, row_hash
from tests.support.kafka.producing import JournalingProducer, Load, send_events
from tests.support.streams.applications import LANDING_SECONDS, RunningApplication, applications
from tests.support.streams.long_form import LONG_FORM
from tests.support.streams.pipelines import Pipeline, assert_exactly_once, make_pipeline
from tests.support.topics.reading import ReadMessage, read_committed

from lakebound.inspection.doctor.pipeline.collect import read_pipeline_facts
from lakebound.inspection.doctor.pipeline.rules import diagnose
from lakebound.inspection.proof.collect import prove
from lakebound.landing.to_topics.target import TopicTarget
from lakebound.ledger.entry import high_water_marks
from lakebound.local.broker import Broker

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(900)]

PER_SECOND = 40
FOR_TOPICS_ALONE = 1_000_000
"""Number of the first event that the tables do not get in the short form."""


def test_real_time_loses_no_row_over_a_kill_and_changes_of_the_freshness(
    tmp_path: Path, broker: Broker, topic: TopicMaker
) -> None:
    servers, journal = broker.bootstrap_servers, Journal()
    source, written, bad = topic("events", partitions=2), topic("sent"), topic("bad", partitions=1)
    pipeline = make_pipeline(
        tmp_path,
        servers,
        source,
        to_topics=[{"topic": written, "key": "id"}],
        freshness="real_time",
        real_time={"epoch": "5s", "tables": "500ms", "quarantine_topic": bad},
    )
    pipeline = replace(pipeline, settings=replace(pipeline.settings, spark_master="local[3]"))
    alone, producer = changed(pipeline, tables=()), JournalingProducer(servers, journal)
    with applications() as starter:
        with Load(producer, source, PER_SECOND):
            killed = starter.start(pipeline, faults="kill@epoch_sent#2")
            killed.wait_killed("after rows were sent, before the ledger tells of it")
            noted = marks(pipeline)
            sent_by_killed = sources(read_committed(servers, written))
            if LONG_FORM:
                resumed = starter.start(alone)
                wait_batch(resumed, 1)
                assert diagnose(read_pipeline_facts(alone.spec, alone.settings)).verdict == "healthy", resumed
                assert resumed.stop().verdict == "stopped", resumed
                before = doubles(read_committed(servers, written))
            batches = starter.start(changed(pipeline, freshness="250ms"))
            wait_batch(batches, 3)
            if LONG_FORM:
                assert batches.stop().verdict == "stopped", batches
        if not LONG_FORM:
            batches.wait_landed(journal.ends())
            assert batches.stop().verdict == "stopped", batches
            before = doubles(read_committed(servers, written))
            assert_exactly_once(pipeline, journal)
            send_events(producer, source, range(FOR_TOPICS_ALONE, FOR_TOPICS_ALONE + 5 * PER_SECOND))
        # Without a kill between, a change of the freshness sends nothing twice, either way.
        last_one = pipeline if LONG_FORM else alone
        last = starter.start(last_one)
        last.wait_landed(journal.ends())
        assert diagnose(read_pipeline_facts(last_one.spec, last_one.settings)).verdict == "healthy", last
        assert last.stop().verdict == "stopped", last

    if LONG_FORM:
        assert_exactly_once(pipeline, journal)
    end = marks(pipeline)
    messages = read_committed(servers, written)
    covered = [r for r in journal.records if r.place[2] < end.get(r.place[1], 0)]
    expected = {"/".join(map(str, (*r.place, n))): hashed for r in covered for n, hashed in enumerate(r.rows)}
    assert len(expected) > PER_SECOND, "hardly anything was sent: nothing was tested"
    found = {m.source: row_hash({"amount": None, **json.loads(m.value)}) for m in messages}
    assert {source: found.get(source) for source in expected} == expected
    assert doubles(messages) == before, "a graceful change sent rows twice"
    again = {one for one in before if int(one.split("/")[2]) >= noted.get(int(one.split("/")[1]), 0)}
    assert before == again, "a row came twice that the ledger had told of"
    assert before <= sent_by_killed
    assert before, "the kill made no doubles: it did not come after rows were sent"
    in_quarantine = sources(read_committed(servers, bad)) | quarantined(pipeline)
    assert in_quarantine >= {"/".join(map(str, (*r.place, 0))) for r in covered if r.fate == "quarantine"}
    deliveries = [e.entry.delivery for e in target(pipeline).entries() if e.entry.kind == "open"]
    assert deliveries == ["at_least_once", None, *["at_least_once"] * (2 if LONG_FORM else 1)]
    proof = prove(pipeline.spec, pipeline.places, deep=True)
    (of_topic,) = [one for one in proof.tables if one.table.startswith("topic:")]
    assert (of_topic.missing.count, of_topic.problems) == (0, ()), of_topic


def wait_batch(application: RunningApplication, number: int) -> None:
    """Return when a batch, or an epoch, of this number has landed rows."""

    def has_landed() -> bool:
        progress = application.progress
        return progress is not None and progress.batch is not None and progress.batch >= number and bool(progress.tables)

    application.wait_for(has_landed, LANDING_SECONDS, f"batch {number}")


def changed(pipeline: Pipeline, **keys: Any) -> Pipeline:
    """Return the pipeline with something else in its YAML."""
    return replace(pipeline, spec=pipeline.spec.model_copy(update=keys))


def target(pipeline: Pipeline) -> TopicTarget:
    """Return the target topic of the pipeline, to look at."""
    return TopicTarget(pipeline.spec.to_topics[0], pipeline.spec.pipeline, pipeline.spec.connection)


def marks(pipeline: Pipeline) -> dict[int, int]:
    """Return the next offset of the one source topic, per partition, as the ledger topic has it."""
    (found,) = high_water_marks(target(pipeline).read_ledger().coverage).values()
    return dict(found)


def sources(messages: list[ReadMessage]) -> set[str]:
    """Return the source positions of messages."""
    return {message.source for message in messages}


def doubles(messages: list[ReadMessage]) -> set[str]:
    """Return the source positions that came more than once."""
    return {source for source, times in Counter(message.source for message in messages).items() if times > 1}


def quarantined(pipeline: Pipeline) -> set[str]:
    """Return the source positions in the quarantine table, which gets the bad records of batches."""
    places = quarantine_rows(pipeline.read(pipeline.spec.quarantine_table))
    return {"/".join(map(str, (*place, 0))) for place in places}
