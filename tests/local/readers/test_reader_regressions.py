"""What readers once did not see, each by a case of its own; ``test_reader_rows`` looks for others of the kind."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, QueryBuilder
from tests.support.tables.delta_oracle import live_delta_files, live_statistics
from tests.support.tables.local_tables import Lander, genesis, lander, rows
from tests.support.tables.maintained import compaction

from lakebound.operations.maintenance.delta.engine import DeltaEngine
from lakebound.spec.table import TableSpec
from lakebound.tables.datafiles import write_data_files
from lakebound.tables.places import Places
from lakebound.tables.table import KAFKA_TYPE, open_table

DELTA = TableSpec(format="delta", name="shop.values")
BY_VALUE = TableSpec(format="delta", name="shop.values", partition_by=("value",))


def landed(spec: TableSpec, at: Places, kind: pa.DataType, values: Sequence[Any], name: str = "value") -> Lander:
    """Return an application that has landed one value per commit."""
    schema = pa.schema([pa.field("id", pa.int64()), pa.field(name, kind), pa.field("_kafka", KAFKA_TYPE)])
    open_table(spec, at).create(schema, genesis())
    app = lander(spec, at)
    for offset, value in enumerate(values):
        batch = rows(offset, offset + 1)
        columns = [batch["id"], pa.array([value], kind), batch["_kafka"]]
        app.land(offset, offset + 1, write_data_files(pa.table(columns, schema=schema), app.table.layout(), "t"))
    return app


def ids(rows_found: pa.Table) -> list[int]:
    found: list[int] = sorted(rows_found["id"].to_pylist())
    return found


# Compaction once took deltalake's statistics: decimals as floats, and a maximum without NaN.


def test_a_compacted_file_says_all_digits_of_a_decimal(at: Places) -> None:
    kind, values = pa.decimal128(38, 2), [Decimal("123456789012345678901234567890.11"), Decimal("-0.01")]
    landed(DELTA, at, kind, values)
    assert DeltaEngine(at).compact(DELTA, compaction(DELTA)).files_after == 1
    (stats,) = live_statistics(at.delta_path(DELTA))
    assert stats["minValues"]["value"] == values[1] and stats["maxValues"]["value"] == values[0]


def test_a_compacted_file_with_a_nan_has_no_largest_value(at: Places) -> None:
    """Spark takes NaN for larger than any number: it would pass over the file where it looks for more than 5."""
    landed(DELTA, at, pa.float64(), [1.0, math.nan, 2.0])
    assert DeltaEngine(at).compact(DELTA, compaction(DELTA)).files_after == 1
    (stats,) = live_statistics(at.delta_path(DELTA))
    assert stats["minValues"]["value"] == 1.0 and "value" not in stats["maxValues"]


# deltalake 1.6.6 takes a bound that is missing for ``col <= null``.


@pytest.mark.parametrize("is_compacted", [False, True], ids=["appended", "compacted"])
@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.float64(), [0.5, -0.0, math.inf, -math.inf, 1e308]),
        (pa.float32(), [0.5, 0.0, math.inf, -math.inf, 1e38]),
        (pa.bool_(), [True, False, True]),
        (pa.string(), ["a" * 5000, "b" * 5000, ""]),
        (pa.decimal128(38, 18), [Decimal("0.1"), Decimal("12345678901234567890.123456789012345678"), Decimal("-0.1")]),
        (pa.decimal128(38, 0), [Decimal(10**38 - 1), Decimal(1 - 10**38), Decimal(0)]),
    ],
    ids=lambda value: None if isinstance(value, list) else str(value),
)
def test_deltalakes_own_reader_finds_each_value(kind: pa.DataType, values: list[Any], is_compacted: bool, at: Places) -> None:
    landed(DELTA, at, kind, values)
    if is_compacted:
        DeltaEngine(at).compact(DELTA, compaction(DELTA))
    dataset = DeltaTable(str(at.delta_path(DELTA))).to_pyarrow_dataset()
    for value in values:
        same = [number for number, one in enumerate(values) if one == value]
        assert ids(dataset.to_table(filter=ds.field("value") == pa.scalar(value, kind))) == same
        not_less = [number for number, one in enumerate(values) if one >= value]
        assert ids(dataset.to_table(filter=ds.field("value") >= pa.scalar(value, kind))) == not_less


# A column `a.b` and a struct `a{b}` once had each other's statistics.


@pytest.mark.parametrize("is_compacted", [False, True], ids=["appended", "compacted"])
def test_a_name_with_a_dot_and_a_struct_have_each_their_own_bounds(is_compacted: bool, at: Places) -> None:
    inside = pa.struct([pa.field("b", pa.int64())])
    schema = pa.schema(
        [pa.field("id", pa.int64()), pa.field("a.b", pa.int64()), pa.field("a", inside), pa.field("_kafka", KAFKA_TYPE)]
    )
    open_table(DELTA, at).create(schema, genesis())
    app = lander(DELTA, at)
    for offset in range(3):
        batch = rows(offset, offset + 1)
        columns = [batch["id"], pa.array([offset], pa.int64()), pa.array([{"b": 100 + offset}], inside), batch["_kafka"]]
        app.land(offset, offset + 1, write_data_files(pa.table(columns, schema=schema), app.table.layout(), "t"))
    if is_compacted:
        DeltaEngine(at).compact(DELTA, compaction(DELTA))
    path = at.delta_path(DELTA)
    for stats in live_statistics(path):
        assert stats["minValues"]["a.b"] < 100 <= stats["minValues"]["a"]["b"]
        assert stats["maxValues"]["a.b"] < 100 <= stats["maxValues"]["a"]["b"]
    answer = QueryBuilder().register("t", DeltaTable(str(path)))
    assert ids(pa.table(answer.execute("SELECT id FROM t WHERE a['b'] = 101").read_all())) == [1]
    assert pl.scan_delta(str(path)).filter(pl.col("a.b") == 2).select("id").collect()["id"].to_list() == [2]


# Polars reads partition columns from the files or from folders' names, never from the log.


@pytest.mark.parametrize("is_compacted", [False, True], ids=["appended", "compacted"])
def test_polars_reads_the_columns_that_a_delta_table_is_partitioned_by(is_compacted: bool, at: Places) -> None:
    values = ["a", None, "b c/d=%é", "x" * 300, "a", None, "x" * 300, ""]
    landed(BY_VALUE, at, pa.string(), values)
    if is_compacted:
        assert DeltaEngine(at).compact(BY_VALUE, compaction(BY_VALUE)).files_after == 3
    frame = pl.scan_delta(str(at.delta_path(BY_VALUE)))
    assert frame.sort("id").collect()["value"].to_list() == [value or None for value in values], (
        "by Delta's protocol an empty text is null"
    )
    assert sorted(frame.filter(pl.col("value") == "a").collect()["id"].to_list()) == [0, 4]
    assert sorted(frame.filter(pl.col("value").is_null()).collect()["id"].to_list()) == [1, 5, 7]


# Parquet's own bounds leave NaN out, and Spark and DataFusion pass over row groups by them.


@pytest.mark.parametrize("is_compacted", [False, True], ids=["appended", "compacted"])
@pytest.mark.parametrize("kind", [pa.float32(), pa.float64(), pa.struct([pa.field("x", pa.float64())])], ids=str)
def test_a_file_with_floating_point_numbers_has_no_bounds_of_them_in_its_footer(
    kind: pa.DataType, is_compacted: bool, at: Places
) -> None:
    values = [1.0, math.nan]
    is_struct = pa.types.is_struct(kind)
    landed(DELTA, at, kind, [{"x": value} for value in values] if is_struct else values)
    if is_compacted:
        DeltaEngine(at).compact(DELTA, compaction(DELTA))
    column = "value['x']" if is_struct else "value"
    answer = QueryBuilder().register("t", DeltaTable(str(at.delta_path(DELTA))))
    assert ids(pa.table(answer.execute(f"SELECT id FROM t WHERE {column} > 5").read_all())) == [1]
    for file in live_delta_files(at.delta_path(DELTA)):
        group = pq.read_metadata(file.path).row_group(0)
        chunks = [group.column(number) for number in range(group.num_columns)]
        bounded = {chunk.path_in_schema for chunk in chunks if chunk.is_stats_set and chunk.statistics.has_min_max}
        assert "id" in bounded and not any(name.startswith("value") for name in bounded)
