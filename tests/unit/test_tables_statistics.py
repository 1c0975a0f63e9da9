from __future__ import annotations

import datetime
import io
import json
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakebound.tables.statistics import MAX_STRING, delta_statistics

UTC = datetime.UTC


def statistics(column: pa.Array, **options: Any) -> dict[str, Any]:
    """Return Delta's statistics of a file with the one column ``c``."""
    buffer = io.BytesIO()
    pq.write_table(pa.table({"c": column}), buffer, store_schema=False, **options)
    buffer.seek(0)
    found: dict[str, Any] = json.loads(delta_statistics(pq.read_metadata(buffer), {("c",)}))
    return found


def bounds(column: pa.Array, **options: Any) -> tuple[Any, Any]:
    found = statistics(column, **options)
    return found["minValues"].get("c"), found["maxValues"].get("c")


def test_integers_dates_and_nulls() -> None:
    found = statistics(pa.array([5, None, -2], pa.int32()))
    assert found == {"numRecords": 3, "minValues": {"c": -2}, "maxValues": {"c": 5}, "nullCount": {"c": 1}}
    days = [datetime.date(2024, 2, 29), datetime.date(1969, 1, 1)]
    assert bounds(pa.array(days)) == ("1969-01-01", "2024-02-29")


def test_row_groups_are_put_together() -> None:
    found = statistics(pa.array([1, 9, None, 4], pa.int64()), row_group_size=1)
    assert (found["minValues"], found["maxValues"], found["nullCount"]) == ({"c": 1}, {"c": 9}, {"c": 1})


def test_nothing_is_claimed_of_only_nulls() -> None:
    found = statistics(pa.array([None, None], pa.string()))
    assert (found["minValues"], found["maxValues"], found["nullCount"]) == ({}, {}, {"c": 2})


def test_timestamps_are_rounded_outwards_to_milliseconds() -> None:
    moment = datetime.datetime(2024, 1, 1, 0, 0, 0, 1500, tzinfo=UTC)
    early = datetime.datetime(1960, 1, 1, 0, 0, 0, 1500, tzinfo=UTC)
    column = pa.array([moment, early], pa.timestamp("us", tz="UTC"))
    assert bounds(column) == ("1960-01-01T00:00:00.001Z", "2024-01-01T00:00:00.002Z")
    naive = pa.array([moment.replace(tzinfo=None)], pa.timestamp("us"))
    assert bounds(naive) == ("2024-01-01T00:00:00.001", "2024-01-01T00:00:00.002")


@pytest.mark.parametrize("tail", ["a", "\U0010ffff", "é"])
def test_long_strings_are_cut_to_bounds_that_still_hold(tail: str) -> None:
    text = "x" * MAX_STRING + tail + "tail"
    low, high = bounds(pa.array([text]))
    assert low is not None and len(low) == MAX_STRING and low <= text
    assert high is None or high.encode() >= text.encode()
    assert (high is None) == (tail == "\U0010ffff")


def test_a_string_at_the_bound_is_kept() -> None:
    text = "é" * MAX_STRING
    assert bounds(pa.array([text, "a"])) == ("a", text)


def test_a_float_has_no_upper_bound_because_nans_do_not_show() -> None:
    assert bounds(pa.array([1.5, math.nan, 3.5])) == (1.5, None)
    assert bounds(pa.array([math.nan])) == (None, None)
    assert bounds(pa.array([-math.inf, 1.0])) == (None, None)


@pytest.mark.parametrize("as_integer", [False, True])
def test_decimals_are_exact_or_left_out(as_integer: bool) -> None:
    column = pa.array([Decimal("-1.25"), Decimal("7.00")], pa.decimal128(9, 2))
    assert bounds(column, store_decimal_as_integer=as_integer) == (-1.25, 7)
    long = pa.array([Decimal("0.1234567890123456789")], pa.decimal128(38, 19))
    assert bounds(long) == (None, None)


def test_booleans_and_bytes_have_counts_only() -> None:
    for column in (pa.array([True, None]), pa.array([b"\xff", None])):
        found = statistics(column)
        assert (found["minValues"], found["maxValues"], found["nullCount"]) == ({}, {}, {"c": 1})


def test_structs_are_nested_and_lists_left_out() -> None:
    kind = pa.struct([("a", pa.int64()), ("b", pa.struct([("c", pa.string())]))])
    table = pa.table(
        {
            "s": pa.array([{"a": 1, "b": {"c": "x"}}, None, {"a": 3, "b": None}], kind),
            "l": pa.array([[1], [], None], pa.list_(pa.int32())),
        }
    )
    buffer = io.BytesIO()
    pq.write_table(table, buffer)
    wanted = {("s", "a"), ("s", "b", "c"), ("l",)}
    found = json.loads(delta_statistics(pq.read_metadata(buffer), wanted))
    assert found["minValues"] == {"s": {"a": 1, "b": {"c": "x"}}}
    assert found["maxValues"] == {"s": {"a": 3, "b": {"c": "x"}}}
    assert found["nullCount"] == {"s": {"a": 1, "b": {"c": 2}}}


def test_columns_that_were_not_asked_for_are_left_out() -> None:
    buffer = io.BytesIO()
    pq.write_table(pa.table({"a": [1], "b": [2]}), buffer)
    assert json.loads(delta_statistics(pq.read_metadata(buffer), {("b",)}))["minValues"] == {"b": 2}


def test_a_file_without_statistics_claims_nothing() -> None:
    found = statistics(pa.array([1, 2]), write_statistics=False)
    assert found == {"numRecords": 2, "minValues": {}, "maxValues": {}, "nullCount": {}}
