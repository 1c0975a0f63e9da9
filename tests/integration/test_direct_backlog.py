"""A backlog that the driver reads in slices: one batch, one file per table, each record once; bad records lose nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.kafka.journal import Journal
from tests.support.kafka.makers import TopicMaker
from tests.support.kafka.producing import JournalingProducer, as_json, event
from tests.support.streams.applications import RunningApplication, applications
from tests.support.streams.pipelines import Pipeline, assert_exactly_once, make_pipeline

from lakebound.landing.direct_read import SLICE_BYTES
from lakebound.local.broker import Broker
from lakebound_spark.batch.direct import MOST_BAD

pytestmark = pytest.mark.integration

WIDE = "w" * 8_000
RECORDS = SLICE_BYTES // len(WIDE) + 500
"""More than a slice. Wide ones, because the journal and its judge look at each record."""


def send_wide(producer: JournalingProducer, topic: str, numbers: range, partition: int | None = None) -> None:
    for number in numbers:
        columns = event(number, body=f"{number} {WIDE}")
        producer.send(topic, as_json(columns), rows=[columns], key=str(number).encode(), partition=partition)


def files_of(pipeline: Pipeline) -> dict[str, list[Path]]:
    """Return the data files that lie in the tables' folders, committed or not."""
    warehouse = pipeline.settings.warehouse
    found = [path for path in warehouse.rglob("*.parquet") if "_delta_log" not in path.parts and "quarantine" not in str(path)]
    return {name: [path for path in found if name in path.relative_to(warehouse).parts] for name in ("delta", "iceberg")}


def landed(application: RunningApplication, journal: Journal) -> dict[str, float]:
    application.wait_landed(journal.ends(), 180)
    assert application.progress is not None
    return application.progress.durations_ms


def test_a_backlog_is_one_commit_of_one_file_and_with_many_bad_records_it_is_sparks(
    broker: Broker, topic: TopicMaker, tmp_path: Path
) -> None:
    name, journal = topic("backlog", 2), Journal()
    producer = JournalingProducer(broker.bootstrap_servers, journal)
    at_once = JournalingProducer(broker.bootstrap_servers, journal, transactional_id=name)
    send_wide(producer, name, range(RECORDS))
    producer.flush()
    pipeline = make_pipeline(tmp_path, broker.bootstrap_servers, name, lane="direct")
    with applications() as starter:
        application = starter.start(pipeline)
        steps = landed(application, journal)
        assert "direct_write" in steps, "the first batch of an application, too"
        assert {table: len(files) for table, files in files_of(pipeline).items()} == {"delta": 1, "iceberg": 1}
        assert application.progress is not None
        assert application.progress.records == RECORDS
        assert_exactly_once(pipeline, journal)

        # They are the last of the second batch's records: by then a slice was written, which must not stay. A transaction in
        # one partition is there all at once: it is one batch.
        with at_once.transaction():
            send_wide(at_once, name, range(RECORDS, 2 * RECORDS), partition=0)
            for _ in range(2 * MOST_BAD + 2):
                at_once.send(name, b"{", partition=0)
        steps = landed(application, journal)
        assert "direct_read" in steps
        assert "driver_lane" in steps or "cluster_lane" in steps
        uncommitted = {table: len(files) for table, files in files_of(pipeline).items()}
        assert max(uncommitted.values()) <= 1 + 2, "one of the first batch, and one per core or one of the second"
        application.stop()
    assert_exactly_once(pipeline, journal)
