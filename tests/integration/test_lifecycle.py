"""How applications begin and end: bounds, refusals, signals, and starts without a checkpoint."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from tests.support.kafka.journal import Journal
from tests.support.kafka.makers import TopicMaker
from tests.support.kafka.producing import JournalingProducer, Load, send_events
from tests.support.streams.applications import Applications, RunningApplication, applications
from tests.support.streams.exposure import command_lines, files_with
from tests.support.streams.lineage_server import LineageServer
from tests.support.streams.long_form import LONG_FORM, only_in_long_form
from tests.support.streams.pipelines import ANY_LANE, Pipeline, assert_exactly_once, make_pipeline
from tests.support.waiting import HANGS_SECONDS

from lakebound.control.desired import RunBound, read_desired
from lakebound.control.recent_ledger import read_recent_ledger
from lakebound.control.rollup_book import sum_of
from lakebound.control.rollup_files import read_buckets, read_totals
from lakebound.control.rollups import RESOLUTIONS
from lakebound.control.status import pipeline_statuses
from lakebound.landing.class_archive import class_archive
from lakebound.local.broker import Broker

pytestmark = pytest.mark.integration

LINEAGE_KEY = "lineage-s3cret"


@pytest.fixture
def starter() -> Iterator[Applications]:
    with applications() as running:
        yield running


@pytest.fixture
def journal() -> Journal:
    return Journal()


@pytest.fixture
def producer(broker: Broker, journal: Journal) -> JournalingProducer:
    return JournalingProducer(broker.bootstrap_servers, journal)


@pytest.fixture
def lineage() -> Iterator[LineageServer]:
    server = LineageServer()
    yield server
    server.close()


def test_lets_nobody_disturb_it_and_stops_gracefully(
    tmp_path: Path, broker: Broker, topic: TopicMaker, starter: Applications, producer: JournalingProducer, journal: Journal
) -> None:
    name = topic("lifecycle")
    pipeline = make_pipeline(tmp_path, broker.bootstrap_servers, name, lane=ANY_LANE)
    send_events(producer, name, range(1000))
    first = starter.start(pipeline, own_jvm=True)
    first.wait_landed(journal.ends())
    mapped = Path(f"/proc/{first.process.pid}/maps").read_text()
    assert str(class_archive(pipeline.settings.jars)) in mapped, "make class-archive made none, or the JVM refused it"
    second = first
    if LONG_FORM:  # It goes on without its checkpoint; shortly: test_a_deleted_checkpoint_costs_nothing… in test_doctor.py
        first.kill()
        shutil.rmtree(pipeline.control.folder / "checkpoints")
        second = starter.start(pipeline, own_jvm=True)
    send_events(producer, name, range(1000, 2000))
    second.wait_landed(journal.ends())
    third = starter.start(pipeline)
    refusal = third.ended()
    assert (refusal.verdict, refusal.error_class, third.process.returncode) == ("refused", "LeaseHeldError", 3), third
    assert second.app_id in refusal.reason

    before = _records(second)
    with Load(producer, name, per_second=500) as load:
        second.wait_for(lambda: load.sent > 500 and _records(second) > before + 500 and _batch(second) > 5, 60, "load")
        noted = [path for path in pipeline.control.checkpoint(second.app_id).glob("*/offsets/*") if path.name.isdigit()]
        assert len(noted) <= 2, "Spark notes its progress once a minute, not per batch"
        second.terminate()
        outcome = second.ended()
    assert (outcome.verdict, second.process.returncode) == ("stopped", 0), second
    assert "SIGTERM" in outcome.reason
    ends = pipeline.landed_ends()
    assert sum(ends.values()) > 2000, "nothing of the load was landed"
    assert_exactly_once(pipeline, journal.before(ends))


@only_in_long_form  # shortly: to the driver under load in the test above
def test_sigterm_to_the_jvm_or_to_the_whole_group_stops_it_gracefully(
    tmp_path: Path, broker: Broker, topic: TopicMaker, starter: Applications, producer: JournalingProducer, journal: Journal
) -> None:
    name = topic("terminated")
    pipeline = make_pipeline(tmp_path, broker.bootstrap_servers, name)
    ways = (RunningApplication.terminate_group, RunningApplication.terminate_jvm)
    for terminate in ways:
        application = starter.start(pipeline, own_jvm=True)
        with Load(producer, name, per_second=500):
            application.wait_for(partial(_has_records, application, 500), 120, "load")
            terminate(application)
            outcome = application.ended()
        assert (outcome.verdict, application.process.returncode) == ("stopped", 0), application
        assert outcome.reason == "signal SIGTERM"
    assert_exactly_once(pipeline, journal.before(pipeline.landed_ends()))


def assert_lineage(server: LineageServer, pipeline: Pipeline, topic: str, *, rows: int, ends: Mapping[int, int]) -> None:
    """Assert that OpenLineage was told of one run, and of as many rows and the offsets that Kafka has."""
    assert (server.states[0], server.states[-1]) == ("START", "COMPLETE")
    assert set(server.keys) == {f"Bearer {LINEAGE_KEY}"}
    assert len({event["run"]["runId"] for event in server.events}) == 1
    inputs, outputs = server.events[-1]["inputs"], {one["name"]: one for one in server.events[-1]["outputs"]}
    servers = pipeline.spec.connection.bootstrap_servers
    assert [(one["namespace"], one["name"]) for one in inputs] == [(f"kafka://{servers}", topic)]
    assert {one["namespace"] for one in outputs.values()} == {"file"}
    root, quarantine = pipeline.places.root.path, pipeline.spec.quarantine_table
    folders = {table.id: f"{root}/{table.format}/{table.namespace}/{table.short_name}" for table in pipeline.spec.tables}
    assert set(outputs) == {*folders.values(), f"{root}/{quarantine.format}/{quarantine.namespace}/{quarantine.short_name}"}
    for table in pipeline.spec.tables:
        name = folders[table.id]
        facets = outputs[name]["facets"]
        assert [column["name"] for column in facets["schema"]["fields"]] == pipeline.read(table).schema.names
        assert facets["lakebound_offsets"]["nextOffsets"] == {topic: {str(number): end for number, end in ends.items()}}
        assert ("symlinks" in facets) == (table.format == "iceberg")
        told = [one["outputFacets"]["outputStatistics"] for one in server.outputs(name)]
        assert sum(one["rowCount"] for one in told) == rows
        assert sum(one["size"] for one in told) > 0


@only_in_long_form  # shortly: a bounded run in test_getting_started.py, lineage in tests/local/streams/test_lineage_client.py
def test_latest_is_the_first_start_only_and_a_bounded_run_ends_at_its_bound(
    tmp_path: Path,
    broker: Broker,
    topic: TopicMaker,
    starter: Applications,
    producer: JournalingProducer,
    journal: Journal,
    lineage: LineageServer,
) -> None:
    name = topic("latest", partitions=2)
    pipeline = make_pipeline(tmp_path, broker.bootstrap_servers, name, lane=ANY_LANE, start_from="latest")
    send_events(producer, name, range(100))
    skipped = journal.ends()[name]
    first = starter.start(pipeline, environ={"OPENLINEAGE_URL": lineage.url, "OPENLINEAGE_API_KEY": LINEAGE_KEY})
    first.wait_running()
    send_events(producer, name, range(100, 200))
    first.wait_landed(journal.ends())
    assert LINEAGE_KEY not in "".join(command_lines(first))
    assert first.stop().verdict == "stopped", first
    assert_lineage(lineage, pipeline, name, rows=100, ends=journal.ends()[name])
    assert files_with(LINEAGE_KEY, pipeline.control.folder) == []

    send_events(producer, name, range(200, 400))  # while nothing runs: `latest` must not skip these
    bound = {p: end - 30 for p, end in journal.ends()[name].items()}
    second = starter.start(replace(pipeline, until=RunBound(offsets={name: bound})))
    outcome = second.ended(150)
    assert (outcome.verdict, second.process.returncode) == ("completed", 0), second
    assert read_desired(pipeline.control).state == "stopped", "a bounded run that is over would be started again"

    landed = journal.after({(name, p): end for p, end in skipped.items()}).before({(name, p): end for p, end in bound.items()})
    assert_exactly_once(pipeline, landed)
    wanted = sum(len(record.rows) for record in landed.records)
    for resolution in RESOLUTIONS:
        sums = sum_of(read_buckets(pipeline.control, resolution, 0))
        assert {id_: table.rows for id_, table in sums.tables.items()} == {one.id: wanted for one in pipeline.spec.tables}
    totals = read_totals(pipeline.control)
    assert totals is not None and totals.figures.read == landed.count(), "both applications ended gracefully"
    assert 2 < totals.figures.cpu_seconds < 600, "two starts of a JVM are among them"
    assert not pipeline.control.quarantine_samples.exists(), "nobody asked for values of records"
    ledger = read_recent_ledger(pipeline.control)
    assert ledger is not None and {partition: held[-1][1] for partition, held in ledger.coverage[name].items()} == bound
    noted = [batch for batch in ledger.batches if batch.epoch == max(one.epoch for one in ledger.batches)]
    spans = [span for batch in noted for held in batch.ranges[name].values() for span in held]
    assert sum(end - start for start, end in spans) >= sum(batch.read for batch in noted) > 0
    assert sum(made.rows for batch in noted for made in batch.tables.values()) > 0


@only_in_long_form  # shortly: bytes in test_a_missing_topic_is_waited_for, a run that completes in test_getting_started.py
def test_available_now_lands_bytes_as_they_are_skips_tombstones_and_completes(
    tmp_path: Path, broker: Broker, topic: TopicMaker, starter: Applications, producer: JournalingProducer, journal: Journal
) -> None:
    name = topic("raw")
    pipeline = make_pipeline(
        tmp_path, broker.bootstrap_servers, name, value={"format": "bytes"}, null_values="skip", freshness="available_now"
    )
    send_bytes(producer, name)
    first = starter.start(pipeline)
    outcome = first.ended(150)
    assert (outcome.verdict, first.process.returncode) == ("completed", 0), first
    assert_exactly_once(pipeline, journal)


def test_a_missing_topic_is_waited_for(
    tmp_path: Path, broker: Broker, topic: TopicMaker, starter: Applications, producer: JournalingProducer, journal: Journal
) -> None:
    there, missing = topic("there"), f"missing-{uuid.uuid4().hex[:8]}"
    pipeline = make_pipeline(tmp_path, broker.bootstrap_servers, there, missing, value={"format": "bytes"}, null_values="skip")
    application = starter.start(pipeline)
    application.wait_for(lambda: _is_waiting(application), 60, "the wait for the topic")
    assert application.progress is not None
    missed = f"waiting: topic {missing} is not on the broker at {broker.bootstrap_servers}"
    sentence = f"{missed}; create it: lakebound create-topic --pipeline events"
    (status,) = [found for found in pipeline_statuses(pipeline.settings) if found.pipeline == "events"]
    assert (status.app, status.situation) == ("waiting", "waiting")
    assert f"{sentence} (runbook topic-missing)" in status.notes
    assert not pipeline.settings.warehouse.exists(), "nothing is created before all topics are there"

    new = NewTopic(missing, num_partitions=2, replication_factor=1)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    for created in admin.create_topics([new]).values():
        created.result(timeout=HANGS_SECONDS)
    for name in (there, missing):
        send_bytes(producer, name)
    application.wait_landed(journal.ends())
    outcome = application.stop()
    assert (outcome.verdict, application.process.returncode) == ("stopped", 0), application
    assert_exactly_once(pipeline, journal)


def send_bytes(producer: JournalingProducer, topic: str) -> None:
    """Send values that are no text, an empty one and a large one, and a tombstone, which is to be skipped."""
    for value in (b"plain", b"", b"\x00\xff\xfe", b"x" * (1 << 20)):
        producer.send(topic, value, key=b"k", rows=[{"key": b"k", "value": value}])
    producer.send(topic, None, key=b"k", fate="nothing")
    producer.flush()


def _is_waiting(application: RunningApplication) -> bool:
    return application.progress is not None and application.progress.state == "waiting"


def _has_records(application: RunningApplication, count: int) -> bool:
    return _records(application) > count


def _batch(application: RunningApplication) -> int:
    progress = application.progress
    return progress.batch or 0 if progress is not None else 0


def _records(application: RunningApplication) -> int:
    progress = application.progress
    return progress.records if progress else 0
