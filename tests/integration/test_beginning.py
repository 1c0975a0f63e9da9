"""From a topic to a pipeline, with the command line alone: the topic is made, the files are written, checked and tried."""

from __future__ import annotations

import pytest
import yaml
from confluent_kafka.admin import AdminClient
from tests.command_line import ORDERS, answer, lakebound, settings

from lakebound.embedded.broker import Broker
from lakebound.settings import Settings

__all__ = ["settings"]
pytestmark = pytest.mark.integration


@pytest.fixture
def home(settings: Settings, broker: Broker, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Places of the test's own, beside the shared broker."""
    monkeypatch.setenv("LAKEBOUND_KAFKA", broker.bootstrap_servers)
    (settings.pipelines / "orders.yaml").unlink()
    return settings


def partitions(broker: Broker, topic: str) -> int:
    return len(AdminClient({"bootstrap.servers": broker.bootstrap_servers}).list_topics(timeout=10).topics[topic].partitions)


def test_a_topic_is_created_once(home: Settings, broker: Broker) -> None:
    assert answer("create-topic", "made-a", "--partitions", "3") == [{"topic": "made-a", "partitions": 3, "is_new": True}]
    assert partitions(broker, "made-a") == 3
    told = lakebound("create-topic", "made-a", "--partitions", "7").stdout
    assert told == "made-a: exists already, nothing was changed; 3 partitions\n"
    assert partitions(broker, "made-a") == 3
    refused = lakebound("create-topic", "made b", code=1).stderr
    assert refused.startswith("lakebound: topic 'made b' was not created on the broker at")


def test_a_pipelines_missing_topics_are_created_on_its_broker(
    home: Settings, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = ORDERS | {"topics": ["made-c", "made-d"], "connection": {"bootstrap_servers": broker.bootstrap_servers}}
    (home.pipelines / "orders.yaml").write_text(yaml.safe_dump(body))
    monkeypatch.setenv("LAKEBOUND_KAFKA", "127.0.0.1:1")
    assert "made-c: created" in lakebound("create-topic", "made-c").stdout, "the broker is that of the pipeline that reads it"
    assert [one["is_new"] for one in answer("create-topic", "--pipeline", "orders", "--partitions", "2")] == [False, True]
    assert partitions(broker, "made-d") == 2
