"""What a redo makes of the parts of a piece, and of what Kafka gave."""

from __future__ import annotations

import time
from typing import Literal

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from lakebound.ledger.entry import TopicOffsets
from lakebound.ledger.hours import RowHours
from lakebound_spark.backfill.rows_replaced import both, spans_read
from lakebound_spark.batch.targets import Origin

SCHEMA = pa.schema({"topic": pa.string(), "partition": pa.int32(), "offset": pa.int64()})


@given(st.lists(st.tuples(st.sampled_from(["a", "b"]), st.integers(0, 2), st.integers(0, 30)), unique=True))
def test_the_offsets_of_which_kafka_gave_a_record_are_told(records: list[tuple[str, int, int]]) -> None:
    found = pa.Table.from_pylist([dict(zip(SCHEMA.names, one, strict=True)) for one in records], schema=SCHEMA)
    asked = {name: TopicOffsets(topic_id=f"id-{name}", partitions=dict.fromkeys(range(3), ((0, 31),))) for name in "ab"}
    spans = spans_read(found, asked)
    told = {(t, i, p, o) for (t, i, p), held in spans.items() for start, end in held for o in range(start, end)}
    assert told == {(topic, f"id-{topic}", partition, offset) for topic, partition, offset in records}


def test_hours_and_times_of_two_parts_are_those_of_both() -> None:
    now = int(time.time() // 3600)

    def part(first: int, last: int, column: str = "at", lane: Literal["driver", "cluster"] = "driver") -> Origin:
        return Origin(1, lane, (first, last), RowHours(column=column, intervals=((now - last, now - first),)))

    whole = both(part(5, 7), part(2, 3, lane="cluster"))
    assert whole.timestamps_ms == (2, 7) and whole.lane == "cluster"
    assert whole.hours is not None and whole.hours.intervals == ((now - 7, now - 5), (now - 3, now - 2))
    assert both(part(5, 7), part(2, 3, "other")).hours is None
    assert both(Origin(), part(2, 3)).timestamps_ms == (2, 3)
