"""Streams whose Iceberg tables lie in a bucket, behind REST and in PostgreSQL: killed, answered with errors, and judged.

A Delta table lies in the bucket beside the one that is killed, so the short form of ``test_stored_tables.py`` is here, too.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from tests.support.catalogs.installations import Installation, in_postgresql, in_rest, store_on
from tests.support.catalogs.postgresql import PostgreSQL
from tests.support.kafka.journal import Journal
from tests.support.kafka.makers import TopicMaker
from tests.support.kafka.producing import JournalingProducer, Load
from tests.support.s3.faults import around_commits
from tests.support.s3.running import S3Server
from tests.support.streams.applications import RunningApplication, applications
from tests.support.streams.long_form import LONG_FORM, only_in_long_form
from tests.support.streams.pipelines import Lane, Pipeline, assert_exactly_once, make_pipeline
from tests.support.streams.zombies import assert_a_zombie_is_refused

from lakebound.control.progress import Progress
from lakebound.local.broker import Broker

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(1800)]

PER_SECOND = 200
AWAY_SECONDS = 120.0


@pytest.fixture(params=["rest", pytest.param("postgresql", marks=only_in_long_form)])
def installation(request: pytest.FixtureRequest, tmp_path: Path, s3_server: S3Server) -> Iterator[Installation]:
    """An installation with tables in a bucket."""
    store = store_on(s3_server)
    with pytest.MonkeyPatch.context() as secrets, TemporaryDirectory(prefix="lakebound-postgresql-") as folder:
        server = PostgreSQL(Path(folder)) if request.param == "postgresql" else None
        made = in_rest(tmp_path, store, secrets) if server is None else in_postgresql(server, tmp_path, store, secrets)
        yield made
        made.close()
        if server is not None:
            server.stop()


def one_table(folder: Path, broker: Broker, topic: str, lane: Lane) -> Pipeline:
    """Return a pipeline with an Iceberg table alone."""
    return make_pipeline(folder, broker.bootstrap_servers, topic, lane=lane, formats=("iceberg",))


def test_a_stream_through_a_catalog_is_killed_and_started_again(
    installation: Installation, tmp_path: Path, broker: Broker, topic: TopicMaker, s3_server: S3Server
) -> None:
    lane: Lane = "direct" if installation.rest is not None else "cluster"
    made = make_pipeline(tmp_path, broker.bootstrap_servers, topic("cataloged"), lane=lane)
    pipeline = installation.holding(made)
    journal = Journal()
    name = pipeline.spec.topics[0]
    # The catalog has the whole batch; the bucket has the Delta table's files, of which no commit tells.
    rules = ["kill@after_commit/iceberg#2,hold@before_commit/delta#2"]
    if LONG_FORM:
        rules.insert(0, "kill@after_data_files#2")
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


@only_in_long_form
def test_a_catalog_that_is_away_for_two_minutes_loses_nothing_and_needs_nobody(
    installation: Installation, tmp_path: Path, broker: Broker, topic: TopicMaker
) -> None:
    pipeline = installation.holding(one_table(tmp_path, broker, topic("away"), "direct"))
    journal, (name,) = Journal(), pipeline.spec.topics
    with applications() as starter:
        application = starter.start(pipeline)
        application.wait_running()
        with Load(JournalingProducer(pipeline.settings.kafka, journal), name, PER_SECOND, None):
            application.wait_for(lambda: _said(application).last_commit_at is not None, AWAY_SECONDS, "a commit")
            with installation.away():
                back_at = time.monotonic() + AWAY_SECONDS
                while time.monotonic() < back_at:
                    # As Airflow does: an end by an outage is no failed start.
                    if application.process.poll() is not None:
                        assert application.outcome is not None and application.outcome.is_outage, application
                        application = starter.start(pipeline)
                    time.sleep(0.2)
            if application.process.poll() is not None:
                application = starter.start(pipeline)
        application.wait_landed(journal.ends())
        assert application.stop().verdict == "stopped", application
    assert_exactly_once(pipeline, journal)


@only_in_long_form
@pytest.mark.parametrize("lane", ["direct", "cluster"])
@pytest.mark.parametrize("rule", ["stop@after_trim#2", "stop@before_commit/iceberg#2"])
def test_a_zombie_is_refused_by_a_catalog(
    lane: Lane, rule: str, installation: Installation, tmp_path: Path, broker: Broker, topic: TopicMaker
) -> None:
    assert_a_zombie_is_refused(installation.holding(one_table(tmp_path, broker, topic("zombie"), lane)), rule)


def _said(application: RunningApplication) -> Progress:
    progress = application.progress
    assert progress is not None
    return progress
