"""A rewind under a running application, and its undoing, by the commands that a person types. Real Kafka, real Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.kafka.journal import Journal
from tests.support.kafka.makers import TopicMaker
from tests.support.kafka.producing import JournalingProducer, as_json, event
from tests.support.streams.applications import Applications, RunningApplication, applications
from tests.support.streams.command_line import answer, known_to_commands, lakebound
from tests.support.streams.pipelines import ANY_LANE, Pipeline, assert_exactly_once, make_pipeline
from tests.support.tables.rewinding import now_ms

from lakebound.control.desired import read_desired
from lakebound.control.incidents import read_incidents
from lakebound.local.broker import Broker
from lakebound.spec.times import in_utc

pytestmark = pytest.mark.integration
EVERY_BAD = 25


@pytest.fixture
def starter() -> Iterator[Applications]:
    with applications() as running:
        yield running


def send(producer: JournalingProducer, topic: str, numbers: range) -> None:
    """Send events, some of which cannot be decoded, and wait for their acknowledgement."""
    for number in numbers:
        columns = event(number)
        if number % EVERY_BAD:
            producer.send(topic, as_json(columns), rows=[columns], key=str(number).encode())
        else:
            producer.send(topic, as_json(columns)[:-1], key=str(number).encode())
    producer.flush()


def rewind(*arguments: str) -> dict[str, Any]:
    """Plan, and apply what was planned; return the plan."""
    plan: dict[str, Any] = answer("rewind", "events", *arguments, "--plan")
    applied = answer("rewind", "events", *arguments, "--apply", plan["hash"], "--by", "on call")
    assert (applied["incident"]["outcome"], applied["incident"]["approved_by"]) == ("done", "on call")
    return plan


def assert_ended(application: RunningApplication) -> None:
    outcome = application.ended()
    assert (outcome.verdict, application.process.returncode) == ("stopped", 0), application


def rows_of(pipeline: Pipeline) -> dict[str, int]:
    tables = (*pipeline.spec.tables, pipeline.spec.quarantine_table)
    return {table.id: pipeline.read(table).num_rows for table in tables}


def test_rewound_under_a_running_application_everything_lands_once_and_can_be_undone(
    tmp_path: Path, broker: Broker, topic: TopicMaker, starter: Applications, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, journal = topic("rewound", partitions=2), Journal()
    producer = JournalingProducer(broker.bootstrap_servers, journal)
    pipeline = make_pipeline(tmp_path, broker.bootstrap_servers, name, lane=ANY_LANE)
    known_to_commands(pipeline, monkeypatch, tmp_path / "pipelines")

    first = starter.start(pipeline)
    send(producer, name, range(400))
    first.wait_landed(journal.ends())
    then, early = now_ms(), {(name, p): end for p, end in journal.ends()[name].items()}
    send(producer, name, range(400, 1000))
    first.wait_landed(journal.ends())
    full, late = rows_of(pipeline), {(name, p): end for p, end in journal.ends()[name].items()}

    plan = rewind("--to", in_utc(then).removesuffix(" UTC"))
    assert_ended(first)
    assert plan["replays_records"] == 600 and sum(plan["removes_rows"].values()) == sum(full.values()) * 6 // 10
    assert_exactly_once(pipeline, journal.before(early))
    assert read_desired(pipeline.control).state == "running"

    second = starter.start(pipeline)
    send(producer, name, range(1000, 1200))
    second.wait_landed(journal.ends())
    assert_exactly_once(pipeline, journal)

    undone = rewind("--undo")
    assert_ended(second)
    assert undone["action"] == "undo_rewind" and undone["replays_records"] == 200
    assert rows_of(pipeline) == full
    assert_exactly_once(pipeline, journal.before(late))
    assert [incident.kind for incident in read_incidents(pipeline.control)] == ["rewind", "rewind"]
    assert "is already undone" in lakebound("rewind", "events", "--undo", code=1).stderr
