"""A batch that the driver reads for Spark reaches the executors without a disk that they share with it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession

from lakebound.landing.direct_read import RecordColumns
from lakebound.ledger.entry import Offsets, TopicOffsets
from lakebound.spec.pipeline import PipelineSpec
from lakebound_spark.batch import rescue
from lakebound_spark.batch.records import in_offsets
from lakebound_spark.batch.rescue import Rescuer
from lakebound_spark.batch.transform import KAFKA_SCHEMA

pytestmark = pytest.mark.spark

NANOSECONDS = 1_767_323_045_678_901_234
SPEC = {
    "pipeline": "orders",
    "topics": ["orders"],
    "connection": {"bootstrap_servers": "127.0.0.1:1"},
    "value": {"format": "json", "schema": "id BIGINT"},
    "freshness": "1s",
    "tables": [{"format": "delta", "name": "lake.orders"}],
}


def records(*offsets: int) -> RecordColumns:
    count = len(offsets)
    stamps = [NANOSECONDS if offset % 2 else 1_700_000_000_000 for offset in offsets]
    values = [None if offset == 3 else b"%d" % offset for offset in offsets]
    return RecordColumns(["orders"] * count, [0] * count, list(offsets), stamps, [b"k"] * count, values)


class Reader:
    """Gives slices in place of a broker, as the driver's consumer does."""

    slices: tuple[RecordColumns, ...] = ()

    def __init__(self, *_: Any) -> None:
        """Connect to nothing."""

    def read(self, wanted: Offsets, patience_seconds: float) -> Iterator[RecordColumns]:
        assert wanted["orders"].partitions == {0: ((0, 8),)}, "the records in between, too"
        yield from self.slices

    def close(self) -> None:
        """Nothing is open."""


@pytest.fixture
def rescuer(session: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Rescuer:
    monkeypatch.setattr(rescue, "DirectReader", Reader)
    return Rescuer(session, PipelineSpec.model_validate(SPEC))


WANTED: Offsets = {"orders": TopicOffsets(topic_id="id", partitions={0: ((0, 4), (6, 8))})}


def test_no_file_of_the_driver_and_no_row_in_its_plan(
    session: SparkSession, rescuer: Rescuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Reader, "slices", (records(0, 1, 2, 3), records(), records(4, 6, 7)))
    before = kept_by_executors(session)
    frame = rescuer.read(WANTED)
    assert frame.inputFiles() == [] and kept_by_executors(session) == before + 2
    assert "LocalTableScan" not in frame._jdf.queryExecution().executedPlan().toString()
    assert [(one.name, one.dataType) for one in frame.schema] == [(one.name, one.dataType) for one in KAFKA_SCHEMA]
    for _ in range(2):  # more than one job reads a batch
        rows = sorted(frame.where(in_offsets(WANTED)).collect(), key=lambda row: row["offset"])
        assert [row["offset"] for row in rows] == [0, 1, 2, 3, 6, 7]
        assert [bytes(row["value"]) if row["value"] is not None else None for row in rows] == [
            b"0",
            b"1",
            b"2",
            None,
            b"6",
            b"7",
        ]
        assert [row["timestamp"] is None for row in rows] == [False, True, False, True, False, True]
    rescuer.close()
    assert kept_by_executors(session) == before


def kept_by_executors(session: SparkSession) -> int:
    return int(session.sparkContext._jsc.sc().getPersistentRDDs().size())


def test_a_range_without_records_is_no_rows(rescuer: Rescuer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Reader, "slices", (records(),))
    assert rescuer.read(WANTED).collect() == []
