"""The look at fields that the schema does not name, at a real broker: newest records, of transactions those that count."""

from __future__ import annotations

import json

import pytest
from confluent_kafka import Producer
from tests.support.kafka.makers import TopicMaker
from tests.support.streams.stand_ins import ORDERS

from lakebound.alerts.field_look import Bounds, newest_values
from lakebound.local.broker import Broker
from lakebound.spec.draft.unknown_fields import unknown_fields
from lakebound.spec.pipeline import PipelineSpec

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
