"""Broker outages, batches too large for the driver, and secrets."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from tests.support.kafka.journal import Journal
from tests.support.kafka.makers import BrokerMaker, TopicMaker, topic_maker
from tests.support.kafka.producing import JournalingProducer, as_json, event, send_events
from tests.support.live_processes import asked_of_each, family_of
from tests.support.streams.applications import RunningApplication, applications
from tests.support.streams.exposure import UI_PAGES, command_lines, files_with, ui_pages
from tests.support.streams.landing_transforms import expected_tag_rows
from tests.support.streams.long_form import only_in_long_form
from tests.support.streams.pipelines import TAG_ROWS, Pipeline, assert_exactly_once, make_pipeline

from lakebound.control.crash_loop import read_crash_loop
from lakebound.landing.spark_command import spark_conf
from lakebound.local.broker import Broker
from lakebound.local.broker_config import SaslUser
from lakebound.spec.limits import DriverLaneSpec

pytestmark = pytest.mark.integration

SECRET = "Xk4-unlikely-to-stand-anywhere-by-chance"
PASSWORD = f"{SECRET} pässwörd€𝄞\"'\\n$;"
"""With what JAAS, properties and JSON each quote in another way."""


@only_in_long_form  # shortly: a broker that is away in test_on_call.py, secrets in test_kafka_logins.py
def test_broker_killed_and_restarted_before_and_during_starts_and_the_password_stands_nowhere(
    tmp_path: Path, new_broker: BrokerMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAKEBOUND_SECRET_TEST", PASSWORD)  # the application inherits it, the proof needs it, too
    own = new_broker(SaslUser("lander", PASSWORD))
    journal = Journal()
    producer = JournalingProducer(own.bootstrap_servers, journal)
    name = topic_maker(own.bootstrap_servers)("secured")
    sasl = {"mechanism": "PLAIN", "username": "lander", "password": {"env": "LAKEBOUND_SECRET_TEST"}}
    folder, scratch = tmp_path / "pipeline", tmp_path / "scratch"
    scratch.mkdir()
    pipeline = make_pipeline(
        folder, own.bootstrap_servers, name, connection={"bootstrap_servers": f"127.0.0.1:{own.ports.sasl}", "sasl": sasl}
    )
    with applications() as starter:
        application = starter.start(pipeline, environ={"SPARK_LOCAL_DIRS": str(scratch)})
        send_events(producer, name, range(500))
        application.wait_landed(journal.ends())

        own.kill()
        application.wait_for(lambda: _is_waiting(application), 90, "the application noticing the outage")
        own.start()
        send_events(producer, name, range(500, 1000))
        application.wait_landed(journal.ends())

        pages = list(ui_pages(application))
        arguments = command_lines(application)
        listening = _listening(application)
        assert listening and listening <= {"127.0.0.1", "::ffff:127.0.0.1"}, "others reach the Spark UI, or the driver"
        checkpoint_files = [path for path in folder.rglob("checkpoints/*/*/offsets/*") if path.is_file()]
        application.terminate_group()
        outcome = application.ended()
        assert (outcome.verdict, application.process.returncode) == ("stopped", 0), application
        assert outcome.reason == "signal SIGTERM"

        own.kill()
        strict = pipeline.with_limits(max_failed_starts=1, outage_seconds=1)
        failed = starter.start(strict).ended()
        assert (failed.verdict, failed.error_class, failed.is_outage) == ("failed", "BrokerUnavailableError", True), failed
        # One failed start is all that it may have: the next would be refused, if an outage counted.
        patient = starter.start(strict.with_limits(outage_seconds=120))
        patient.wait_for(lambda: _is_waiting(patient), 90, "the application waiting for a broker that is away")
        assert read_crash_loop(pipeline.control).ends == ()
        own.start()
        send_events(producer, name, range(1000, 1200))
        patient.wait_landed(journal.ends())
        assert patient.stop().verdict == "stopped", patient
    assert_exactly_once(pipeline, journal)

    assert any("ingest_stream.py" in argument for argument in arguments)
    assert not [argument for argument in arguments if SECRET in argument]
    assert checkpoint_files and len(pages) > len(UI_PAGES)
    assert not [url for url, page in pages if SECRET in page]
    assert not files_with(SECRET, folder, scratch)
    assert SECRET.encode() in (own.folder / "server.properties").read_bytes(), "this grep finds nothing at all"


def test_batch_too_large_for_the_driver_lands_through_the_cluster_lane(
    tmp_path: Path, broker: Broker, topic: TopicMaker
) -> None:
    name, journal = topic("large"), Journal()
    producer = JournalingProducer(broker.bootstrap_servers, journal)
    at_once = JournalingProducer(broker.bootstrap_servers, journal, transactional_id="large")
    pipeline = make_pipeline(tmp_path, broker.bootstrap_servers, name, freshness="1s", transform=TAG_ROWS)
    conf = {"spark.driver.maxResultSize": "1m", **direct_memory(pipeline, "48m")}
    with applications() as starter:
        application = starter.start(pipeline, conf=conf)
        for number in range(2):
            send_tagged(producer, name, number)
            producer.flush()
            application.wait_landed(journal.ends())
        application.wait_for(lambda: _lane(application) == "driver", 10, "a batch in the driver lane")
        with at_once.transaction():  # in several batches, the last of them may fit
            for number in range(1000, 5000):
                send_tagged(at_once, name, number, body=f"{number} " + f"{number * 7919} " * 300)
        application.wait_landed(journal.ends())
        application.wait_for(lambda: _lane(application) == "cluster", 10, "a batch in the cluster lane")
        burst(at_once, name, records=20, width=100_000, tags=40)
        application.wait_landed(journal.ends())
        assert application.stop().verdict == "stopped", application
    log = application.log.read_text()
    assert "maxResultSize" in log, "the driver lane was never too small"
    assert "OutOfDirectMemoryError" in log, "the rows fitted into the tasks' buffers"
    assert "starts again from the ledger" not in log, "the query failed and was started again"
    assert_exactly_once(pipeline, journal)


@pytest.mark.chaos
@only_in_long_form
def test_a_batch_that_bursts_the_memory_costs_one_restart_and_the_next_like_it_none(
    tmp_path: Path, broker: Broker, topic: TopicMaker
) -> None:
    name, journal = topic("bursting", partitions=1), Journal()
    producer = JournalingProducer(broker.bootstrap_servers, journal)
    at_once = JournalingProducer(broker.bootstrap_servers, journal, transactional_id="bursting")
    pipeline = make_pipeline(tmp_path, broker.bootstrap_servers, name, transform=TAG_ROWS)
    pipeline = replace(pipeline, spec=pipeline.spec.model_copy(update={"driver_lane": DriverLaneSpec()}))
    # Without the other bounds, the rows of one batch fill the heap of the driver; Spark itself wants a larger one.
    conf = {
        "spark.driver.memory": "300m",
        "spark.driver.maxResultSize": "0",
        "spark.testing.reservedMemory": str(1 << 20),
        **direct_memory(pipeline, "1g"),
    }
    with applications() as starter:
        first = starter.start(pipeline, conf=conf)
        for number in range(2):
            send_tagged(producer, name, number)
            producer.flush()
            first.wait_landed(journal.ends())
        first.wait_for(lambda: _lane(first) == "driver", 10, "a batch in the driver lane")
        burst(at_once, name, records=200, width=30_000, tags=20)
        first.wait_exit(60)
        outcome = first.wait_outcome()
        assert (outcome.verdict, outcome.error_class) == ("failed", "SparkDiedError"), first
        assert "OutOfMemoryError" in first.log.read_text()

        second = starter.start(pipeline, conf=conf)
        second.wait_landed(journal.ends())
        burst(at_once, name, records=200, width=30_000, tags=20)
        second.wait_landed(journal.ends())
        second.wait_for(lambda: _lane(second) == "cluster", 10, "a batch in the cluster lane")
        assert second.stop().verdict == "stopped", second
    assert_exactly_once(pipeline, journal)


def direct_memory(pipeline: Pipeline, size: str) -> dict[str, str]:
    """Return the setting that gives the driver's JVM so much memory beside its heap, for Arrow's buffers among others."""
    options = "spark.driver.extraJavaOptions"
    return {options: f"{spark_conf(pipeline.run_spec(), pipeline.settings)[options]} -XX:MaxDirectMemorySize={size}"}


def burst(producer: JournalingProducer, topic: str, *, records: int, width: int, tags: int) -> None:
    """Send, for one batch and one task, few bytes of records that become many bytes of rows."""
    with producer.transaction():
        for number in range(records):
            send_tagged(producer, topic, number, body="b" * width, tags=tags)


def send_tagged(producer: JournalingProducer, topic: str, number: int, *, tags: int = 1, **changes: str) -> None:
    """Send an event that becomes a row for each of its tags."""
    columns = event(number, tags=[f"tag-{tag}" for tag in range(tags)], **changes)
    producer.send(topic, as_json(columns), rows=expected_tag_rows(columns), partition=0)


def _lane(application: RunningApplication) -> str | None:
    progress = application.progress
    return progress.lane if progress else None


def _is_waiting(application: RunningApplication) -> bool:
    progress = application.progress
    return progress is not None and progress.state == "waiting" and bool(progress.waiting_for)


def _listening(application: RunningApplication) -> set[str]:
    """Return the addresses on which the application's processes listen."""
    family = asked_of_each(family_of(application.process.pid), lambda process: process.net_connections("tcp"))
    return {one.laddr.ip for connections in family.values() for one in connections if one.status == psutil.CONN_LISTEN}
