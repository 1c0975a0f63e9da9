"""From a topic to a pipeline, with the command line alone: the topic is made, the files are written, checked and tried."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import yaml
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from tests.command_line import ORDERS, answer, lakebound, settings
from tests.conftest import TopicMaker

from lakebound.embedded.broker import Broker
from lakebound.settings import Settings

__all__ = ["settings"]
pytestmark = pytest.mark.integration

APPLICATIONS = Path(__file__).parents[2] / "spark_apps"


@pytest.fixture
def home(settings: Settings, broker: Broker, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Places of the test's own, beside the shared broker; the folder of applications is as in the repository."""
    monkeypatch.setenv("LAKEBOUND_KAFKA", broker.bootstrap_servers)
    (settings.pipelines / "orders.yaml").unlink()
    for application in APPLICATIONS.glob("*.py"):
        shutil.copy(application, settings.apps)
    (settings.apps / "transforms" / "__init__.py").touch()
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


TRANSFORM = """
from pyspark.sql import functions as F

def clean(orders):
    return orders.where("n <> 7").withColumn("twice", F.col("n") * 2)
"""


def send(broker: Broker, topic: str, *values: bytes | None) -> None:
    """Produce records, all to partition 0."""
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for value in values:
        producer.produce(topic, value, partition=0)
    assert producer.flush(30) == 0


def files_of(settings: Settings) -> list[Path]:
    """Return all that was written below the places of state and tables."""
    return sorted(path for folder in (settings.home, settings.warehouse) if folder.exists() for path in folder.rglob("*"))


def test_a_trial_says_what_would_land_and_writes_nothing(home: Settings, broker: Broker, topic: TopicMaker) -> None:
    name = topic("tried", partitions=2)
    send(broker, name, *(f'{{"id": "a{n}", "n": {n}}}'.encode() for n in range(20)), b'{"id": "b", "n": "x"}', b"{", None)
    value = {"format": "json", "schema": "id STRING NOT NULL, n INT"}
    tables = [{"format": "iceberg", "name": "lake.orders", "partition_by": ["truncate(10, n)"]}]
    body = ORDERS | {"topics": [name], "value": value, "transform": "transforms.orders.clean", "tables": tables}
    body["connection"] = {"bootstrap_servers": "${LAKEBOUND_KAFKA}"}
    (home.pipelines / "orders.yaml").write_text(yaml.safe_dump(body))
    (home.apps / "transforms" / "orders.py").write_text(TRANSFORM)
    found = answer("try", "orders", "--records", "15", "--rows", "1")
    assert found["ranges"] == [[name, 0, 8, 23]], "the newest, of the partition that has some"
    assert [found[key] for key in ("read", "landed", "filtered", "bad", "rows", "problems")] == [15, 12, 0, 3, 12, []]
    examples = {one["reason"]: one["examples"][0] for one in found["reasons"]}
    assert {reason: example["offset"] for reason, example in examples.items()} == {
        "does_not_fit": 20,
        "malformed_json": 21,
        "null_value": 22,
    }
    assert examples["does_not_fit"]["error"] == "n: 'x' is not an INT"
    table = found["tables"]["iceberg:lake.orders"]
    columns = dict(table["columns"])
    assert (columns["id"], columns["twice"], table["partition_by"]) == ("string", "int32", ["truncate(10, n)"])
    assert (table["rows"][0]["id"], table["rows"][0]["twice"]) == ("a8", 16)
    assert files_of(home) == []
