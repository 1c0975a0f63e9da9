"""From a topic to a pipeline, with the command line alone: the topic is made, the files are written, checked and tried."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
import yaml
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from tests.support.kafka.makers import TopicMaker
from tests.support.streams.command_line import ORDERS, answer, lakebound, settings
from tests.support.streams.long_form import LONG_FORM

from lakebound.landing.kafka import KafkaFacts
from lakebound.ledger.entry import Entry, TopicOffsets, new_commit_id
from lakebound.local.broker import Broker
from lakebound.settings import Settings
from lakebound.spec.connection import ConnectionSpec
from lakebound.spec.pipeline import PipelineSpec
from lakebound.tables.datafiles import write_data_files
from lakebound.tables.declared import owned_pipeline
from lakebound.tables.places import places_of
from lakebound.tables.table import KAFKA_TYPE, open_table
from lakebound_spark.batch.targets import Counts, Target, Writer

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


@pytest.mark.parametrize("table_format", ["delta", "iceberg"])
def test_a_trial_against_what_has_landed_shows_what_new_code_changes(
    table_format: str, home: Settings, broker: Broker, topic: TopicMaker
) -> None:
    """The table has the rows of the first 15 records, of which the pipeline filtered one."""
    name = topic("landed", partitions=1)
    send(broker, name, *(f'{{"id": "a{n}", "n": {n}}}'.encode() for n in range(20)))
    body = ORDERS | {"topics": [name], "value": {"format": "json", "schema": "id STRING NOT NULL, n INT"}}
    body |= {"transform": "transforms.orders.clean", "tables": [{"format": table_format, "name": "lake.orders"}]}
    body["connection"] = {"bootstrap_servers": "${LAKEBOUND_KAFKA}"}
    (home.pipelines / "orders.yaml").write_text(yaml.safe_dump(body))
    (home.apps / "transforms" / "orders.py").write_text(TRANSFORM)
    assert (
        "no table of the pipeline is there yet: nothing was compared" in lakebound("try", "orders", "--against-landed").stdout
    )

    spec = owned_pipeline("orders", home)
    land_by_hand(spec, home, broker, [(n, {"id": f"a{n}", "n": n, "twice": 2 * n}) for n in range(15) if n != 7], until=15)
    before = files_of(home)
    same = answer("try", "orders", "--against-landed")
    assert same["ranges"] == [[name, 0, 0, 15]], "the records that have not landed are not read"
    assert [same["against"][key] for key in ("same", "different", "no_longer", "new", "columns")] == [14, 0, 0, 0, {}]

    (home.apps / "transforms" / "orders.py").write_text(
        TRANSFORM.replace("n <> 7", "n <> 3").replace('F.col("n") * 2', "F.expr('if(n > 12, null, 2 * n)')")
    )
    told = lakebound("try", "orders", "--against-landed").stdout
    assert f"{table_format}:lake.orders: 11 are the same, 2 differ, 1 would not land any more, 1 did not land" in told
    assert "twice: 2 rows change, 2 of them to null" in told and "offset 13: 26 -> null" in told
    assert files_of(home) == before


def land_by_hand(
    spec: PipelineSpec, home: Settings, broker: Broker, rows: list[tuple[int, dict[str, object]]], until: int
) -> None:
    """Make the pipeline's table, and land rows of its topic's first partition, each with its offset."""
    (one,), [name] = spec.tables, spec.topics
    topic_id = KafkaFacts(ConnectionSpec(bootstrap_servers=broker.bootstrap_servers)).topics(spec.topics)[name].topic_id
    table = open_table(one, places_of(home, spec.warehouse))
    schema = pa.schema([("id", pa.string()), ("n", pa.int32()), ("twice", pa.int32()), ("_kafka", KAFKA_TYPE)])
    table.create(schema, Entry(kind="genesis", pipeline=spec.pipeline, epoch=0, commit=new_commit_id()))
    place = {"topic": name, "topic_id": topic_id, "partition": 0, "timestamp": 0, "ordinal": 0}
    made = pa.Table.from_pylist([{**row, "_kafka": {**place, "offset": at}} for at, row in rows], schema=schema)
    writer = Writer(spec.pipeline, 1, lambda: None, attempts=3)
    target = Target(table, table.read_ledger())
    target.commit(writer, {}, Counts(), [], kind="open")
    landed = {name: TopicOffsets(topic_id=topic_id, partitions={0: ((0, until),)})}
    counts = Counts(read=until, landed=len(rows), filtered=until - len(rows), rows=len(rows))
    target.commit(writer, landed, counts, write_data_files(made, table.layout(), "batch-1"))


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
