"""One application lands all kinds of topics and records, once, in both lanes; the oracle judges after every step.

Spark reads and decodes in either lane. So the short form has the lane in which the driver writes; test_outages.py has rows of
an explode in the cluster's, and tests/chaos/test_crash_points.py kills in it.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions
from tests.oracle import readable_places
from tests.support.kafka.journal import Journal
from tests.support.kafka.makers import topic_maker
from tests.support.kafka.producing import JournalingProducer, as_json, event
from tests.support.streams.applications import RunningApplication, applications
from tests.support.streams.landing_transforms import DROPPED, expected_tag_rows
from tests.support.streams.long_form import LONG_FORM
from tests.support.streams.pipelines import LANES, TAG_ROWS, Lane, Pipeline, assert_exactly_once, make_pipeline
from tests.support.waiting import HANGS_SECONDS, wait_until

from lakebound.control.quarantine_samples import read_samples
from lakebound.local.broker import Broker

pytestmark = pytest.mark.integration


@dataclass
class Topics:
    """Topics of the module, their journal, and who writes to them."""

    broker: Broker
    journal: Journal = field(default_factory=Journal)
    numbers: int = 0

    def __post_init__(self) -> None:
        servers, make = self.broker.bootstrap_servers, topic_maker(self.broker.bootstrap_servers)
        self.plain = make("plain")
        self.empty = make("empty")
        self.transactional = make("transactional", partitions=2)
        self.growing = make("growing", partitions=1)
        self.compacted = make(
            "compacted",
            partitions=1,
            config={"cleanup.policy": "compact", "segment.ms": "100", "min.cleanable.dirty.ratio": "0.01"},
        )
        self.producer = JournalingProducer(servers, self.journal)
        self.transactions = JournalingProducer(servers, self.journal, transactional_id="test-landing")

    @property
    def all(self) -> tuple[str, ...]:
        """Their names."""
        return (self.plain, self.empty, self.transactional, self.growing, self.compacted)

    def send(self, topic: str, count: int, *, by: JournalingProducer | None = None, **changes: Any) -> None:
        """Send events; each must give its rows, or none at all where the transform makes none."""
        for _ in range(count):
            self.numbers += 1
            columns = event(self.numbers, **changes)
            rows = expected_tag_rows(columns)
            key = str(self.numbers % 10).encode()
            (by or self.producer).send(topic, as_json(columns), rows=rows, fate="table" if rows else "nothing", key=key)
        if by is None:
            self.producer.flush()

    def compact(self) -> None:
        """Write ten keys again and again, until the broker has removed what was overwritten."""
        self.send(self.compacted, 500)
        time.sleep(0.2)  # the active segment is never compacted: let the next record open a new one
        self.send(self.compacted, 1)

        def is_compacted() -> bool:
            kept = readable_places(self.broker.bootstrap_servers, self.compacted)
            if len(kept) > 11:  # the last of each key, and the record of the active segment: the broker removes no more
                return False
            self.journal.keep_only(self.compacted, kept)
            return True

        wait_until(is_compacted, 60, "the broker's log compaction")


@dataclass
class Landing:
    """The running application and what it reads."""

    application: RunningApplication
    pipeline: Pipeline
    topics: Topics

    def assert_landed(self) -> None:
        """Wait until everything that was sent is dealt with, and judge all of it."""
        self.application.wait_landed(self.topics.journal.ends())
        assert_exactly_once(self.pipeline, self.topics.journal)


@pytest.fixture(scope="module")
def topics(broker: Broker) -> Topics:
    made = Topics(broker)
    made.compact()
    made.producer.send(made.plain, b"", key=b"the first record is a bad one")
    made.send(made.plain, 200)
    return made


@pytest.fixture(scope="module", params=LANES if LONG_FORM else LANES[:1])
def landing(request: pytest.FixtureRequest, topics: Topics, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Landing]:
    pipeline = landing_pipeline(tmp_path_factory.mktemp(request.param), topics, request.param)
    with applications() as starter:
        application = starter.start(pipeline)
        application.wait_running()
        yield Landing(application, pipeline, topics)


def landing_pipeline(folder: Path, topics: Topics, lane: Lane) -> Pipeline:
    return make_pipeline(
        folder,
        topics.broker.bootstrap_servers,
        *topics.all,
        lane=lane,
        transform=TAG_ROWS,
        quarantine_samples=2,
        tables=[
            {"format": "delta", "name": "shop.tags", "partition_by": ["tag"]},
            {"format": "iceberg", "name": "shop.tags", "partition_by": ["tag", "truncate(1000, id)"]},
        ],
    )


def test_what_was_there_before_is_landed_compacted_and_empty_topics_included(landing: Landing) -> None:
    landing.assert_landed()


def test_aborted_transactions_are_not_landed_and_not_missed(landing: Landing) -> None:
    topics = landing.topics
    for commit in (True, False, False, True):
        with topics.transactions.transaction(commit=commit):
            topics.send(topics.transactional, 60, by=topics.transactions)
    landing.assert_landed()
    with topics.transactions.transaction(commit=False):
        topics.send(topics.transactional, 60, by=topics.transactions)
    with topics.transactions.transaction():
        topics.send(topics.transactional, 1, by=topics.transactions)
    landing.assert_landed()


def test_a_batch_that_the_filter_drops_whole_is_dealt_with(landing: Landing) -> None:
    topics = landing.topics
    topics.send(topics.plain, 300, body=f"{DROPPED} this")
    landing.assert_landed()
    topics.send(topics.plain, 30)
    landing.assert_landed()


def test_a_batch_that_is_all_bad_goes_to_quarantine_whole(landing: Landing) -> None:
    topics = landing.topics
    for number in range(300):
        topics.producer.send(topics.plain, b'{"id": %d, ' % number)
    topics.producer.flush()
    landing.assert_landed()


def test_a_record_that_does_not_fit_says_which_field_in_either_lane(landing: Landing) -> None:
    topics = landing.topics
    value = as_json({**GOOD, "amount": "dear", "tags": ["t", "u"]})
    topics.producer.send(topics.plain, value)
    topics.producer.flush()
    landing.assert_landed()
    rows = landing.pipeline.read(landing.pipeline.spec.quarantine_table).to_pylist()
    told = {(row["reason"], row["error"]) for row in rows if row["value"] == value}
    assert told == {("does_not_fit", "amount: 'dear' is not a DOUBLE")}


def test_every_row_of_an_explode_carries_its_ordinal(landing: Landing) -> None:
    topics = landing.topics
    topics.send(topics.plain, 20, tags=[f"tag-{number % 8}" for number in range(40)])  # each tag is a partition
    topics.send(topics.plain, 5, tags=["same", "same", "same"])
    landing.assert_landed()


def test_partitions_added_while_running_are_landed_from_their_beginning(landing: Landing) -> None:
    topics = landing.topics
    admin = AdminClient({"bootstrap.servers": topics.broker.bootstrap_servers})
    before = len(admin.list_topics(topics.growing, timeout=30).topics[topics.growing].partitions)
    topics.send(topics.growing, 50)
    admin.create_partitions([NewPartitions(topics.growing, before + 2)])[topics.growing].result(HANGS_SECONDS)
    fresh = JournalingProducer(topics.broker.bootstrap_servers, topics.journal)
    for partition in (before, before + 1):
        for _ in range(40):
            topics.numbers += 1
            columns = event(topics.numbers, tags=["added"])
            fresh.send(topics.growing, as_json(columns), rows=expected_tag_rows(columns), partition=partition)
    fresh.flush()
    landing.assert_landed()


GOOD = {"id": 7, "body": "seven", "amount": 0.5, "tags": ["t"]}
DEEP = '{"a":' * 200 + "1" + "}" * 200
TOO_DEEP = '{"a":' * 5000 + "1" + "}" * 5000


def _good_with(text: str) -> bytes:
    """The good event's JSON with more text before its closing brace."""
    return (json.dumps(GOOD)[:-1] + text + "}").encode()


LANDED_INPUT = {
    "unknown extra fields are ignored": (_good_with(', "extra": {"x": [1, null]}, "more": true'), GOOD),
    "deeply nested unknown field": (_good_with(f', "deep": {DEEP}'), GOOD),
    "duplicate keys: the last one counts": (_good_with(', "body": "eight"'), {**GOOD, "body": "eight"}),
    "a number where text is wanted is text": (as_json({**GOOD, "body": 5}), {**GOOD, "body": "5"}),
    "null in a column that may be null": (as_json({**GOOD, "amount": None}), {**GOOD, "amount": None}),
    "optional column missing": (b'{"id": 7, "body": "seven", "tags": ["t"]}', {**GOOD, "amount": None}),
    "1 MiB record": (as_json({**GOOD, "body": "x" * (1 << 20)}), {**GOOD, "body": "x" * (1 << 20)}),
    "white space around it": (b" \n\t" + as_json(GOOD) + b" \r\n", GOOD),
    "escapes": (
        as_json({**GOOD, "body": 'quote " tab \t zero \u0000 smile \U0001f600'}),
        {**GOOD, "body": 'quote " tab \t zero \u0000 smile \U0001f600'},
    ),
    "largest of its type": (as_json({**GOOD, "id": 2**63 - 1}), {**GOOD, "id": 2**63 - 1}),
}
QUARANTINED_INPUT: dict[str, bytes | None] = {
    "malformed": b'{"id": 7, "body": "seven"',
    "text after the object": as_json(GOOD) + b" and more",
    "two objects": as_json(GOOD) * 2,
    "not JSON": b"id=7;body=seven",
    "array": b"[" + as_json(GOOD) + b"]",
    "scalar": b"7",
    "JSON null": b"null",
    "wrong type": as_json({**GOOD, "id": "seven"}),
    "wrong type inside": as_json({**GOOD, "tags": {"t": 1}}),
    "required column missing": b'{"id": 7, "tags": ["t"]}',
    "required column null": as_json({**GOOD, "body": None}),
    "null value (tombstone)": None,
    "empty value": b"",
    "blank value": b"   ",
    "not UTF-8": as_json(GOOD).replace(b"seven", b"se\xff\xfeven"),
    "1 MiB of nothing useful": b"{" * (1 << 20),
    "integer beyond its type": as_json({**GOOD, "id": 2**63}),
    "integer of 2000 digits": _good_with(', "id": ' + "9" * 2000),
    "fraction where an integer is wanted": as_json({**GOOD, "id": 7.5}),
    "double beyond its type": _good_with(', "amount": 1e400'),
    "nested too deeply": _good_with(f', "deep": {TOO_DEEP}'),
}


def test_bad_input_is_landed_or_quarantined_as_the_spec_says(landing: Landing) -> None:
    topics = landing.topics
    for value, columns in LANDED_INPUT.values():
        topics.producer.send(topics.plain, value, rows=expected_tag_rows(columns), key=b"tombstone")
    for bad in QUARANTINED_INPUT.values():
        topics.producer.send(topics.plain, bad, key=b"tombstone")
    topics.producer.flush()
    landing.assert_landed()
    # A batch that only the executors hold is asked for samples at most once a minute.
    fewest = 3 if landing.pipeline.spec.driver_lane.max_rows else 1
    landing.application.wait_for(lambda: len(_reasons(landing)) >= fewest, 40, "samples of the quarantine")
    assert max(_reasons(landing).values()) <= 2
    rows = landing.pipeline.read(landing.pipeline.spec.quarantine_table).to_pylist()
    held = {
        (row["_kafka"]["topic"], row["_kafka"]["partition"], row["_kafka"]["offset"]): (row["reason"], row["value"])
        for row in rows
    }
    for sample in read_samples(landing.pipeline.control, time.time()):
        reason, value = held[sample.topic, sample.partition, sample.offset]
        begin = None if sample.value is None else sample.value.removesuffix("…")[:3].encode()
        assert sample.value_bytes == (None if value is None else len(value)), sample
        assert sample.reason.startswith(reason) and (value is begin if value is None else value.startswith(begin)), sample


def _reasons(landing: Landing) -> Counter[str]:
    return Counter(sample.reason for sample in read_samples(landing.pipeline.control, time.time()))


def test_idle_is_not_silent(landing: Landing) -> None:
    now = time.time()
    landing.application.wait_for(lambda: _says(landing, now), 15, "progress without lag while nothing is produced")


def _says(landing: Landing, since: float) -> bool:
    progress = landing.application.progress
    return progress is not None and progress.updated_at > since and progress.state == "running" and progress.lag_records == 0


def test_stop_marker_ends_it_gracefully_with_everything_landed(landing: Landing) -> None:
    landing.topics.send(landing.topics.plain, 500)
    landing.application.wait_landed(landing.topics.journal.ends())
    outcome = landing.application.stop()
    assert (outcome.verdict, landing.application.process.returncode) == ("stopped", 0), landing.application
    assert_exactly_once(landing.pipeline, landing.topics.journal)
