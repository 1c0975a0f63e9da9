"""The look at fields that the schema does not name, at a real broker: newest records, of transactions those that count."""

from __future__ import annotations

import json
import subprocess
import sys
import time

import pytest
import yaml
from confluent_kafka import Producer
from tests.support.kafka.makers import TopicMaker
from tests.support.streams.command_line import lakebound, settings
from tests.support.streams.stand_ins import ORDERS

from lakebound.alerts import doctor_look
from lakebound.alerts.field_look import SOURCE, Bounds, newest_values
from lakebound.control.findings import read_source
from lakebound.control.folder import ControlFolder
from lakebound.control.submission import Submission, write_submission
from lakebound.local.broker import Broker
from lakebound.settings import Settings
from lakebound.spec.draft.unknown_fields import unknown_fields
from lakebound.spec.pipeline import PipelineSpec

__all__ = ["settings"]
pytestmark = pytest.mark.integration


def spec_of(broker: Broker, topic: str) -> PipelineSpec:
    connection = {"bootstrap_servers": broker.bootstrap_servers}
    value = {"format": "json", "schema": "id BIGINT"}
    return PipelineSpec.model_validate({**ORDERS, "topics": [topic], "connection": connection, "value": value})


def test_the_newest_records_that_are_committed_are_read(broker: Broker, topic: TopicMaker) -> None:
    spec = spec_of(broker, topic("fields", partitions=3))
    assert newest_values(spec) == []

    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": spec.topics[0]})
    producer.init_transactions()
    for name, count, is_kept in (("old", 900, True), ("discount", 300, True), ("gone", 20, False)):
        producer.begin_transaction()
        for number in range(count):
            producer.produce(spec.topics[0], json.dumps({"id": number, name: 1.5}), partition=number % 3)
        producer.commit_transaction() if is_kept else producer.abort_transaction()

    values = newest_values(spec)

    assert 100 <= len(values) <= Bounds().records
    assert [(one.path, one.type) for one in unknown_fields(values, spec.value)] == [("discount", "DECIMAL(18,2)")]


def test_the_watchs_look_names_a_field_until_the_yaml_does(settings: Settings, broker: Broker, topic: TopicMaker) -> None:
    spec, control = spec_of(broker, topic("fields")), ControlFolder(settings.home, "orders")
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    producer.produce(spec.topics[0], b'{"id": 1, "note": "SECRET"}')
    assert producer.flush(30) == 0
    write_submission(control, Submission(app_id="orders-g0-1", submitted_at=time.time() - 600))

    def looked(**value: object) -> str:
        body = spec.model_dump(mode="json", by_alias=True, exclude_unset=True)
        body["value"] = {"format": "json", "schema": "id BIGINT", **value}
        (settings.pipelines / "orders.yaml").write_text(yaml.safe_dump(body))
        subprocess.run([sys.executable, "-m", doctor_look.__name__, "60", "orders"], check=True)  # the kernel ends it when late
        found = read_source(control, SOURCE)
        return "".join(one.what for one in found.findings) if found is not None else ""

    assert "`note STRING`" in looked()
    assert "`note STRING`" in (said := lakebound("status", "orders").stdout) and "SECRET" not in said
    assert looked(ignored_fields=["note"]) == "" and "note STRING" not in lakebound("status", "orders").stdout
    assert looked(schema="id BIGINT, note STRING") == ""
