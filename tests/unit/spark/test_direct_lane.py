"""When the driver reads and decodes a batch by itself, and for how long it leaves that to Spark after it could not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from tests.support.streams.stand_ins import ORDERS

from lakebound.landing.direct_read import DirectReadRefusedError, RecordColumns
from lakebound.ledger.entry import Offsets, TopicOffsets
from lakebound.spec.pipeline import KAFKA_COLUMN, PipelineSpec
from lakebound.tables.table import KAFKA_TYPE
from lakebound_spark.batch import direct
from lakebound_spark.batch.direct import DirectLane, make_direct_lane
from lakebound_spark.batch.direct_decode import make_value_decoder
from lakebound_spark.batch.landable import LandableCheck
from lakebound_spark.batch.observed import Observed
from lakebound_spark.batch.report import BatchReport

NO_CHECK = LandableCheck(has_transform=False)
OFFSETS: Offsets = {"orders": TopicOffsets(topic_id="id", partitions={0: ((5, 7),)})}
TWO = RecordColumns(["orders", "orders"], [0, 0], [5, 6], [2_000, 1_000], [None, b"k"], [b"abc", b"\xff"])


class Rows:
    """Takes slices."""

    def __init__(self) -> None:
        self.slices: list[pa.Table] = []

    def write(self, rows: pa.Table) -> None:
        self.slices.append(rows)


class Reader:
    """Gives what it is told to give, and counts."""

    def __init__(self, answer: RecordColumns | None) -> None:
        self.answer = answer
        self.reads = self.closed = 0

    def read(self, wanted: Offsets) -> Iterator[RecordColumns]:
        assert wanted == OFFSETS
        self.reads += 1
        if self.answer is None:
            raise DirectReadRefusedError("the records did not come in time")
        yield self.answer

    def close(self) -> None:
        self.closed += 1


def spec_of(**changes: Any) -> PipelineSpec:
    return PipelineSpec.model_validate({**ORDERS, **changes})


def lane_with(answer: RecordColumns | None) -> tuple[DirectLane, Reader]:
    reader, decode = Reader(answer), make_value_decoder(spec_of(), None)
    assert decode is not None
    return DirectLane(reader, decode, {"orders": "topic-id"}, NO_CHECK), reader  # type: ignore[arg-type]


def write(lane: DirectLane) -> tuple[Observed | None, list[pa.Table]]:
    rows, steps = Rows(), BatchReport(1)
    observed = lane.write(OFFSETS, rows, steps.timed)  # type: ignore[arg-type]
    assert observed is None or {*steps.durations_ms} == {"direct_read", "direct_decode", "direct_write"}
    return observed, rows.slices


def test_a_batch_becomes_rows_and_what_was_seen_of_its_records() -> None:
    lane, _ = lane_with(TWO)
    seen, (rows,) = write(lane)
    assert rows.drop_columns(KAFKA_COLUMN).to_pylist() == [
        {"key": None, "value": b"abc"},
        {"key": b"k", "value": b"\xff"},
    ]
    assert rows.schema.field(KAFKA_COLUMN).type == KAFKA_TYPE
    kafka = rows[KAFKA_COLUMN].combine_chunks()
    assert kafka.field("offset").to_pylist() == [5, 6]
    assert kafka.field("topic_id").to_pylist() == ["topic-id", "topic-id"]
    assert kafka.field("timestamp").cast(pa.int64()).to_pylist() == [2_000_000, 1_000_000]
    assert seen is not None
    assert (seen.read, seen.bad, seen.value_bytes, seen.timestamps_ms) == (2, 0, 4, (1_000, 2_000))


def test_a_range_without_records_has_no_rows() -> None:
    seen, (rows,) = write(lane_with(RecordColumns())[0])
    assert seen is not None
    assert (rows.num_rows, seen.read, seen.timestamps_ms) == (0, 0, None)


@pytest.mark.parametrize(
    "answer", [None, RecordColumns(["orders"], [0], [5], [1], [None], [None])], ids=["not read", "no value"]
)
def test_after_a_refusal_it_is_sparks_turn_for_a_while(answer: RecordColumns | None, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1_000.0
    monkeypatch.setattr(direct.time, "monotonic", lambda: now)
    lane, reader = lane_with(answer)
    assert write(lane) == (None, [])
    assert reader.closed == 1, "what it holds ahead would be stale by then"
    now += 29
    assert not lane.is_open
    now += 2
    reader.answer = TWO
    assert lane.is_open
    assert write(lane)[0] is not None


@pytest.mark.parametrize(
    ("changes", "unhoused", "is_direct"),
    [
        ({}, (), True),
        ({"driver_lane": {"direct": False}}, (), False),
        ({"transform": "transforms.raw.clean"}, (), False),
        ({}, ("key",), False),
    ],
)
def test_only_spark_can_do_what_some_pipelines_ask_for(
    changes: dict[str, Any], unhoused: tuple[str, ...], is_direct: bool
) -> None:
    assert (make_direct_lane(spec_of(**changes), {"orders": "topic-id"}, unhoused, NO_CHECK) is not None) is is_direct
