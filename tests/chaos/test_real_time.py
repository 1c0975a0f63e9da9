"""Topics in real time beside tables: killed within an epoch, then all in batches, then in real time again.

The long form ends gracefully in real time before the batches, too, and kills between the entries of two topics; shortly, a kill
where one of two topics has the rows is in ``test_rounds.py``.

No row is lost. The topics are judged by a consumer that knows nothing of Lakebound, by the source positions: in real time a row
may come twice, and only a row of the time after the last entry before a kill; what is sent in batches comes once. The tables
are judged by the oracle: each row is there once, whatever runs beside them.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from tests.oracle import quarantine_rows
from tests.support.kafka.journal import Journal, row_hash
from tests.support.kafka.makers import TopicMaker
from tests.support.kafka.producing import JournalingProducer, Load, send_events
from tests.support.streams.applications import LANDING_SECONDS, Applications, RunningApplication, applications
from tests.support.streams.long_form import only_in_long_form
from tests.support.streams.pipelines import ANY_LANE, Pipeline, assert_exactly_once, make_pipeline
from tests.support.topics.reading import ReadMessage, read_committed
from tests.support.topics.recipe import handled

from lakebound.inspection.doctor.pipeline.collect import read_pipeline_facts
from lakebound.inspection.doctor.pipeline.rules import diagnose
from lakebound.inspection.proof.collect import prove
from lakebound.landing.to_topics.target import TopicTarget
from lakebound.ledger.entry import high_water_marks
from lakebound.local.broker import Broker
from lakebound.spec.to_topics import ToTopicSpec

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(900)]

PER_SECOND = 40
FOR_TOPICS_ALONE = 1_000_000
"""Number of the first event that the tables do not get."""


@dataclass(frozen=True)
class Scene:
    """A pipeline in real time with a topic and tables, and all that was sent to it."""

    pipeline: Pipeline
    journal: Journal
    producer: JournalingProducer

    @property
    def source(self) -> str:
        """The topic that it reads."""
        return self.pipeline.spec.topics[0]

    @property
    def alone(self) -> Pipeline:
        """The pipeline without its tables."""
        return changed(self.pipeline, tables=())

    def received(self, number: int = 0) -> list[ReadMessage]:
        """Return what a consumer gets from a target topic."""
        return read_committed(self.pipeline.spec.connection.bootstrap_servers, self.pipeline.spec.to_topics[number].topic)

    def expected(self, number: int = 0) -> dict[str, str]:
        """Return the rows that a target topic has to have by what its ledger says, by their source positions."""
        end = marks(self.pipeline, number)
        covered = [r for r in self.journal.records if r.place[2] < end.get(r.place[1], 0)]
        return {"/".join(map(str, (*r.place, n))): hashed for r in covered for n, hashed in enumerate(r.rows)}


@dataclass(frozen=True)
class Killed:
    """What the killed application had sent, and how far its ledger said that it had come."""

    sent: set[str]
    marks: dict[int, int]


@pytest.fixture
def scene(tmp_path: Path, broker: Broker, topic: TopicMaker) -> Scene:
    """Nothing runs, and nothing was sent."""
    pipeline = make_pipeline(
        tmp_path,
        broker.bootstrap_servers,
        topic("events", partitions=2),
        lane=ANY_LANE,
        to_topics=[{"topic": topic("sent"), "key": "id"}],
        freshness="real_time",
        real_time={"epoch": "5s", "tables": "500ms", "quarantine_topic": topic("bad", partitions=1)},
    )
    journal = Journal()
    pipeline = replace(pipeline, settings=replace(pipeline.settings, spark_master="local[3]"))
    return Scene(pipeline, journal, JournalingProducer(broker.bootstrap_servers, journal))


@pytest.fixture
def starter() -> Iterator[Applications]:
    """Every application that it starts is gone at the end."""
    with applications() as found:
        yield found


def test_killed_in_real_time_goes_on_in_batches_and_in_real_time_again(scene: Scene, starter: Applications) -> None:
    with Load(scene.producer, scene.source, PER_SECOND):
        killed = killed_in_real_time(scene, starter)
        batches = starter.start(changed(scene.pipeline, freshness="250ms"))
        wait_batch(batches, 3)
    batches.wait_landed(scene.journal.ends())
    assert batches.stop().verdict == "stopped", batches
    before = doubles(scene.received())
    assert_exactly_once(scene.pipeline, scene.journal)
    send_events(scene.producer, scene.source, range(FOR_TOPICS_ALONE, FOR_TOPICS_ALONE + 5 * PER_SECOND))
    run_to_the_end(scene, starter, scene.alone)
    judge(scene, killed, before, [None, "at_least_once"])


@only_in_long_form
def test_the_freshness_changes_forth_and_back_under_load(scene: Scene, starter: Applications) -> None:
    with Load(scene.producer, scene.source, PER_SECOND):
        killed = killed_in_real_time(scene, starter)
        resumed = starter.start(with_long_epochs(scene.alone))
        wait_batch(resumed, 5)  # The last short one.
        wait_batch(resumed, 0, at_most=0)
        assert diagnose(read_pipeline_facts(scene.alone.spec, scene.alone.settings)).verdict == "healthy", resumed
        assert resumed.stop().verdict == "stopped", resumed
        before = doubles(scene.received())
        batches = starter.start(changed(scene.pipeline, freshness="250ms"))
        wait_batch(batches, 3)
        assert batches.stop().verdict == "stopped", batches
    run_to_the_end(scene, starter, scene.pipeline)
    assert_exactly_once(scene.pipeline, scene.journal)
    judge(scene, killed, before, [None, "at_least_once", "at_least_once"])


@only_in_long_form
def test_killed_between_the_entries_of_two_topics_each_goes_on_from_its_own(
    scene: Scene, starter: Applications, topic: TopicMaker
) -> None:
    both = (*scene.pipeline.spec.to_topics, ToTopicSpec(topic=topic("second")))
    scene = replace(scene, pipeline=changed(scene.alone, to_topics=both))
    with Load(scene.producer, scene.source, PER_SECOND):
        killed = starter.start(with_long_epochs(scene.pipeline), faults="kill@before_commit/topic#4")
        killed.wait_killed("after the second epoch's entry of one topic, before that of the other, before the long ones")
    noted = [marks(scene.pipeline, number) for number in range(len(both))]
    assert noted[0] != noted[1], "the topics do not differ: nothing was tested"
    run_to_the_end(scene, starter, scene.pipeline)
    for number in range(len(both)):
        messages = scene.received(number)
        assert_sent(scene, messages, number)
        assert doubles(messages) == behind(doubles(messages), noted[number]), "a row came twice that the ledger had told of"
    proof = prove(scene.pipeline.spec, scene.pipeline.places, deep=True)
    of_topics = [one for one in proof.tables if one.table.startswith("topic:")]
    assert [(one.missing.count, one.problems) for one in of_topics] == [(0, ())] * len(both), of_topics


def killed_in_real_time(scene: Scene, starter: Applications) -> Killed:
    """Run it in real time until it is killed within an epoch."""
    killed = starter.start(scene.pipeline, faults="kill@epoch_sent#2")
    killed.wait_killed("after rows were sent, before the ledger tells of it")
    return Killed(sources(scene.received()), marks(scene.pipeline))


def run_to_the_end(scene: Scene, starter: Applications, pipeline: Pipeline) -> None:
    """Run a form of the pipeline until all that was sent has landed."""
    last = starter.start(pipeline)
    last.wait_landed(scene.journal.ends())
    assert diagnose(read_pipeline_facts(pipeline.spec, pipeline.settings)).verdict == "healthy", last
    assert last.stop().verdict == "stopped", last


def judge(scene: Scene, killed: Killed, before: set[str], deliveries: list[str | None]) -> None:
    """Judge the topics.

    Args:
        before: The source positions that had come twice before the last graceful change of the freshness.
        deliveries: What the entries of the starts before the last one have to say, the newest first.
    """
    pipeline, messages, end = scene.pipeline, scene.received(), marks(scene.pipeline)
    assert_sent(scene, messages)
    assert doubles(messages) == before, "a graceful change sent rows twice"
    assert before == behind(before, killed.marks), "a row came twice that the ledger had told of"
    assert before <= killed.sent
    assert before, "the kill made no doubles: it did not come after rows were sent"
    bad = read_committed(pipeline.spec.connection.bootstrap_servers, pipeline.spec.quarantine_topic)
    in_quarantine = sources(bad) | quarantined(pipeline)
    covered = [r for r in scene.journal.records if r.place[2] < end.get(r.place[1], 0)]
    assert in_quarantine >= {"/".join(map(str, (*r.place, 0))) for r in covered if r.fate == "quarantine"}
    opened = [e.entry.delivery for e in target(pipeline).entries() if e.entry.kind == "open"]
    assert opened == ["at_least_once", *deliveries]
    proof = prove(pipeline.spec, pipeline.places, deep=True)
    (of_topic,) = [one for one in proof.tables if one.table.startswith("topic:")]
    assert (of_topic.missing.count, of_topic.problems) == (0, ()), of_topic


def wait_batch(application: RunningApplication, number: int, at_most: int = sys.maxsize) -> None:
    """Return when a batch, or an epoch, of this number, or of a higher one, has landed rows."""

    def has_landed() -> bool:
        progress = application.progress
        if progress is None or progress.batch is None:
            return False
        return number <= progress.batch <= at_most and bool(progress.tables)

    application.wait_for(has_landed, LANDING_SECONDS, f"batch {number}")


def with_long_epochs(pipeline: Pipeline) -> Pipeline:
    """Return the pipeline with epochs so long that some short ones come before the first."""
    return changed(pipeline, real_time=pipeline.spec.real_time.model_copy(update={"epoch": "1m"}))


def changed(pipeline: Pipeline, **keys: Any) -> Pipeline:
    """Return the pipeline with something else in its YAML."""
    return replace(pipeline, spec=pipeline.spec.model_copy(update=keys))


def target(pipeline: Pipeline, number: int = 0) -> TopicTarget:
    """Return a target topic of the pipeline, to look at."""
    return TopicTarget(pipeline.spec.to_topics[number], pipeline.spec.pipeline, pipeline.spec.connection)


def marks(pipeline: Pipeline, number: int = 0) -> dict[int, int]:
    """Return the next offset of the one source topic, per partition, as the ledger topic has it of a target."""
    (found,) = high_water_marks(target(pipeline, number).read_ledger().coverage).values()
    return dict(found)


def behind(positions: set[str], noted: dict[int, int]) -> set[str]:
    """Return the source positions that the ledger had not told of."""
    return {one for one in positions if int(one.split("/")[2]) >= noted.get(int(one.split("/")[1]), 0)}


def assert_sent(scene: Scene, messages: list[ReadMessage], number: int = 0) -> None:
    """Every row of which the ledger tells is in the topic, with its values; a consumer who skips copies has each once."""
    expected = scene.expected(number)
    assert len(expected) > PER_SECOND, "hardly anything was sent: nothing was tested"
    found = {m.source: row_hash({"amount": None, **json.loads(m.value)}) for m in messages}
    assert {source: found.get(source) for source in expected} == expected
    if scene.pipeline.spec.to_topics[number].key is not None:  # the recipe is for topics whose rows stay in order
        assert Counter(m.source for m in handled(messages)) == Counter(found.keys()), (
            "the page's recipe drops rows, or lets copies pass"
        )


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
