"""Rows of one record are numbered from 0 on, and the same rows get the same numbers in whatever order they come."""

from __future__ import annotations

import random
from collections import defaultdict
from typing import Any

import pyarrow as pa
import pytest

from lakebound.tables.table import KAFKA_TYPE
from lakebound_spark.batch.row_numbers import numbered, numbered_parts

SCHEMA = pa.schema(
    [
        pa.field("text", pa.string()),
        pa.field("n", pa.float64()),
        pa.field("tags", pa.list_(pa.struct([("a", pa.int32())]))),
        pa.field("_kafka", KAFKA_TYPE),
    ]
)


def row(offset: int, ordinal: int = 0, text: str | None = "x", partition: int = 0, topic: str = "t") -> dict[str, Any]:
    place = {"topic": topic, "topic_id": "i", "partition": partition, "offset": offset, "timestamp": None, "ordinal": ordinal}
    return {"text": text, "n": float(offset % 3), "tags": [{"a": offset}], "_kafka": place}


def table(rows: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def ordinals(rows: pa.Table) -> list[int]:
    return [one["ordinal"] for one in rows["_kafka"].to_pylist()]


def test_one_row_of_each_record_is_left_as_it_is() -> None:
    rows = table([row(1), row(2), row(5), row(1, partition=1), row(2, topic="u")])
    made, records = numbered(rows)
    assert made is rows and records == 5


def test_numbers_of_an_explode_are_left_as_they_are() -> None:
    rows = table([row(1, 0), row(1, 1), row(2, 0), row(2, 1), row(2, 2)])
    made, records = numbered(rows)
    assert made is rows and records == 2


def test_gaps_that_a_filter_left_are_closed() -> None:
    made, records = numbered(table([row(1, 1), row(2, 0), row(2, 2), row(3, 7)]))
    assert (ordinals(made), records) == ([0, 0, 1, 0], 3)


def test_rows_with_one_number_are_numbered_by_their_values() -> None:
    made, records = numbered(table([row(1, 0, "b"), row(1, 0, "a"), row(1, 0, None), row(0), row(1, 1, "a")]))
    assert (ordinals(made), records) == ([1, 0, 2, 0, 3], 2)


def test_no_rows_are_no_records() -> None:
    assert numbered(table([])) == (table([]), 0)


@pytest.mark.parametrize("seed", range(40))
def test_any_rows_get_the_same_numbers_in_any_order_and_in_any_parts(seed: int) -> None:
    dice = random.Random(seed)
    rows = [
        row(offset, dice.choice([0, 0, 1, 5]), dice.choice(["a", "b", None]), dice.randrange(2), dice.choice("tu"))
        for offset in range(dice.randrange(1, 12))
        for _ in range(dice.choice([1, 1, 2, 4]))
    ]
    in_another_order = dice.sample(rows, len(rows))
    by_record = sorted(rows, key=lambda one: tuple(one["_kafka"][name] for name in ("topic", "partition", "offset")))
    parts, left = [], by_record
    while left:
        size = dice.randrange(4)
        parts, left = [*parts, *table(left[:size]).to_batches()], left[size:]
    found = [
        numbered(table(rows))[0],
        numbered(table(in_another_order))[0],
        pa.Table.from_batches(numbered_parts(parts), schema=SCHEMA),
    ]
    judged = [sorted(map(repr, one.to_pylist())) for one in found]
    assert judged[0] == judged[1] == judged[2]
    of_records = defaultdict(list)
    for place in found[0]["_kafka"].to_pylist():
        of_records[place["topic"], place["partition"], place["offset"]].append(place["ordinal"])
    assert all(sorted(numbers) == [*range(len(numbers))] for numbers in of_records.values())
    assert numbered(table(rows))[1] == len(of_records)
