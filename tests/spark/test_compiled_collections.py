"""Lists, maps and structs with nulls go through a compiled plan as through a query: Spark's functions read its own format."""

from __future__ import annotations

import datetime

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import ArrayType, DateType, IntegerType, LongType, MapType, StringType, StructType

from lakebound_spark.batch.local_transform import LocalTransform
from lakebound_spark.batch.plan_keeper import PlanKeeper

pytestmark = pytest.mark.spark

NESTED = (
    StructType()
    .add("id", LongType())
    .add("ints", ArrayType(IntegerType()))
    .add("lists", ArrayType(ArrayType(IntegerType())))
    .add("days", ArrayType(DateType()))
    .add("counts", MapType(StringType(), IntegerType()))
    .add("items", ArrayType(StructType().add("a", "integer").add("b", "string")))
    .add("maps", ArrayType(MapType(StringType(), LongType())))
    .add("pair", StructType().add("a", ArrayType(LongType())).add("b", "string"))
)
EXPRESSIONS = (
    "transform(ints, x -> x + 1)",
    "transform(ints, x -> x IS NULL)",
    "filter(ints, x -> x > 1)",
    "exists(ints, x -> x > 2)",
    "forall(ints, x -> x > 0)",
    "aggregate(ints, 0, (a, x) -> a + coalesce(x, 0))",
    "zip_with(ints, ints, (a, b) -> a + b)",
    "transform_values(counts, (k, v) -> v + 1)",
    "transform_keys(counts, (k, v) -> k || 'x')",
    "map_filter(counts, (k, v) -> v > 0)",
    "map_zip_with(counts, counts, (k, a, b) -> a + b)",
    "array_sort(ints, (a, b) -> coalesce(a, 0) - coalesce(b, 0))",
    "transform(lists, x -> x)",
    "transform(lists, x -> transform(x, y -> y))",
    "transform(days, d -> date_add(d, 1))",
    "transform(items, x -> x.a + 1)",
    "transform(items, x -> x)",
    "transform(maps, m -> map_values(m))",
    "transform(maps, m -> map_entries(m))",
    "transform(maps, x -> x)",
    "map_from_arrays(transform(sequence(1, size(ints)), x -> string(x)), ints)",
    "map_from_entries(map_entries(counts))",
    "map_entries(counts)",
    "arrays_zip(ints, days)",
    "sort_array(ints)",
    "array_sort(ints)",
    "array_min(ints)",
    "array_distinct(lists)",
    "array_union(ints, array(1, null))",
    "array_except(lists, array(array(2)))",
    "arrays_overlap(ints, array(3))",
    "array_position(ints, 3)",
    "array_remove(ints, 3)",
    "flatten(lists)",
    "slice(ints, 1, 2)",
    "reverse(ints)",
    "concat(ints, ints)",
    "array_repeat(ints, 2)",
    "element_at(counts, 'b')",
    "get(ints, 1)",
    "hash(ints, lists, counts.a, items)",
    "xxhash64(ints, days, items)",
    "to_json(struct(ints, lists, counts, items, maps, pair))",
    "to_xml(struct(id, pair.b))",
    "CAST(ints AS ARRAY<STRING>)",
    "CAST(counts AS STRING)",
    "lists = lists",
    "items < items",
    "items[0]",
    "transform(pair.a, x -> x + id)",
    "named_struct('p', pair, 'n', pair.b)",
    "to_json(to_variant_object(struct(ints, counts)))",
    "CASE WHEN ints[0] = 1 THEN lists[0] END",
)


def nested(*, nulls: bool) -> pa.Table:
    none = None if nulls else 7
    row = {
        "id": 1,
        "ints": [1, none, 3],
        "lists": [[1, none], [], [2]],
        "days": [datetime.date(2026, 1, 1), None if nulls else datetime.date(2026, 1, 2)],
        "counts": [("a", 1), ("b", none)],
        "items": [{"a": none, "b": "x"}, {"a": 2, "b": None}],
        "maps": [[("a", none)], []],
        "pair": {"a": [1, none], "b": None},
    }
    others = {"id": 2, "ints": None, "counts": [], "items": None, "pair": None}, {"id": 3, "ints": [none], "lists": None}
    rows = [row, *({**row, **other} for other in others)]
    return pa.Table.from_pylist(rows, schema=to_arrow_schema(NESTED))


def test_collections_with_nulls(session: SparkSession) -> None:
    def function(frame: DataFrame) -> DataFrame:
        return frame.selectExpr("id", *(f"{expression} AS c{number}" for number, expression in enumerate(EXPRESSIONS)))

    keeper = PlanKeeper(function, dict, monotonic=lambda: 0.0)
    transform = LocalTransform(keeper, NESTED)
    for _ in range(3):
        transform(session, nested(nulls=False))
    assert (
        keeper._known is not None and keeper._known.with_tables is not None and keeper._known.with_tables.compiled is not None
    )
    for given in (nested(nulls=True), nested(nulls=False)):
        found, wanted = transform(session, given), function(session.createDataFrame(given, NESTED)).toArrow()
        for number, expression in enumerate(EXPRESSIONS):
            assert found[f"c{number}"].to_pylist() == wanted[f"c{number}"].to_pylist(), expression
