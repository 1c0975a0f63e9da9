"""When the driver reads and decodes a batch by itself, and for how long it leaves that to Spark after it could not."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from threading import Event, current_thread
from threading import enumerate as enumerate_threads
from typing import Any

import pyarrow as pa
import pytest
from tests.support.streams.stand_ins import ORDERS

from lakebound.landing.direct_read import DirectReadRefusedError, RecordColumns
from lakebound.ledger.entry import Offsets, TopicOffsets
from lakebound.spec.pipeline import KAFKA_COLUMN, PipelineSpec
from lakebound.tables.table import KAFKA_TYPE
from lakebound_spark.batch import direct
from lakebound_spark.batch.decoded_rows import row_decoder
from lakebound_spark.batch.direct import DirectLane, TransformHeld
from lakebound_spark.batch.landable import LandableCheck
from lakebound_spark.batch.report import BatchReport
from lakebound_spark.batch.seen_records import Observed

NO_CHECK = LandableCheck(has_transform=False)
SESSION = object()
"""Of a batch."""
STEPS = {"direct_read", "direct_decode", "direct_write"}
OFFSETS: Offsets = {"orders": TopicOffsets(topic_id="id", partitions={0: ((5, 7),)})}
LARGE: Offsets = {"orders": TopicOffsets(topic_id="id", partitions={0: ((0, 1_000_000),)})}
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


class SeveralSlices(Reader):
    """Gives one record per slice; at a refusal none more."""

    def __init__(self, count: int, refuses: bool = False) -> None:
        super().__init__(None)
        self.count, self.refuses = count, refuses
        self.threads: list[str] = []
        self.read_slices = [Event() for _ in range(count)]
        self.is_reading = False

    def read(self, wanted: Offsets) -> Iterator[RecordColumns]:
        for number in range(self.count):
            self.is_reading = True
            self.threads.append(current_thread().name)
            time.sleep(0.01)
            self.read_slices[number].set()
            self.is_reading = False
            yield RecordColumns(["orders"], [0], [number], [1_000 + number], [None], [b"%d" % number])
        if self.refuses:
            raise DirectReadRefusedError("the records did not come in time")

    def close(self) -> None:
        assert not self.is_reading
        super().close()


def spec_of(**changes: Any) -> PipelineSpec:
    return PipelineSpec.model_validate({**ORDERS, **changes})


def lane_with(
    answer: RecordColumns | None, transform: TransformHeld | None = None, check: LandableCheck = NO_CHECK
) -> tuple[DirectLane, Reader]:
    reader = Reader(answer)
    return lane_of(reader, transform, check), reader


def lane_of(reader: Reader, transform: TransformHeld | None = None, check: LandableCheck = NO_CHECK) -> DirectLane:
    decode = row_decoder(spec_of(), {"orders": "topic-id"})
    return DirectLane(reader, decode, check, transform)  # type: ignore[arg-type]


def write(lane: DirectLane, steps: set[str] = STEPS) -> tuple[Observed | None, list[pa.Table]]:
    rows, report = Rows(), BatchReport(1)
    observed = lane.write(OFFSETS, SESSION, rows, report.timed)  # type: ignore[arg-type]
    assert observed is None or {*report.durations_ms} == steps
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
    seen, slices = write(lane_with(RecordColumns())[0], {"direct_read"})
    assert seen is not None
    assert (slices, seen.read, seen.timestamps_ms) == ([], 0, None)


def test_the_transform_gets_the_rows_and_its_own_land() -> None:
    def twice(session: object, rows: pa.Table) -> pa.Table:
        assert session is SESSION
        return pa.concat_tables([rows, rows])

    seen, (rows,) = write(lane_with(TWO, twice)[0], {*STEPS, "direct_transform"})  # type: ignore[arg-type]
    assert rows["value"].to_pylist() == [b"abc", b"\xff"] * 2
    assert seen is not None and (seen.read, seen.value_bytes) == (2, 4), "of the records"


def test_what_the_transform_makes_is_checked() -> None:
    def broken(_: object, rows: pa.Table) -> pa.Table:
        return rows.set_column(0, "text", pa.StringArray.from_buffers(2, *rows["value"].combine_chunks().buffers()[1:]))

    lane, _ = lane_with(TWO, broken, LandableCheck(has_transform=True))  # type: ignore[arg-type]
    assert write(lane) == (None, []), "the text of the second record is not UTF-8: Spark says which record it is"


def test_what_the_transform_raises_is_left_to_sparks_lanes(caplog: pytest.LogCaptureFixture) -> None:
    def fails(*_: object) -> pa.Table:
        raise ValueError("4711 is no number")

    lane, reader = lane_with(TWO, fails)
    with caplog.at_level("INFO"):
        assert write(lane) == (None, [])
    assert not lane.is_open and reader.closed == 1
    assert "the transform raises ValueError" in caplog.text
    assert "4711" not in caplog.text, "it may be a value of the record"


def test_slices_of_a_large_batch_are_read_beside_the_transform_and_land_in_their_order() -> None:
    reader, rows, report = SeveralSlices(9), Rows(), BatchReport(1)

    def waits_for_the_next(_: object, made: pa.Table) -> pa.Table:
        number = int(made["value"][0].as_py())
        assert number == 8 or reader.read_slices[number + 1].wait(10)
        return made

    seen = lane_of(reader, waits_for_the_next).write(LARGE, SESSION, rows, report.timed)  # type: ignore[arg-type]
    assert [value for one in rows.slices for value in one["value"].to_pylist()] == [b"%d" % number for number in range(9)]
    assert {*reader.threads} == {"reads-ahead_0"} and not [one for one in enumerate_threads() if "reads-ahead" in one.name]
    assert seen is not None and (seen.read, seen.timestamps_ms) == (9, (1_000, 1_008))


@pytest.mark.parametrize("what", ["reader", "transform"])
def test_a_refusal_in_a_large_batch_ends_what_is_read_beside_it(what: str) -> None:
    def third_fails(_: object, made: pa.Table) -> pa.Table:
        if what == "transform" and made["value"].to_pylist() == [b"2"]:
            raise ValueError("4711 is no number")
        return made

    reader, turn = SeveralSlices(9 if what == "transform" else 3, what == "reader"), sys.getswitchinterval()
    rows, report = Rows(), BatchReport(1)
    lane = lane_of(reader, third_fails)  # type: ignore[arg-type]
    assert lane.write(LARGE, SESSION, rows, report.timed) is None  # type: ignore[arg-type]
    assert (reader.closed, lane.is_open, sys.getswitchinterval()) == (1, False, turn)
    assert not [one for one in enumerate_threads() if "reads-ahead" in one.name]


def test_bad_records_are_told_and_the_others_stay_in_their_places() -> None:
    values = [None if offset % 8 in (5, 6) else b"%d" % offset for offset in range(64)]
    answer = RecordColumns(["orders"] * 64, [0] * 64, [*range(64)], [1_000] * 64, [b"k"] * 64, values)
    seen, (rows,) = write(lane_with(answer)[0])
    offsets = rows[KAFKA_COLUMN].combine_chunks().field("offset").to_pylist()
    assert dict(zip(offsets, rows["value"].to_pylist(), strict=True)) == {
        offset: value for offset, value in enumerate(values) if value is not None
    }
    assert offsets == sorted(offsets)
    assert seen is not None and seen.bad_rows is not None
    bad = seen.bad_rows[KAFKA_COLUMN].combine_chunks().field("offset").to_pylist()
    assert bad == [offset for offset in range(64) if offset % 8 in (5, 6)]
    assert (seen.read, seen.bad) == (64, 16)


def test_where_too_many_records_are_bad_it_is_sparks_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(direct, "MOST_BAD", 10)
    lane, _ = lane_with(RecordColumns(["orders"] * 40, [0] * 40, [*range(40)], [1_000] * 40, [b"k"] * 40, [None] * 40))
    assert write(lane) == (None, [])
    assert not lane.is_open


def test_after_a_refusal_it_is_sparks_turn_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1_000.0
    monkeypatch.setattr(direct.time, "monotonic", lambda: now)
    lane, reader = lane_with(None)
    assert write(lane) == (None, [])
    assert reader.closed == 1, "what it holds ahead would be stale by then"
    now += 29
    assert not lane.is_open
    now += 2
    reader.answer = TWO
    assert lane.is_open
    assert write(lane)[0] is not None
