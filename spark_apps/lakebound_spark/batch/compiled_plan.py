"""The code that Spark generates of a kept plan, once: from then on each slice goes through it, row by row.

To analyse, optimise and plan takes as long as to compute a few hundred rows, and finds only what it has found before. Where the
optimiser leaves projections and filters above the rows, Spark compiles each of them to a function of a row, as it does in the
tasks of a query. Arrow's rows of the driver go through these functions back to Arrow, one at a time: no DataFrame, no copies.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import reduce
from typing import Any

from pyspark.sql import SparkSession

from lakebound_spark.batch.spark_objects import SparkObjects, items_of, spark_objects

_TIMES = ("date", "timestamp", "timestamp_ntz")
_COLLECTIONS = ('"type":"array"', '"type":"map"')
"""In the JSON of a type that is one, or has one inside."""


@dataclass(frozen=True)
class CompiledPlan:
    """Projections and filters as Spark has compiled them. A projection has one row at a time, so slices go through one by one.

    Attributes:
        steps: Take an iterator of rows, and return the next one's; from the lowest to the root.
        java_schema: Of what the root makes.
        day: When it was compiled. A text of the function's own such as '08:00' means this day for ever, where Spark has made a
            time of it. It does so in more ways than are looked for here, such as within an ``IF``.
    """

    steps: tuple[Callable[[Any], Any], ...]
    java_schema: Any
    day: date

    @property
    def is_of_today(self) -> bool:
        """Whether the day has not ended on which it was compiled."""
        return self.day == _today()

    def rows_of(self, rows: Any) -> Any:
        """Return the iterator of what it makes of the rows of another one, which are computed as they are asked for."""
        return reduce(lambda made, step: step(made), self.steps, rows)


def compiled(session: SparkSession, columns: Any, analysed: Callable[[Any], Any]) -> CompiledPlan | None:
    """Return what Spark compiles of a plan; None where that is not all of it, or its time would stand still.

    Args:
        session: That in which the plan was analysed.
        columns: Of the rows that the plan is above.
        analysed: Makes the plan above a leaf.
    """
    spark, day = spark_objects(session._jvm), _today()
    root = analysed(_unknown_rows(spark, session, columns))
    # The optimiser replaces the present time by a constant.
    if root.containsPattern(spark.tree_patterns.CURRENT_LIKE()) or _has_time_of_text(spark, spark.replace_expressions(root)):
        return None
    root.setAnalyzed()
    node = plan = spark.datasets.ofRows(session._jsparkSession, root).queryExecution().optimizedPlan()
    nodes: list[Any] = []
    while node.nodeName() in ("Project", "Filter"):
        nodes.insert(0, node)
        node = node.child()
    if not nodes or node.nodeName() != "LogicalRDD":
        return None
    if not _is_computed_by_rows(spark, nodes, node.output()):
        return None
    below = [node, *nodes[:-1]]
    steps = [_step(spark, above, of.output()) for above, of in zip(nodes, below, strict=True)]
    return CompiledPlan((*_copied(spark, node.output()), *steps), plan.schema(), day)


def _today() -> date:
    """Return the day in the zone of landing applications (``spark.sql.session.timeZone``)."""
    return datetime.now(UTC).date()


def _copied(spark: SparkObjects, columns: Any) -> list[Callable[[Any], Any]]:
    """Return what makes rows of Spark's own format of Arrow's, where columns have lists or maps inside.

    Functions such as ``transform`` do not look for nulls in Arrow's arrays, and then these raise (``ColumnarArray.get``).
    """
    kinds = [str(column.dataType().json()) for column in items_of(columns)]
    if not any(words in kind for words in _COLLECTIONS for kind in kinds):
        return []
    projection = spark.projections.create(columns, columns)
    return [lambda rows: rows.map(projection)]


def _has_time_of_text(spark: SparkObjects, node: Any) -> bool:
    """Whether a text that is no column's becomes a time: of 'now', 'today' and '08:00' the present says which."""
    found = any(_makes_time_of_text(spark, expression) for expression in items_of(node.expressions()))
    return found or any(_has_time_of_text(spark, child) for child in items_of(node.children()))


def _makes_time_of_text(spark: SparkObjects, expression: Any) -> bool:
    if not expression.containsPattern(spark.tree_patterns.CAST()):
        return False
    if expression.nodeName() == "Cast" and expression.dataType().typeName() in _TIMES:
        child = expression.child()
        if child.foldable() and child.dataType().typeName().startswith("string"):
            return True
    return any(_makes_time_of_text(spark, child) for child in items_of(expression.children()))


def _unknown_rows(spark: SparkObjects, session: SparkSession, columns: Any) -> Any:
    """Return a leaf of which the optimiser knows the columns only."""
    unknown = spark.option(None)
    no_rows = session._jsc.emptyRDD().rdd()
    physical = (spark.unknown_partitioning(0), spark.nil)
    return spark.new_scan(columns, no_rows, *physical, False, unknown, session._jsparkSession, unknown, unknown)


def _is_computed_by_rows(spark: SparkObjects, nodes: list[Any], columns: Any) -> bool:
    """Whether Spark's own rule computes the nodes of a local relation: row by row, without a job or a function in Python."""
    relation = spark.relation(columns, spark.nil)
    for node in nodes:
        relation = spark.evaluate(node.withNewChildren(spark.to_seq([relation])))
    return bool(relation.nodeName() == "LocalRelation")


def _step(spark: SparkObjects, node: Any, columns: Any) -> Callable[[Any], Any]:
    """Return a node as a function of iterators.

    What was compiled has only to be initialised where it is not deterministic. (py4j would not do it twice: it knows a class by
    its name, and all that are generated have the same.)
    """
    if node.nodeName() == "Filter":
        condition = spark.function_of(spark.predicates.create(node.condition(), columns))
        return lambda rows: rows.filter(condition)
    projection = spark.projections.create(node.projectList(), columns)
    return lambda rows: rows.map(projection)
