"""The doctor beside a real application: what it says before a start, and what the start then does."""

from __future__ import annotations

import shutil
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from tests.support.airflow.receivers import WebhookEndpoint
from tests.support.kafka.journal import Journal
from tests.support.kafka.makers import TopicMaker
from tests.support.kafka.producing import JournalingProducer, send_events
from tests.support.streams.applications import Applications, applications
from tests.support.streams.long_form import LONG_FORM
from tests.support.streams.pipelines import ANY_LANE, Pipeline, assert_exactly_once, make_pipeline
from tests.support.waiting import HANGS_SECONDS, wait_until

from lakebound.control.findings import read_source
from lakebound.control.incidents import read_incidents
from lakebound.inspection.doctor.diagnosis import Diagnosis
from lakebound.inspection.doctor.examine import examine_pipeline
from lakebound.ledger.lost import LostRange
from lakebound.local.broker import Broker
from lakebound_airflow.watch.service import Watch

pytestmark = pytest.mark.integration


@pytest.fixture
def starter() -> Iterator[Applications]:
    with applications() as running:
        yield running


def examine(pipeline: Pipeline) -> Diagnosis:
    """Examine the pipeline, and check that nothing was written."""
    before = content(pipeline)
    diagnosis = examine_pipeline(pipeline.spec, pipeline.settings)
    assert content(pipeline) == before, "the doctor wrote something"
    return diagnosis


def assert_told(pipeline: Pipeline, app_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One round of the watch tells that the application died: with real parts, and without any Airflow."""
    endpoint = WebhookEndpoint()
    monkeypatch.setenv("AIRFLOW_CONN_LAKEBOUND_WEBHOOK", f"http://127.0.0.1:{endpoint.port}/")
    pipelines = pipeline.settings.home.parent / "pipelines"
    pipelines.mkdir()
    body = pipeline.spec.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    (pipelines / f"{pipeline.spec.pipeline}.yaml").write_text(yaml.safe_dump(body))
    try:
        assert Watch(replace(pipeline.settings, pipelines=pipelines), threading.Event()).once()
    finally:
        endpoint.close()
    (message,) = endpoint.bodies
    assert (message["app_id"], message["runbook"], message["kind"]) == (app_id, "application-dead", "opened")
    assert f"{app_id} died without an outcome" in message["reason"]
    looked = read_source(pipeline.control, "doctor")
    assert looked is not None and {"application-dead"} <= {one.cause for one in looked.findings}


def content(pipeline: Pipeline) -> str:
    """Return the hash of every file of the pipeline; what SQLite itself needs to read (index, empty log) is left out.

    Another process reads them: closing a database file would end the locks that SQLite holds on it in this one.
    """
    roots = [root for root in (pipeline.settings.home, pipeline.settings.warehouse) if root.exists()]
    if not roots:
        return ""
    files = ["find", *map(str, roots), "-type", "f", "-not", "-name", "*-shm", "-not", "(", "-name", "*-wal", "-empty", ")"]
    found = subprocess.run([*files, "-exec", "sha256sum", "{}", "+"], capture_output=True, text=True, check=True)
    return "\n".join(sorted(found.stdout.splitlines()))


def test_a_deleted_checkpoint_costs_nothing_and_a_loss_or_another_topic_is_named_and_refused(
    tmp_path: Path, broker: Broker, topic: TopicMaker, starter: Applications, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, journal = topic("doctor", partitions=2), Journal()
    producer = JournalingProducer(broker.bootstrap_servers, journal)
    pipeline = make_pipeline(tmp_path, broker.bootstrap_servers, name, lane=ANY_LANE)
    assert examine(pipeline).verdict == "starting", "it was never started"

    send_events(producer, name, range(300))
    first = starter.start(pipeline, own_jvm=True)
    first.wait_landed(journal.ends())
    wait_until(lambda: examine_pipeline(pipeline.spec, pipeline.settings).verdict == "healthy", 30, "a healthy pipeline")
    first.kill()
    assert_told(pipeline, first.app_id, monkeypatch)
    shutil.rmtree(pipeline.control.folder / "checkpoints")
    send_events(producer, name, range(300, 600))

    found = examine(pipeline)
    rules = {finding.rule for finding in found.findings}
    assert (found.verdict, found.loses_records) == ("repairable", 0), found
    assert {"application-dead", "checkpoint-lost"} <= rules
    assert found.numbers["lag_records"] == 300
    assert found.numbers["seconds_to_data_loss"] is not None

    second = starter.start(pipeline)
    second.wait_landed(journal.ends())
    wait_until(lambda: examine_pipeline(pipeline.spec, pipeline.settings).verdict == "healthy", 30, "a healthy pipeline")
    (incident_of_the_kill,) = read_incidents(pipeline.control)
    assert incident_of_the_kill.kind == "unclean_end"
    assert incident_of_the_kill.facts["found"]["app_id"] == first.app_id
    assert second.stop().verdict == "stopped", second
    assert_exactly_once(pipeline, journal)

    landed = journal.ends()[name]
    send_events(producer, name, range(600, 900))
    cut = {partition: landed[partition] + 7 for partition in landed}
    delete_records(broker, name, cut)
    found = examine(pipeline)
    assert (found.verdict, found.loses_records) == ("needs_approval", 7 * len(cut)), found
    (finding,) = [finding for finding in found.findings if finding.rule == "retention-passed"]
    assert finding.loses == tuple(LostRange(topic=name, partition=p, start=landed[p], end=cut[p]) for p in sorted(landed))
    refused = starter.start(pipeline).ended(150)
    assert (refused.verdict, refused.error_class) == ("refused", "RetentionPassedError"), refused

    recreate(broker, name)
    wait_until(lambda: examine(pipeline).verdict != "starting", 30, "Kafka to know the new topic")
    found = examine(pipeline)
    assert (found.verdict, found.loses_records) == ("needs_approval", 0), found
    grow(broker, name, {partition: end + 1 for partition, end in cut.items()})
    found = examine(pipeline)
    (finding,) = [finding for finding in found.findings if finding.rule == "topic-recreated"]
    assert (found.verdict, finding.evidence["grown_past"]) == ("needs_approval", True), found
    assert "retention-passed" not in {f.rule for f in found.findings}, "offsets of two incarnations were compared"
    named = ["retention-passed"]
    if LONG_FORM:  # shortly: test_a_topic_that_was_made_anew… in test_recover.py
        refused = starter.start(pipeline).ended(150)
        assert (refused.verdict, refused.error_class) == ("refused", "TopicRecreatedError"), refused
        named.append("topic-recreated")
    refusals = [incident for incident in read_incidents(pipeline.control) if incident != incident_of_the_kill]
    assert sorted(incident.runbook or "" for incident in refusals) == named
    assert pipeline.landed_ends() == {(name, p): end for p, end in landed.items()}, "something was landed all the same"


def grow(broker: Broker, topic: str, ends: dict[int, int]) -> None:
    """Send records until each partition ends there."""
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for partition, end in ends.items():
        for _ in range(end):
            producer.produce(topic, b"{}", partition=partition)
    assert producer.flush(30) == 0


def delete_records(broker: Broker, topic: str, before: dict[int, int]) -> None:
    """Have Kafka delete what lies before these offsets, as retention does."""
    client = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    wanted = [TopicPartition(topic, partition, offset) for partition, offset in before.items()]
    for deleted in client.delete_records(wanted).values():
        deleted.result(timeout=HANGS_SECONDS)


def recreate(broker: Broker, topic: str) -> None:
    """Delete the topic and make it again."""
    client = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    partitions = len(client.list_topics(topic, timeout=30).topics[topic].partitions)
    client.delete_topics([topic])[topic].result(timeout=HANGS_SECONDS)
    wait_until(lambda: topic not in client.list_topics(timeout=30).topics, 30, "the topic to go")
    client.create_topics([NewTopic(topic, num_partitions=partitions, replication_factor=1)])[topic].result(
        timeout=HANGS_SECONDS
    )
