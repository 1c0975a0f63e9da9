"""From a topic to a pipeline, with the command line alone: the topic is made, the files are written, checked and tried."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from tests.support.kafka.makers import TopicMaker
from tests.support.streams.command_line import ORDERS, answer, lakebound, settings
from tests.support.streams.long_form import LONG_FORM

from lakebound.local.broker import Broker
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
    return len(AdminClient({"bootstrap.servers": broker.bootstrap_servers}).list_topics(timeout=30).topics[topic].partitions)


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
    assert (columns["id"], columns["twice"], table["partition_by"]) == ("STRING", "INT", ["truncate(10, n)"])
    assert (table["rows"][0]["id"], table["rows"][0]["twice"]) == ("a8", 16)
    assert files_of(home) == []


def payment(number: int) -> dict[str, object]:
    """A payment with all that is to be recognised: money, times of several kinds, nested values, what may be null."""
    return {
        "payment_id": f"p-{number:05d}",
        "amount": round(number * 1.07, 2),
        "created_at": 1_767_225_600_000 + number,
        "seen_at": 1_767_225_600 + number,
        "booked_at": f"2026-01-01T10:{number % 60:02d}:00Z",
        "due_date": "2026-02-28",
        "status": ("open", "paid")[number % 2],
        "merchant": {"name": "M", "country": None if number % 3 else "DE"},
        "items": [{"sku": "a", "price": 1.25, "quantity": number}] if number % 4 else [],
        **({"note": "x"} if number % 5 == 0 else {}),
    }


EXPECTED = """\
    payment_id STRING NOT NULL,
    amount DECIMAL(18,2) NOT NULL,
    created_at BIGINT NOT NULL,
    seen_at TIMESTAMP NOT NULL,
    booked_at TIMESTAMP NOT NULL,
    due_date DATE NOT NULL,
    status STRING NOT NULL,
    merchant STRUCT<name: STRING, country: STRING> NOT NULL,
    items ARRAY<STRUCT<sku: STRING, price: DECIMAL(18,2), quantity: BIGINT>> NOT NULL,
    note STRING
"""


def test_a_topic_becomes_a_pipeline_that_is_right_and_lands_its_records(
    home: Settings, broker: Broker, topic: TopicMaker
) -> None:
    name = topic("payments", partitions=2)
    send(broker, name, *(json.dumps(payment(number)).encode() for number in range(60)), b"{")
    made = answer("new", "payments", "--from-topic", name)
    yaml_file, transform, expectations, test = (Path(path) for path in made["files"])
    assert made["records"] == 61
    assert EXPECTED in yaml_file.read_text()
    assert "created_at: is a number of epoch milliseconds" in " ".join(made["notes"])
    assert '"created_at": from_epoch("created_at", "milliseconds")' in transform.read_text()
    assert "unique_over_window" in expectations.read_text()
    assert '"open", "paid"' in expectations.read_text()

    assert answer("check", "payments", "--static")["ok"]
    if LONG_FORM:  # shortly: test_the_page_can_be_followed in test_getting_started.py checks a new pipeline
        checked = answer("check", "payments")
        assert checked["ok"], checked
        assert "created_at: TIMESTAMP" in checked["tables"]["payments"]["delta:lake.payments"]

    if LONG_FORM:  # shortly: its test below lands such records, and what a trial says is in the test above
        tried = answer("try", "payments", "--from-beginning")
        assert [tried[key] for key in ("read", "landed", "rows", "bad", "problems")] == [61, 60, 60, 1, []]
        row = tried["tables"]["delta:lake.payments"]["rows"][1]
        assert (row["created_at"], row["amount"]) == ("2026-01-01 00:00:00.001000+00:00", "1.07")
    assert files_of(home) == []

    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", str(test)], capture_output=True, text=True, cwd=home.home.parent
    )
    assert "2 passed" in done.stdout, done.stdout

    if LONG_FORM:  # shortly: what a stream says of a transform that raises, in tests/spark/test_transform_errors.py
        written = transform.read_text()
        failing = written.replace('from_epoch("created_at", "milliseconds")', 'functions.to_date("created_at")')
        transform.write_text(failing.replace("import DataFrame", "import DataFrame, functions"))
        assert "CAST_INVALID_INPUT" in answer("try", "payments", "--from-beginning", code=1)["problems"][0]
        transform.write_text(written)

    before = {path: path.read_bytes() for path in (yaml_file, transform, expectations, test)}
    for path in before:
        others = [other for other in before if other != path]
        for other in others:
            other.rename(other.with_suffix(".away"))
        assert f"these files exist already: {path}" in lakebound("new", "payments", code=1).stderr
        assert not any(other.exists() for other in others), "all files are written, or none"
        for other in others:
            other.with_suffix(".away").rename(other)
    assert {path: path.read_bytes() for path in before} == before


def test_what_is_no_json_and_what_is_not_there_yet_become_pipelines_too(
    home: Settings, broker: Broker, topic: TopicMaker
) -> None:
    name = topic("raw", partitions=1)
    assert "there are no records in" in lakebound("new", "raw", "--from-topic", name, code=1).stderr
    send(broker, name, b"\x00\x01", b"text")
    lakebound("new", "raw", "--from-topic", name)
    lakebound("new", "later", "--like", "raw")
    assert "is not a pipeline name" in lakebound("new", "Two Words", code=2).stderr
    assert "is not on the broker" in lakebound("new", "none", "--from-topic", "there-is-none", code=1).stderr
    assert lakebound("check", "--static").stdout == "later: valid\nraw: valid\n"
    assert "format: bytes" in (home.pipelines / "raw.yaml").read_text()
    assert "bootstrap_servers: ${LAKEBOUND_KAFKA}" in (home.pipelines / "later.yaml").read_text()


def test_a_compacted_topic_with_a_registry_is_said_to_be_so(home: Settings, broker: Broker, topic: TopicMaker) -> None:
    name = topic("ids", config={"cleanup.policy": "compact"})
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for number in range(5):
        producer.produce(name, b"\x00\x00\x00\x00\x07avro", key=str(number))
    assert producer.flush(30) == 0
    notes = answer("new", "payments", "--from-topic", name)["notes"]
    compacted, registries, framed = notes
    assert compacted.startswith("the topic is compacted (cleanup.policy)")
    assert "registries.yaml names these registries" in registries
    assert framed.startswith("5 records begin with a byte 0 and the id of a schema in four bytes (schema id 7)")
    assert lakebound("check", "payments", "--static").stdout == "payments: valid\n"
