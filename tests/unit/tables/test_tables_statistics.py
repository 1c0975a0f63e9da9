"""What is known of a file's columns, and what Delta's log says of it."""

from __future__ import annotations

import datetime
import json
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakebound.tables.column_facts import ColumnFacts, file_facts, float_facts
from lakebound.tables.delta.statistics import MAX_STRING, columns_described, delta_statistics

UTC = datetime.UTC


def statistics(path: Path, table: pa.Table, wanted: set[tuple[str, ...]] | None = None, **options: Any) -> dict[str, Any]:
    """Return Delta's statistics of a file with these rows."""
    pq.write_table(table, path / "file.parquet", store_schema=False, **options)
    footer = pq.read_metadata(path / "file.parquet")
    columns = columns_described(table.schema, wanted or {(name,) for name in table.column_names})
    text = delta_statistics(footer.num_rows, file_facts(path / "file.parquet", footer), columns)
    found: dict[str, Any] = json.loads(text, parse_float=Decimal)
    return found


def bounds(path: Path, column: pa.Array, **options: Any) -> tuple[Any, Any]:
    found = statistics(path, pa.table({"c": column}), **options)
    return found["minValues"].get("c"), found["maxValues"].get("c")


def test_integers_dates_and_nulls(tmp_path: Path) -> None:
    found = statistics(tmp_path, pa.table({"c": pa.array([5, None, -2], pa.int32())}))
    assert found == {"numRecords": 3, "minValues": {"c": -2}, "maxValues": {"c": 5}, "nullCount": {"c": 1}}
    days = [datetime.date(2024, 2, 29), datetime.date(1969, 1, 1)]
    assert bounds(tmp_path, pa.array(days)) == ("1969-01-01", "2024-02-29")


def test_row_groups_are_put_together(tmp_path: Path) -> None:
    found = statistics(tmp_path, pa.table({"c": pa.array([1, 9, None, 4], pa.int64())}), row_group_size=1)
    assert (found["minValues"], found["maxValues"], found["nullCount"]) == ({"c": 1}, {"c": 9}, {"c": 1})


def test_nothing_is_claimed_of_only_nulls(tmp_path: Path) -> None:
    found = statistics(tmp_path, pa.table({"c": pa.array([None, None], pa.string())}))
    assert (found["minValues"], found["maxValues"], found["nullCount"]) == ({}, {}, {"c": 2})


def test_timestamps_are_rounded_outwards_to_milliseconds(tmp_path: Path) -> None:
    moment = datetime.datetime(2024, 1, 1, 0, 0, 0, 1500, tzinfo=UTC)
    early = datetime.datetime(1960, 1, 1, 0, 0, 0, 1500, tzinfo=UTC)
    column = pa.array([moment, early], pa.timestamp("us", tz="UTC"))
    assert bounds(tmp_path, column) == ("1960-01-01T00:00:00.001Z", "2024-01-01T00:00:00.002Z")
    naive = pa.array([moment.replace(tzinfo=None)], pa.timestamp("us"))
    assert bounds(tmp_path, naive) == ("2024-01-01T00:00:00.001", "2024-01-01T00:00:00.002")


@pytest.mark.parametrize("microseconds", [2**62, -(2**62), 253402300800000000])
def test_a_timestamp_that_python_has_no_date_for_is_no_bound(tmp_path: Path, microseconds: int) -> None:
    assert bounds(tmp_path, pa.array([microseconds], pa.timestamp("us", tz="UTC"))) == (None, None)
    assert bounds(tmp_path, pa.array([microseconds // 2**32], pa.date32()), use_dictionary=False) == (None, None)


def test_the_last_microsecond_of_the_year_9999_has_a_bound(tmp_path: Path) -> None:
    """Spark and deltalake add a millisecond to it."""
    last = pa.array([253402300799999999], pa.timestamp("us"))
    assert bounds(tmp_path, last) == ("9999-12-31T23:59:59.999", "9999-12-31T23:59:59.999")


@pytest.mark.parametrize("tail", ["a", "\U0010ffff", "é", "\U0010ffff" * 9])
def test_long_strings_are_cut_to_bounds_that_still_hold(tmp_path: Path, tail: str) -> None:
    for text in ("x" * MAX_STRING + tail + "tail", "x" * MAX_STRING + tail):
        low, high = bounds(tmp_path, pa.array([text]))
        assert len(low) == MAX_STRING and low.encode() <= text.encode() <= high.encode()


def test_a_string_at_the_bound_is_kept(tmp_path: Path) -> None:
    text = "é" * MAX_STRING
    assert bounds(tmp_path, pa.array([text, "a"])) == ("a", text)


def test_strings_that_no_footer_has_bounds_of_have_them_all_the_same(tmp_path: Path) -> None:
    low, high = bounds(tmp_path, pa.array(["b" * 5000, None, "a" * 5000]))
    assert low == "a" * MAX_STRING and high > "b" * 5000


def test_bytes_that_are_no_text_are_no_bound(tmp_path: Path) -> None:
    invalid = pa.array([b"\xff\xfe", b"a"], pa.binary()).view(pa.string())
    assert bounds(tmp_path, invalid) == ("a", None)


def test_floats_have_both_bounds_unless_there_is_a_nan_which_spark_takes_for_the_largest(tmp_path: Path) -> None:
    assert bounds(tmp_path, pa.array([1.5, None, 3.5])) == (Decimal("1.5"), Decimal("3.5"))
    assert bounds(tmp_path, pa.array([1.5, math.nan, 3.5])) == (Decimal("1.5"), None)
    assert bounds(tmp_path, pa.array([math.nan, None])) == (None, None)
    assert bounds(tmp_path, pa.array([-math.inf, math.inf])) == ("-Infinity", "Infinity")
    assert bounds(tmp_path, pa.array([1.1], pa.float32())) == (Decimal("1.100000023841858"), Decimal("1.100000023841858"))


def test_what_is_known_of_floats_is_put_together_over_parts() -> None:
    parts = [pa.table({"c": pa.array(values, pa.float64())}) for values in ([2.0, None], [math.nan], [-1.0, 7.0])]
    found: dict[tuple[str, ...], ColumnFacts] = {}
    for part in parts:
        found = float_facts(part, found)
    assert found == {("c",): ColumnFacts(nulls=1, low=-1.0, high=7.0, has_nan=True)}


@pytest.mark.parametrize("as_integer", [False, True])
@pytest.mark.parametrize(("precision", "scale"), [(9, 2), (18, 2), (38, 2)])
def test_decimals_are_exact(tmp_path: Path, as_integer: bool, precision: int, scale: int) -> None:
    column = pa.array([Decimal("-1.25"), Decimal("7.00")], pa.decimal128(precision, scale))
    assert bounds(tmp_path, column, store_decimal_as_integer=as_integer) == (Decimal("-1.25"), Decimal("7.00"))


def test_a_decimal_of_38_digits_keeps_them_all(tmp_path: Path) -> None:
    long = Decimal("-1234567890123456789.0123456789012345678")
    assert bounds(tmp_path, pa.array([long], pa.decimal128(38, 19))) == (long, long)


def test_booleans_have_bounds_and_bytes_have_counts_only(tmp_path: Path) -> None:
    assert bounds(tmp_path, pa.array([True, None, False])) == (False, True)
    found = statistics(tmp_path, pa.table({"c": pa.array([b"\xff", None])}))
    assert (found["minValues"], found["maxValues"], found["nullCount"]) == ({}, {}, {"c": 1})


def test_structs_are_nested_and_lists_left_out(tmp_path: Path) -> None:
    kind = pa.struct([("a", pa.int64()), ("b", pa.struct([("c", pa.string()), ("d", pa.float32())]))])
    table = pa.table(
        {
            "s": pa.array([{"a": 1, "b": {"c": "x", "d": 0.5}}, None, {"a": 3, "b": None}], kind),
            "l": pa.array([[1], [], None], pa.list_(pa.int32())),
        }
    )
    found = statistics(tmp_path, table, {("s", "a"), ("s", "b", "c"), ("s", "b", "d"), ("l",)})
    assert found["minValues"] == {"s": {"a": 1, "b": {"c": "x", "d": Decimal("0.5")}}}
    assert found["maxValues"] == {"s": {"a": 3, "b": {"c": "x", "d": Decimal("0.5")}}}
    assert found["nullCount"] == {"s": {"a": 1, "b": {"c": 2, "d": 2}}}


def test_a_name_with_a_dot_is_not_taken_for_a_field_of_a_struct(tmp_path: Path) -> None:
    table = pa.table({"a.b": [1, 2], "a": [{"b": 70}, {"b": 80}]})
    found = statistics(tmp_path, table, {("a.b",), ("a", "b")})
    assert found["minValues"] == {"a": {"b": 70}, "a.b": 1} and found["maxValues"] == {"a": {"b": 80}, "a.b": 2}


def test_columns_that_were_not_asked_for_are_left_out(tmp_path: Path) -> None:
    assert statistics(tmp_path, pa.table({"a": [1], "b": [2]}), {("b",)})["minValues"] == {"b": 2}


def test_of_a_file_without_statistics_the_columns_are_read(tmp_path: Path) -> None:
    found = statistics(tmp_path, pa.table({"c": [1, 2, None]}), write_statistics=False)
    assert found == {"numRecords": 3, "minValues": {"c": 1}, "maxValues": {"c": 2}, "nullCount": {"c": 1}}
