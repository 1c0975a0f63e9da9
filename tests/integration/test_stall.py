"""An application that lives and says so, while nothing of what Kafka gets can be committed: the watch sees it in time."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from tests.support.kafka.journal import Journal
from tests.support.kafka.makers import TopicMaker
from tests.support.kafka.producing import JournalingProducer, send_events
from tests.support.streams.applications import applications
from tests.support.streams.pipelines import ANY_LANE, Pipeline, assert_exactly_once, make_pipeline

from lakebound.local.broker import Broker
from lakebound_airflow.triggers.stream_watch import Event, StreamWatch

pytestmark = pytest.mark.integration

STALL_SECONDS, VERDICT_SECONDS = 6.0, 90.0


def test_kafka_that_grows_while_no_commit_succeeds_is_a_stall_that_passes_with_its_cause(
    tmp_path: Path, broker: Broker, topic: TopicMaker
) -> None:
    name, journal = topic("stall"), Journal()
    producer = JournalingProducer(broker.bootstrap_servers, journal)
    thresholds = {"stall_seconds": STALL_SECONDS}
    pipeline = make_pipeline(tmp_path, broker.bootstrap_servers, name, lane=ANY_LANE, thresholds=thresholds)
    pipeline = with_file(pipeline, tmp_path / "pipelines")
    with applications() as starter:
        application = starter.start(pipeline)
        application.wait_running()
        watch = StreamWatch(pipeline.control, application.app_id, pipeline.settings)
        with locked(pipeline.settings.warehouse / "iceberg" / "catalog.db"):
            send_events(producer, name, range(300))
            event = first_event(watch)
            assert (event["event"], event["kind"]) == ("stalled", "not_committing"), event
            assert "300 records wait in Kafka" in event["reason"]
            progress = application.progress
            assert progress is not None
            assert time.time() - progress.updated_at < STALL_SECONDS, "it was silent: another kind of stall"
        application.wait_landed(journal.ends())
        watch.look_outside()
        assert watch.look(time.time()) is None
        assert application.stop().verdict == "stopped", application
    assert_exactly_once(pipeline, journal)


def with_file(pipeline: Pipeline, folder: Path) -> Pipeline:
    """Write the pipeline's YAML, which the watch reads."""
    folder.mkdir()
    body = pipeline.spec.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    (folder / f"{pipeline.spec.pipeline}.yaml").write_text(yaml.safe_dump(body))
    return replace(pipeline, settings=replace(pipeline.settings, pipelines=folder))


@contextmanager
def locked(catalog: Path) -> Iterator[None]:
    """Keep everybody else from writing to the SQLite catalog."""
    with closing(sqlite3.connect(catalog, timeout=60, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("ROLLBACK")


def first_event(watch: StreamWatch) -> Event:
    """Look as the trigger does, until there is a verdict."""
    deadline = time.monotonic() + VERDICT_SECONDS
    while True:
        watch.look_outside()
        event = watch.look(time.time())
        if event is not None:
            return event
        assert time.monotonic() < deadline, f"no verdict within {VERDICT_SECONDS:g} s; {watch.kafka}"
        time.sleep(0.2)
