"""Rows that have landed beside those that the same records give now: what is counted, and what is shown of it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from lakebound.spec.table import TableSpec
from lakebound.tables.table import KAFKA_TYPE
from lakebound_spark.check.landed import compared

TABLE = TableSpec(format="delta", name="shop.orders")
COLUMNS = {"city": pa.string(), "amount": pa.float64(), "tags": pa.list_(pa.string())}


def table(rows: Mapping[int, Mapping[str, Any]], columns: Mapping[str, pa.DataType] = COLUMNS) -> pa.Table:
    schema = pa.schema([*columns.items(), ("_kafka", KAFKA_TYPE)])
    kafka = {"topic": "orders", "topic_id": "id", "partition": 0, "timestamp": 0, "ordinal": 0}
    return pa.Table.from_pylist([{**row, "_kafka": {**kafka, "offset": at}} for at, row in rows.items()], schema=schema)


def test_changes_are_counted_by_column_with_examples() -> None:
    landed = {at: {"city": f"c{at}", "amount": math.nan, "tags": [str(at)]} for at in range(8)}
    made = {at: {**landed[at], "city": None if at in (1, 2) else landed[at]["city"]} for at in range(1, 8)}
    made[3] = {**made[3], "city": "other", "tags": []}
    made[9] = {"city": "new"}
    found = compared(TABLE, table(made), table(landed))
    assert (found.same, found.different, found.no_longer, found.new, found.not_compared) == (4, 3, 1, 1, [])
    assert {name: (one.rows, one.becomes_null) for name, one in found.columns.items()} == {"city": (3, 2), "tags": (1, 0)}
    place = {"topic": "orders", "partition": 0, "ordinal": 0}
    assert found.columns["tags"].examples == [{**place, "offset": 3, "landed": ["3"], "now": []}]


def test_a_column_of_one_side_is_named_and_not_compared() -> None:
    made, landed = table({1: {"city": "a"}}), table({1: {"town": "a"}}, {"town": pa.string()})
    found = compared(TABLE, made, landed)
    assert (found.same, found.not_compared) == (1, ["amount", "city", "tags", "town"])


@given(
    st.dictionaries(
        st.integers(0, 20), st.fixed_dictionaries({"city": st.none() | st.sampled_from("ab"), "amount": st.floats()})
    ),
    st.dictionaries(
        st.integers(0, 20), st.fixed_dictionaries({"city": st.none() | st.sampled_from("ab"), "amount": st.floats()})
    ),
)
def test_each_row_is_counted_once(landed: dict[int, dict[str, Any]], made: dict[int, dict[str, Any]]) -> None:
    found = compared(TABLE, table(made), table(landed))
    assert found.same + found.different + found.no_longer == len(landed)
    assert found.same + found.different + found.new == len(made)
    both = [at for at in landed if at in made]
    assert sum(one.rows for name, one in found.columns.items() if name == "city") == sum(
        landed[at]["city"] != made[at]["city"] for at in both
    )
