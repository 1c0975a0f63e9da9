"""A topic gets each row once, whatever happens to its producer: against a real broker, judged by another consumer."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer
from tests.support.forked_python import run_forked
from tests.support.kafka.makers import TopicMaker
from tests.support.topics import landing
from tests.support.topics.landing import BATCH, SOURCE, TopicLander, positions
from tests.support.topics.reading import assert_once, read_committed
from tests.support.waiting import wait_until

from lakebound.errors import LeaseLostError, TargetNotEmptyError, TopicCommitError
from lakebound.landing.kafka import KafkaFacts
from lakebound.landing.kafka_clients import make_producer
from lakebound.landing.targets.topics import OpenTransaction, open_transactions
from lakebound.landing.to_topics.messages import RowMessage
from lakebound.landing.to_topics.producer import LedgerMessage
from lakebound.landing.to_topics.stable import settled_ends
from lakebound.landing.to_topics.target import TopicTarget
from lakebound.landing.topic_check import look_at_target_topics
from lakebound.ledger.entry import Entry
from lakebound.local.broker import Broker
from lakebound.spec.connection import ConnectionSpec
from lakebound.spec.pipeline import PipelineSpec

pytestmark = pytest.mark.integration

STEPS = ("topic_begun", "topic_rows_sent", "topic_delivered", "after_commit/topic")


class Interrupted:
    """A producer whose next commit is answered by a timeout, whether Kafka has done it or not."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._client = make_producer(config)
        self.commits_before_timeout: bool | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def commit_transaction(self, timeout: float) -> None:
        how, self.commits_before_timeout = self.commits_before_timeout, None
        if how is not False:
            self._client.commit_transaction(timeout)
        if how is not None:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "the answer was lost"))


def test_killed_at_each_step_of_a_transaction_every_row_is_there_once(
    tmp_path: Path, broker: Broker, topic: TopicMaker
) -> None:
    name = topic("killed")
    for epoch, step in enumerate(STEPS, 1):
        # In the second batch: genesis and open send no rows, but pass the steps of a transaction, too.
        nth = 2 if step.endswith("/topic") else (4 if epoch == 1 else 3)
        killed = run(tmp_path, broker, name, epoch, 3, f"kill@{step}#{nth}")
        assert killed == -signal.SIGKILL, f"not killed at {step}"

    last = TopicLander(tmp_path, broker.bootstrap_servers, name, len(STEPS) + 1)
    # One batch of each application, and the second of the one that was killed after its commit.
    assert last.next_offset == BATCH * (len(STEPS) + 1)
    last.land(last.next_offset, last.next_offset + BATCH)

    messages = read_committed(broker.bootstrap_servers, name)
    assert_once(messages, positions(0, last.next_offset))
    assert {message.key: message.value for message in messages} == {
        str(n).encode(): f'{{"number":{n}}}'.encode() for n in range(last.next_offset)
    }
    told = last.target.scan_sources({SOURCE: "source-id"})
    assert told is not None
    assert sorted(told["offset"].to_pylist()) == list(range(last.next_offset))
    assert last.target.totals is not None
    assert last.target.totals.rows == len(messages)


@pytest.mark.parametrize("was_done", [True, False])
def test_after_an_unknown_outcome_the_ledger_decides(was_done: bool, tmp_path: Path, broker: Broker, topic: TopicMaker) -> None:
    name, made = topic("unknown"), []

    def make(config: Mapping[str, Any]) -> Interrupted:
        made.append(Interrupted(config))
        return made[-1]

    app = TopicLander(tmp_path, broker.bootstrap_servers, name, 1, make)
    app.land(0, 10)
    made[-1].commits_before_timeout = was_done

    committed = app.land(10, 20)

    assert (committed.attempts, len(made)) == (1 if was_done else 2, 2)
    app.land(20, 30)
    assert_once(read_committed(broker.bootstrap_servers, name), positions(0, 30))


def test_a_zombie_is_fenced_and_does_not_fence_its_successor(tmp_path: Path, broker: Broker, topic: TopicMaker) -> None:
    name = topic("zombie")
    zombie = TopicLander(tmp_path, broker.bootstrap_servers, name, 1)
    zombie.land(0, 10)
    successor = TopicLander(tmp_path, broker.bootstrap_servers, name, 2)
    successor.land(10, 20)

    with pytest.raises(LeaseLostError):
        zombie.land(10, 20)

    # A zombie that holds itself for the owner fences the successor, and then finds a later epoch in the ledger.
    zombie.lease.write_text("1")
    with pytest.raises(LeaseLostError):
        zombie.land(10, 20)
    zombie.lease.write_text("2")
    assert successor.land(20, 30).attempts == 2
    assert_once(read_committed(broker.bootstrap_servers, name), positions(0, 30))

    # As if who looked for it had not seen an entry yet: what has landed is not forgotten.
    successor.target.create(successor.target.schema(), Entry(kind="genesis", pipeline=successor.pipeline, epoch=2, commit="c"))
    assert successor.target.read_ledger() == successor.view


def test_a_topic_with_messages_and_without_an_entry_is_refused(tmp_path: Path, broker: Broker, topic: TopicMaker) -> None:
    name = topic("foreign")
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    producer.produce(name, b"somebody else's")
    assert producer.flush(30) == 0

    with pytest.raises(TargetNotEmptyError):
        TopicLander(tmp_path, broker.bootstrap_servers, name, 1)


def test_who_only_looks_fences_nobody(tmp_path: Path, broker: Broker, topic: TopicMaker) -> None:
    app = TopicLander(tmp_path, broker.bootstrap_servers, topic("looked"), 1)
    app.land(0, 10)

    looking = TopicTarget(app.spec, app.pipeline, ConnectionSpec(bootstrap_servers=broker.bootstrap_servers))

    assert looking.read_ledger() == app.view
    assert [found.entry.kind for found in looking.entries()] == ["land", "open", "genesis"]
    assert app.land(10, 20).attempts == 1


def test_an_open_transaction_is_found_where_its_readers_wait(broker: Broker, topic: TopicMaker) -> None:
    name, connection = topic("open", partitions=1), ConnectionSpec(bootstrap_servers=broker.bootstrap_servers)
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": name})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(name, b"open", timestamp=1_000_000)
    assert producer.flush(30) == 0

    # A question that Kafka does not answer is asked again at the doctor's next look; a new topic's first one may be such.
    expected = [OpenTransaction(name, 0, 0, 1, 1_000_000)]
    wait_until(lambda: list(open_transactions(connection, name)) == expected, 30, "the open transaction is found")

    producer.abort_transaction(30)
    # The end that is waited for may be taken before the marker of the abort, or after it.
    assert settled_ends(KafkaFacts(connection), name) in ({0: 1}, {0: 2})
    assert list(open_transactions(connection, name)) == []


def test_a_compacted_topic_takes_no_row_without_a_key_and_is_not_compared(
    tmp_path: Path, broker: Broker, topic: TopicMaker
) -> None:
    name, plain = topic("compacted", config={"cleanup.policy": "compact,delete"}), topic("plain")
    connection = ConnectionSpec(bootstrap_servers=broker.bootstrap_servers)
    settings = KafkaFacts(connection).written_settings([name, plain])
    assert (settings[name].is_compacted, settings[plain].is_compacted) == (True, False)
    body = {
        "pipeline": "p",
        "topics": ["in"],
        "connection": {"bootstrap_servers": broker.bootstrap_servers},
        "value": {"format": "json", "schema": "number BIGINT"},
        "freshness": "1s",
        "to_topics": [{"topic": plain}, {"topic": name}],
    }
    spec = PipelineSpec.model_validate(body)
    [problem] = look_at_target_topics(spec)
    assert problem.keys == ("to_topics", 1) and f"topic {name} is compacted" in problem.what

    app = TopicLander(tmp_path, broker.bootstrap_servers, name, 1)
    app.land(0, 10)
    assert app.target.scan_sources({SOURCE: "source-id"}) is None, "a superseded row is no lost one"

    row, entry = RowMessage(None, b"{}", b"source/0/10/0"), LedgerMessage(b"k", b"v")
    with pytest.raises(TopicCommitError, match="name a 'key' in to_topics"):
        app.producer.commit(app.producer.ready(), app.spec.id, name, [row], entry)


def run(home: Path, broker: Broker, topic: str, epoch: int, batches: int, faults: str) -> int:
    """Run an application of its own process group to its end: its exit code."""
    command = [landing.__file__, str(home), broker.bootstrap_servers, topic, str(epoch), str(batches)]
    return run_forked(command, {**os.environ, "LAKEBOUND_FAULTS": faults}, home / "log", timeout_seconds=120)
