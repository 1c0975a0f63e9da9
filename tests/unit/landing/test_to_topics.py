"""Topics as targets, without a broker: messages, ledger records, what errors mean, and when a producer is made or given up."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import KafkaError, KafkaException

from lakebound.errors import (
    BadEntryError,
    BrokerUnavailableError,
    CommitRefusedError,
    KafkaForbiddenError,
    LakeboundError,
    LeaseLostError,
    TableMismatchError,
    TargetRecreatedError,
    TopicCommitError,
)
from lakebound.landing.to_topics.ledger_record import TargetTotals, decode_record, encode_record
from lakebound.landing.to_topics.messages import JSON_COLUMN, RowMessage, compaction_problem, messages_of, staged_schema
from lakebound.landing.to_topics.outcomes import transaction_error
from lakebound.landing.to_topics.producer import TRANSACTION_SECONDS, LedgerMessage, TopicProducer, producer_config
from lakebound.landing.to_topics.scan import Source, source_of
from lakebound.landing.to_topics.target import check_target_ids
from lakebound.ledger.entry import Entry, encode
from lakebound.spec.connection import ConnectionSpec
from lakebound.spec.to_topics import ToTopicSpec
from lakebound.tables.entries import MAX_ENTRY_BYTES
from lakebound.tables.outages import passes
from lakebound.tables.table import KAFKA_TYPE

CONNECTION = ConnectionSpec(bootstrap_servers="kafka:9092")
ENTRY = Entry(kind="land", pipeline="orders", epoch=3, commit="c", read=9, filtered=2, landed=4, quarantined=3, rows=8)
KAFKA = {"topic": "a-b", "topic_id": "i", "partition": 3, "offset": 12, "timestamp": None, "ordinal": 1}


def rows(**columns: pa.Array) -> pa.RecordBatch:
    return pa.record_batch({**columns, "_kafka": pa.array([KAFKA], KAFKA_TYPE), JSON_COLUMN: pa.array(['{"é":1}'])})


@pytest.mark.parametrize(
    ("values", "key"),
    [
        (pa.array(["é"]), "é".encode()),
        (pa.array([b"\xff"]), b"\xff"),
        (pa.array([-7], pa.int32()), b"-7"),
        (pa.array([None], pa.string()), None),
        (pa.array([None], pa.int64()), None),
    ],
)
def test_a_row_is_a_message_with_the_position_of_its_record(values: pa.Array, key: bytes | None) -> None:
    assert list(messages_of(rows(id=values), "id")) == [RowMessage(key, '{"é":1}'.encode(), b"a-b/3/12/1")]
    assert list(messages_of(rows(id=values), None)) == [RowMessage(None, '{"é":1}'.encode(), b"a-b/3/12/1")]


def test_a_part_of_a_batch_is_its_own_rows() -> None:
    both = pa.Table.from_batches([rows(id=pa.array([1])), rows(id=pa.array([2]))]).combine_chunks().to_batches()[0]
    assert [message.key for message in messages_of(both.slice(1), "id")] == [b"2"]


@pytest.mark.parametrize(
    ("key", "kind", "difference"),
    [
        ("other", pa.string(), "is not a column of the rows, which have id"),
        ("_kafka", pa.string(), "is not a column"),
        ("id", pa.float64(), "of type DOUBLE; a key is text, bytes or a whole number"),
    ],
)
def test_a_column_that_cannot_be_a_key_is_refused(key: str, kind: pa.DataType, difference: str) -> None:
    output = pa.schema([pa.field("id", kind), pa.field("_kafka", KAFKA_TYPE), pa.field(JSON_COLUMN, pa.string())])
    with pytest.raises(TableMismatchError, match=difference):
        staged_schema(ToTopicSpec(topic="out", key=key), output)


def test_a_ledger_record_is_an_entry_with_the_sums_of_all() -> None:
    totals = TargetTotals(topic_id="i", rows=100, read=50).plus(ENTRY)

    found = decode_record(encode_record(ENTRY, totals), 7, 1000, "ledger")

    assert (found.entry, found.totals, found.offset) == (ENTRY, totals, 7)
    assert (totals.rows, totals.read, totals.filtered, totals.landed, totals.quarantined) == (108, 59, 2, 4, 3)


@pytest.mark.parametrize("value", [None, b"", b"\xff", b"{}", b"[]", encode(ENTRY).encode()])
def test_a_record_that_is_no_entry_of_a_topic_is_not_taken_for_one(value: bytes | None) -> None:
    with pytest.raises(BadEntryError, match="ledger, offset 7"):
        decode_record(value, 7, 1000, "ledger")


@pytest.mark.parametrize(
    ("code", "kind", "is_passing"),
    [
        (KafkaError._FENCED, CommitRefusedError, True),
        (KafkaError.INVALID_PRODUCER_EPOCH, CommitRefusedError, True),
        (KafkaError.INVALID_PRODUCER_ID_MAPPING, CommitRefusedError, True),
        (KafkaError._TIMED_OUT, BrokerUnavailableError, True),
        (KafkaError.COORDINATOR_NOT_AVAILABLE, BrokerUnavailableError, True),
        (KafkaError._STATE, BrokerUnavailableError, True),
        (KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, KafkaForbiddenError, False),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaForbiddenError, False),
        (KafkaError.MSG_SIZE_TOO_LARGE, TopicCommitError, False),
        (KafkaError.INVALID_RECORD, TopicCommitError, False),
        (KafkaError.INVALID_TRANSACTION_TIMEOUT, TopicCommitError, False),
        (KafkaError.POLICY_VIOLATION, TopicCommitError, False),
        (KafkaError.UNSUPPORTED_COMPRESSION_TYPE, TopicCommitError, False),
        (KafkaError.UNSUPPORTED_VERSION, TopicCommitError, False),
        (KafkaError._UNSUPPORTED_FEATURE, TopicCommitError, False),
    ],
)
def test_what_an_error_means_for_the_next_attempt(code: int, kind: type[LakeboundError], is_passing: bool) -> None:
    error = transaction_error(CONNECTION, KafkaError(code, "said"), "topic:out", "out", "lakebound.orders")
    assert isinstance(error, kind)
    assert passes(error) == is_passing


@pytest.mark.parametrize(
    ("code", "what"),
    [
        (KafkaError.INVALID_RECORD, "said; a compacted topic .* name a 'key' in to_topics"),
        (KafkaError.INVALID_TRANSACTION_TIMEOUT, f"transaction.max.timeout.ms .* to {round(TRANSACTION_SECONDS * 1000)} "),
        (KafkaError.UNSUPPORTED_COMPRESSION_TYPE, producer_config(CONNECTION, "orders", [1])["compression.type"]),
    ],
)
def test_what_kafka_would_refuse_again_is_told_with_what_to_do(code: int, what: str) -> None:
    error = transaction_error(CONNECTION, KafkaError(code, "said"), "topic:out", "out", "lakebound.orders")
    assert error.is_refusal and re.search(what, str(error))


@pytest.mark.parametrize(("key", "is_compacted", "is_refused"), [(None, True, True), (None, False, False), ("id", True, False)])
def test_a_compacted_topic_needs_a_key(key: str | None, is_compacted: bool, is_refused: bool) -> None:
    problem = compaction_problem(ToTopicSpec(topic="out", key=key), is_compacted=is_compacted)
    assert (problem is not None) == is_refused
    assert problem is None or ("topic out is compacted" in problem and "name a column as 'key'" in problem)


def test_keys_go_where_kafkas_own_client_sends_them_and_no_two_pipelines_fence_each_other() -> None:
    config = producer_config(CONNECTION, "orders", [5_000, 900_000])
    assert (config["partitioner"], config["transactional.id"]) == ("murmur2_random", "lakebound.orders")
    assert (config["batch.size"], config["message.max.bytes"]) == (5_000, MAX_ENTRY_BYTES)


class FakeClient:
    """Notes what is asked of it; fails where it is told to."""

    def __init__(self, said: list[str], fails_at: str | None) -> None:
        self._said, self._fails_at = said, fails_at
        self._on_delivery: Any = None

    def init_transactions(self, timeout: float) -> None:
        self._do("init")

    def begin_transaction(self) -> None:
        self._do("begin")

    def produce(self, topic: str, **message: Any) -> None:
        self._do(f"produce {topic}")
        self._on_delivery = message.get("on_delivery", self._on_delivery)

    def flush(self, timeout: float) -> int:
        self._do("flush")
        self._on_delivery(None, self)
        return 0

    def offset(self) -> int:
        return 42

    def commit_transaction(self, timeout: float) -> None:
        self._do("commit")

    def purge(self) -> None:
        self._said.append("purge")

    def _do(self, step: str) -> None:
        self._said.append(step)
        if step == self._fails_at:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "failed"))


class World:
    """A producer over fake clients, and what was said to them and asked of the lease."""

    def __init__(self, fails_at: str | None = None, has_lease: bool = True) -> None:
        self.said: list[str] = []
        self.fails_at, self.has_lease = fails_at, has_lease
        self.producer = TopicProducer(CONNECTION, "orders", self._check_lease, [1_000], self._make)

    def commit(self, generation: int) -> int:
        return self.producer.commit(generation, "topic:out", "out", [RowMessage(b"k", b"v", b"s")], LedgerMessage(b"t", b"e"))

    def _check_lease(self) -> None:
        self.said.append("lease")
        if not self.has_lease:
            raise LeaseLostError("orders", 1, 2)

    def _make(self, config: Mapping[str, Any]) -> FakeClient:
        return FakeClient(self.said, self.fails_at)


def test_rows_and_entry_are_one_transaction() -> None:
    world = World()
    assert world.commit(world.producer.ready()) == 42
    assert world.said == [
        *("lease", "init", "begin", "produce out", "produce _lakebound_ledger.orders", "flush", "commit"),
    ]


@pytest.mark.parametrize("step", ["begin", "produce out", "produce _lakebound_ledger.orders", "flush", "commit"])
def test_after_any_failure_nothing_is_sent_before_the_lease_was_asked_and_a_new_producer_made(step: str) -> None:
    world = World(fails_at=step)
    first = world.producer.ready()
    with pytest.raises(BrokerUnavailableError):
        world.commit(first)
    assert world.said[-2:] == [step, "purge"]
    with pytest.raises(CommitRefusedError):
        world.commit(first)

    world.said.clear()
    world.fails_at = None
    second = world.producer.ready()

    assert world.said == ["lease", "init"]
    with pytest.raises(CommitRefusedError):
        world.commit(first)  # of another target, whose ledger was read with the producer before
    assert world.commit(second) == 42


def test_without_the_lease_no_producer_is_made_which_would_fence_the_owners() -> None:
    world = World(has_lease=False)
    with pytest.raises(LeaseLostError):
        world.producer.ready()
    assert world.said == ["lease"]


@pytest.mark.parametrize("name", ["", "a b", "..", "_lakebound_ledger.orders"])
def test_a_topic_that_cannot_be_a_target_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="topic"):
        ToTopicSpec(topic=name)


@pytest.mark.parametrize(
    ("headers", "source"),
    [
        ([("lakebound_source", b"a-b/3/12/1")], ("a-b", 3, 12, 1)),
        ([("other", b"x"), ("lakebound_source", b"a/0/0/0")], ("a", 0, 0, 0)),
        (None, (None, None, None, None)),
        ([("lakebound_source", b"a/3/12")], (None, None, None, None)),
        ([("lakebound_source", b"a/3/-1/0")], (None, None, None, None)),
        ([("lakebound_source", None)], (None, None, None, None)),
    ],
)
def test_the_origin_of_a_message_is_read_or_counts_as_unknown(headers: Any, source: Source) -> None:
    assert source_of(headers) == source


def test_a_target_that_was_recreated_is_refused() -> None:
    check_target_ids({"out": "i", "new": None}, {"out": "i", "new": "j"})
    with pytest.raises(TargetRecreatedError, match="topic id i"):
        check_target_ids({"out": "i"}, {"out": "j"})
