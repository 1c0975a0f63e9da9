"""The doctor of foreign checkpoints asks a real Kafka what it still has."""

from __future__ import annotations

import time
from pathlib import Path

import pyarrow as pa
import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient
from deltalake import CommitProperties, Transaction, write_deltalake
from tests.support.kafka.makers import TopicMaker
from tests.support.waiting import HANGS_SECONDS
from tests.support.worlds.foreign_checkpoints import QUERY, commit, marks, metadata, offsets, with_checksums
from tests.support.worlds.native_streams import produce

from lakebound.inspection.doctor.diagnosis import Diagnosis
from lakebound.inspection.doctor.foreign.doctor import examine_checkpoint
from lakebound.ledger.lost import LostRange
from lakebound.local.broker import Broker

pytestmark = pytest.mark.integration

READ = 60
"""Offsets of each of two partitions that the checkpoint has read."""

DAY_MS = 86_400_000


def examine(folder: Path, topic: str, servers: str, *, planned_at_ms: int | None = None) -> Diagnosis:
    """Write a healthy checkpoint of one batch of the topic, with its table, and ask the doctor."""
    planned = int(time.time() * 1000) if planned_at_ms is None else planned_at_ms
    files = {
        "metadata": metadata(),
        "sources/0/0": b"\0v1\n" + marks({0: 0, 1: 0}, topic).encode(),
        "offsets/0": offsets(0, ends={0: READ, 1: READ}, planned_at_ms=planned, topic=topic),
        "commits/0": commit(),
    }
    for path, content in with_checksums(files).items():
        (folder / "checkpoint" / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / "checkpoint" / path).write_bytes(content)
    properties = CommitProperties(app_transactions=[Transaction(QUERY, 0)])
    write_deltalake(str(folder / "table"), pa.table({"n": [0]}), commit_properties=properties)
    return examine_checkpoint(str(folder / "checkpoint"), [f"delta:{folder / 'table'}"], servers)[0]


def rules(diagnosis: Diagnosis) -> list[str]:
    return [finding.rule for finding in diagnosis.findings]


def test_a_topic_that_is_all_there_is_healthy(topic: TopicMaker, broker: Broker, tmp_path: Path) -> None:
    name = topic("orders", 2)
    produce(broker.bootstrap_servers, name, {0: READ, 1: READ + 7})
    diagnosis = examine(tmp_path, name, broker.bootstrap_servers)
    assert (diagnosis.verdict, diagnosis.findings) == ("healthy", ())
    assert diagnosis.numbers["lag_records"] == 7


def test_retention_that_passed_the_checkpoint_names_what_is_lost(topic: TopicMaker, broker: Broker, tmp_path: Path) -> None:
    name = topic("orders", 2)
    produce(broker.bootstrap_servers, name, {0: READ + 10, 1: READ + 10})
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    for deleted in admin.delete_records([TopicPartition(name, 0, READ + 3)]).values():
        deleted.result(timeout=HANGS_SECONDS)
    diagnosis = examine(tmp_path, name, broker.bootstrap_servers)
    assert (diagnosis.verdict, rules(diagnosis)) == ("needs_approval", ["retention-passed"])
    assert diagnosis.findings[0].loses == (LostRange(topic=name, partition=0, start=READ, end=READ + 3),)


def test_a_new_topic_of_the_same_name_is_seen_even_when_it_has_grown(topic: TopicMaker, broker: Broker, tmp_path: Path) -> None:
    name = topic("orders", 2)
    yesterday = int(time.time() * 1000) - DAY_MS
    produce(broker.bootstrap_servers, name, {0: READ - 1, 1: READ + 50})
    diagnosis = examine(tmp_path, name, broker.bootstrap_servers, planned_at_ms=yesterday)
    assert (diagnosis.verdict, rules(diagnosis)) == ("needs_person", ["stored-offset-beyond-end", "topic-recreated"])
    produce(broker.bootstrap_servers, name, {0: 50})
    diagnosis = examine(tmp_path / "grown", name, broker.bootstrap_servers, planned_at_ms=yesterday)
    assert (diagnosis.verdict, rules(diagnosis)) == ("needs_person", ["topic-recreated"])


def test_a_topic_that_is_gone_is_said(broker: Broker, tmp_path: Path) -> None:
    diagnosis = examine(tmp_path, "no-such-topic", broker.bootstrap_servers)
    assert (diagnosis.verdict, rules(diagnosis)) == ("needs_person", ["topic-gone"])
