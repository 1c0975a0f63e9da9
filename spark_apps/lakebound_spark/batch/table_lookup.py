"""A join of the records with a small table of unique keys, as a lookup: Spark computes it while it plans, without a job.

Spark broadcasts the rows of such a table by a job, and joins by another one, which takes longer than all else that a few
hundred records need. A projection of a local relation it evaluates by itself (its rule ``ConvertToLocalRelation``). So the
table becomes a literal: an array of maps from the key to the row. The key's hash says in which map it is, so each holds few.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from lakebound_spark.batch.local_relation import LocalRelations, arrow_of
from lakebound_spark.batch.spark_objects import items_of, spark_objects

_MOST_ROWS = 4_096
_MOST_BYTES = 256 * 1024
"""Spark hashes and compares a literal whenever it compares plans, so a large one costs more than the join does."""
_KEYS_PER_MAP = 2
_FOUND = "_lakebound_found"
_SIDES = ("LEFT OUTER", "RIGHT OUTER")
_KEY_TYPES = frozenset({"string", "tinyint", "smallint", "int", "bigint", "date"})
"""Of which two values are equal where their bytes are. A string with a collation has another name."""
_COLUMN_TYPES: tuple[type[T.DataType], ...] = (
    T.BinaryType,
    T.BooleanType,
    T.ByteType,
    T.DateType,
    T.DecimalType,
    T.DoubleType,
    T.FloatType,
    T.IntegerType,
    T.LongType,
    T.ShortType,
    T.TimestampNTZType,
    T.TimestampType,
)


def lookup_in_place_of(session: SparkSession, join: Any, records_at: int, table: Any) -> list[Any] | None:
    """Return nodes that give what a join gives, the lowest first, each with one child; None where it must stay a join.

    Args:
        session: Spark's.
        join: An analysed join.
        records_at: Which of its children the records come from; it becomes the child of the lowest node.
        table: A local relation: the rows of the other one.
    """
    kind = join.joinType().sql()
    if kind not in ("INNER", _SIDES[records_at]) or table.data().size() > _MOST_ROWS:
        return None
    records, columns = join.children().apply(records_at), items_of(table.output())
    found = _key(session, join, records, columns)
    if found is None:
        return None
    key, position = found
    maps = _maps_of(session, table, position)
    if maps is None:
        return None
    spark, expressions = spark_objects(session._jvm), _expressions(session)
    place = _place(session, key, _count(table))
    value = expressions.GetMapValue(expressions.GetArrayItem(maps, place, False), key)
    row = spark.alias(value, _FOUND, spark.expression_ids.newExprId())
    nodes = [spark.new_project(spark.to_seq([*items_of(records.output()), row]), records)]
    if kind == "INNER":
        nodes.append(spark.new_filter(expressions.IsNotNull(row.toAttribute()), nodes[-1]))
    output = items_of(join.output())
    # A join has the columns of its left side, then those of its right one.
    first = len(output) - len(columns) if records_at == 0 else 0
    for at in range(len(columns)):
        output[first + at] = _column(session, row.toAttribute(), at, output[first + at])
    return [*nodes, spark.new_project(spark.to_seq(output), nodes[-1])]


def _column(session: SparkSession, row: Any, at: int, column: Any) -> Any:
    """Return a column of the join as a field of the row that was found."""
    spark, expressions = spark_objects(session._jvm), _expressions(session)
    field = expressions.GetStructField(row, at, spark.option(column.name()))
    if not column.nullable():
        field = expressions.KnownNotNull(field)
    return spark.alias(field, column.name(), column.exprId(), column.qualifier(), column.metadata())


def _key(session: SparkSession, join: Any, records: Any, columns: Sequence[Any]) -> tuple[Any, int] | None:
    """Return the expression of the records that equals a column of the table, and which; None for another condition."""
    if join.condition().isEmpty():
        return None
    condition = join.condition().get()
    if condition.getClass().getSimpleName() != "EqualTo" or condition.containsPattern(
        spark_objects(session._jvm).tree_patterns.PYTHON_UDF()
    ):
        return None
    for own, theirs in ((condition.left(), condition.right()), (condition.right(), condition.left())):
        if theirs.getClass().getSimpleName() != "AttributeReference" or theirs.dataType().simpleString() not in _KEY_TYPES:
            continue
        wanted = theirs.exprId()
        at = next((index for index, column in enumerate(columns) if column.exprId().equals(wanted)), None)
        if at is not None and own.references().subsetOf(records.outputSet()):
            return own, at
    return None


def _count(table: Any) -> int:
    """Return how many maps a table becomes."""
    return max(1, int(table.data().size()) // _KEYS_PER_MAP)


def _place(session: SparkSession, key: Any, count: int) -> Any:
    """Return an expression: in which map a key is."""
    spark, expressions = spark_objects(session._jvm), _expressions(session)
    return expressions.Pmod(expressions.Murmur3Hash(spark.to_seq([key]), 42), spark.literals.apply(count))


def _maps_of(session: SparkSession, table: Any, key: int) -> Any | None:
    """Return the rows of a table by one of its columns, as a literal: an array of maps.

    None where a key has two rows, or a column has a type beyond these.
    """
    spark, expressions = spark_objects(session._jvm), _expressions(session)
    columns, count = items_of(table.output()), _count(table)
    place = spark.alias(_place(session, columns[key], count), "place", spark.expression_ids.newExprId())
    plan = spark.new_project(spark.to_seq([*columns, place]), table)
    frame = DataFrame(spark.datasets.ofRows(session._jsparkSession, plan), session)
    types = [field.dataType for field in frame.schema][:-1]
    if not all(kind == T.StringType() or isinstance(kind, _COLUMN_TYPES) for kind in types):
        return None
    names = [f"c{number}" for number in range(len(types))]
    rows = arrow_of(frame).rename_columns([*names, "place"])
    rows = rows.filter(pc.is_valid(rows[names[key]])).sort_by("place").combine_chunks()
    if rows.nbytes > _MOST_BYTES or pc.count_distinct(rows[names[key]]).as_py() < rows.num_rows:
        return None
    row_type = T.StructType([T.StructField(name, kind) for name, kind in zip(names, types, strict=True)])
    schema = T.StructType([T.StructField("maps", T.ArrayType(T.MapType(types[key], row_type, False), False))])
    made = LocalRelations(schema)(session, pa.table({"maps": _array_of_maps(rows, names, key, count)}))
    literal = made._jdf.queryExecution().analyzed()
    return expressions.Literal(literal.data().apply(0).getArray(0), literal.output().apply(0).dataType())


def _array_of_maps(rows: pa.Table, names: Sequence[str], key: int, count: int) -> pa.ListArray:
    """Return an array of one value: for each place a map from the key to the row."""
    columns = [_in_one(rows[name]) for name in names]
    ends = np.searchsorted(rows["place"].to_numpy(), np.arange(count), side="right")
    begins = pa.array(np.concatenate([[0], ends]), pa.int32())
    maps = pa.MapArray.from_arrays(begins, columns[key], pa.StructArray.from_arrays(columns, names=list(names)))
    return pa.ListArray.from_arrays(pa.array([0, count], pa.int32()), maps)


def _in_one(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)


def _expressions(session: SparkSession) -> Any:
    """Return where Spark's expressions are."""
    return session._jvm.org.apache.spark.sql.catalyst.expressions  # type: ignore[union-attr]
