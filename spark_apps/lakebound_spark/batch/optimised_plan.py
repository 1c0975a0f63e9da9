"""What Spark's optimiser makes of a kept plan, once: from then on Spark's own rule evaluates each slice by it.

To analyse, optimise and plan takes as long as to compute a few hundred rows, and the optimiser only looks for what it has found
before. Its rule ``ConvertToLocalRelation`` computes projections and filters of local relations, as it does in each query.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from lakebound_spark.batch.spark_objects import SparkObjects, items_of, spark_objects

_TIMES = ("date", "timestamp", "timestamp_ntz")


@dataclass(frozen=True)
class OptimisedPlan:
    """Projections and filters that Spark's rule evaluates.

    Attributes:
        columns: Of the rows below them.
        nodes: From the lowest to the root.
        java_schema: Of what the root makes.
    """

    columns: Any
    nodes: tuple[Any, ...]
    java_schema: Any

    def rows_of(self, session: SparkSession, relation: Any) -> Any:
        """Return what it makes of a local relation's rows, as a sequence of Scala's."""
        spark = spark_objects(session._jvm)
        return _evaluated(spark, self.nodes, spark.relation(self.columns, relation.data())).data()


def optimised(session: SparkSession, columns: Any, analysed: Callable[[Any], Any]) -> OptimisedPlan | None:
    """Return the optimised form of a plan; None where Spark's rule does not evaluate all of it, or its time would stand still.

    Args:
        session: That in which the plan was analysed.
        columns: Of the rows that the plan is above.
        analysed: Makes the plan above a leaf.
    """
    spark = spark_objects(session._jvm)
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
    made = OptimisedPlan(node.output(), tuple(nodes), plan.schema())
    empty = _evaluated(spark, made.nodes, spark.relation(made.columns, spark.nil))
    return made if empty.nodeName() == "LocalRelation" else None


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


def _evaluated(spark: SparkObjects, nodes: tuple[Any, ...], relation: Any) -> Any:
    """Return the local relation that Spark's rule makes of nodes above a local relation."""
    for node in nodes:
        relation = spark.evaluate(node.withNewChildren(spark.to_seq([relation])))
    return relation
