"""Rows are erased beside a running application under load, by the commands that a person types; they never land again.

In a bucket, with the Iceberg table behind a REST catalog, and on a disk. In the long form alone: in the short one
tests/local/operations/test_erase.py has a stream in small that goes on beside an erasure, and after it.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.support.catalogs.installations import in_rest, store_on
from tests.support.kafka.journal import Journal, row_hash
from tests.support.kafka.makers import TopicMaker
from tests.support.kafka.producing import JournalingProducer, Load, event, send_events
from tests.support.s3.running import S3Server
from tests.support.streams.applications import applications
from tests.support.streams.command_line import answer, known_to_commands
from tests.support.streams.long_form import only_in_long_form
from tests.support.streams.pipelines import ANY_LANE, Pipeline, make_pipeline

from lakebound.local.broker import Broker

pytestmark = [pytest.mark.integration, only_in_long_form]

PER_SECOND = 100
MOST_EVENTS = 100_000
WHERE = "id % 3 = 1"


@pytest.fixture(params=["bucket", "disk"])
def pipeline(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    broker: Broker,
    topic: TopicMaker,
    s3_server: S3Server,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Pipeline]:
    """A pipeline that commands find, with a table of each format."""
    made = make_pipeline(tmp_path, broker.bootstrap_servers, topic("erased", partitions=2), lane=ANY_LANE)
    catalog = in_rest(tmp_path, store_on(s3_server), monkeypatch) if request.param == "bucket" else None
    found = made if catalog is None else catalog.holding(made)
    known_to_commands(found, monkeypatch, tmp_path / "pipelines")
    yield found
    if catalog is not None:
        catalog.close()


def least_rows(pipeline: Pipeline) -> int:
    return min(pipeline.read(table).num_rows for table in pipeline.spec.tables)


def without_erased(journal: Journal, below: dict[str, dict[str, int]]) -> tuple[Journal, int]:
    """Return the journal as it must be found after the erasure, and how many of its records were erased."""
    erased = {row_hash(event(number)) for number in range(1, MOST_EVENTS, 3)}
    left, gone = Journal(), 0
    for record in journal.records:
        topic, partition, offset = record.place
        is_erased = bool(erased & set(record.rows)) and offset < below[topic][str(partition)]
        gone += is_erased
        left.write([replace(record, fate="nothing", rows=()) if is_erased else record])
    return left, gone


def assert_erased(pipeline: Pipeline, journal: Journal, below: dict[str, dict[str, int]]) -> None:
    left, gone = without_erased(journal, below)
    assert 100 < gone < left.count(), "nothing was tested"
    wrong = [str(judgement) for judgement in pipeline.judge(left) if not judgement.is_clean]
    proof: dict[str, Any] = answer("prove", "events", "--deep")
    assert not wrong, f"{wrong}; the proof says: {proof}"
    assert [table["erased"] for table in proof["tables"] if table["role"] == "target"] == [gone, gone]
    assert not [problem for table in proof["tables"] for problem in table["problems"]]


def test_rows_are_erased_beside_a_stream_and_no_start_lands_them_again(pipeline: Pipeline, broker: Broker) -> None:
    (name,), journal = pipeline.spec.topics, Journal()
    with applications() as starter:
        first = starter.start(pipeline, own_jvm=True)
        send_events(JournalingProducer(broker.bootstrap_servers, journal), name, range(10))
        first.wait_landed(journal.ends())
        with Load(JournalingProducer(broker.bootstrap_servers, journal), name, PER_SECOND):
            first.wait_for(lambda: least_rows(pipeline) > 5 * PER_SECOND, 90, "rows to erase from")
            plan = answer("erase", "events", "--where", WHERE)
            bound = ["--below", json.dumps(plan["below"])]
            done = answer("erase", "events", "--where", WHERE, *bound, "--apply", plan["hash"], "--reason", "ticket 7")
            after = least_rows(pipeline)
            first.wait_for(lambda: least_rows(pipeline) > after + 2 * PER_SECOND, 90, "rows that land after the erasure")
            first.kill()
            shutil.rmtree(pipeline.control.folder / "checkpoints")
            last = starter.start(pipeline)
        last.wait_landed(journal.ends())
        assert last.stop().verdict == "stopped", last
    assert done["incident"]["outcome"] == "done"
    assert_erased(pipeline, journal, plan["below"])
