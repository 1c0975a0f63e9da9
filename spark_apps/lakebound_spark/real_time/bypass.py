"""Bad records pass by a transform: its plan is changed so that rows with a problem reach its end, whatever it filters or joins.

Real-Time Mode reads a source once per query (``IDENTICAL_SOURCES_IN_UNION_NOT_SUPPORTED``), so good and bad records cannot go
two ways and meet again. They go one way: ``_kafka`` carries the problem of a bad one, which a transform must leave as it is.
Each node between the source and the end that could lose such a row is replaced by one that does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from lakebound.spec.ddl import quoted
from lakebound.spec.pipeline import KAFKA_COLUMN
from lakebound_spark.batch.spark_objects import items_of
from lakebound_spark.batch.transform import Transform
from lakebound_spark.batch.transform_plan import SOURCE_ALIAS, is_source

PROBLEM_FIELD = "problem"
"""Of ``_kafka`` here: null for a good record."""
_MATCHED = "_lakebound_matched"
_CATALYST = "org.apache.spark.sql.catalyst"
_EXPLODES = ("Explode", "PosExplode")
_KEPT_AS_THEY_ARE = ("Project", "SubqueryAlias", "ResolvedHint", "View")


class BypassError(Exception):
    """A transform does what a bad record would not survive; the text says what, as an author would call it."""


def transform_with_bypass(session: SparkSession, transform: Transform, source: DataFrame) -> DataFrame:
    """Return what the transform makes of the rows, and a row for each one that has a problem.

    Args:
        session: Spark's.
        transform: The pipeline's.
        source: Its input; ``_kafka`` has the further field ``problem``. Columns of rows with a problem are null.

    Raises:
        BypassError: It does something of which it is not known how a bad record survives it.
    """
    output = transform(source.alias(SOURCE_ALIAS))
    bypass = _Bypass(session)
    plan = bypass.nullability(bypass.rebuilt(output._jdf.queryExecution().analyzed()))
    return bypass.frame(plan).select(*map(quoted, output.columns))


class _Bypass:
    def __init__(self, session: SparkSession) -> None:
        self._session = session
        self._jvm: Any = session._jvm

    def frame(self, plan: Any) -> DataFrame:
        """Return the DataFrame of a plan."""
        rows = self._jvm.org.apache.spark.sql.classic.Dataset.ofRows(self._session._jsparkSession, plan)
        return DataFrame(rows, self._session)

    def nullability(self, plan: Any) -> Any:
        """Return the plan with columns that may be null now, because a join became an outer one."""
        return self._object(f"{_CATALYST}.analysis.UpdateAttributeNullability").apply(plan)

    def rebuilt(self, node: Any) -> Any:
        """Return a node, and all below it down to the source, as bad rows survive it."""
        kind = node.nodeName()
        if is_source(node):
            return node
        children = items_of(node.children())
        at = next(index for index, child in enumerate(children) if _leads_to_source(child))
        children[at] = self.rebuilt(children[at])
        if kind == "Join":
            return self._join(node, children, at)
        node = node.withNewChildren(self._seq(children))
        if kind == "Filter":
            return self._filter(node.condition(), children[at])
        if kind == "Generate":
            return self._generate(node, children[at])
        if kind not in _KEPT_AS_THEY_ARE:
            raise BypassError(f"uses {kind}")
        return node

    def _filter(self, condition: Any, child: Any) -> Any:
        kept = self._jvm.org.apache.spark.sql.catalyst.expressions.Or(condition, self._has_problem(child))
        return self._jvm.org.apache.spark.sql.catalyst.plans.logical.Filter(kept, child)

    def _join(self, node: Any, children: list[Any], at: int) -> Any:
        """An inner join becomes an outer one whose good rows must have found a partner."""
        kind = node.joinType().sql()
        condition = self._of_good_rows(node.condition(), children[at])
        plans = self._jvm.org.apache.spark.sql.catalyst.plans.logical
        if (kind in ("LEFT OUTER", "LEFT ANTI") and at == 0) or (kind == "RIGHT OUTER" and at == 1):
            return plans.Join(children[0], children[1], node.joinType(), condition, node.hint())
        if kind != "INNER":
            raise BypassError(f"joins by {kind.lower()}")
        other = self.frame(children[1 - at]).selectExpr("*", f"true AS {_MATCHED}")
        children[1 - at] = other._jdf.queryExecution().analyzed()
        side = "LeftOuter" if at == 0 else "RightOuter"
        outer = self._object(f"{_CATALYST}.plans.{side}")
        joined = plans.Join(children[0], children[1], outer, condition, node.hint())
        matched = self._jvm.org.apache.spark.sql.catalyst.expressions.IsNotNull(_attribute(joined, _MATCHED))
        kept = self._filter(matched, joined)
        return plans.Project(self._seq(items_of(node.output())), kept)

    def _of_good_rows(self, condition: Any, child: Any) -> Any:
        """Return a join's condition, which no bad row meets: nulls may, and so may its position in Kafka.

        By an anti join such a row would get lost, and by an outer one be there several times.
        """
        expressions = self._jvm.org.apache.spark.sql.catalyst.expressions
        is_good = expressions.Not(self._has_problem(child))
        both = expressions.And(condition.get(), is_good) if condition.isDefined() else is_good
        return self._jvm.scala.Option.apply(both)

    def _generate(self, node: Any, child: Any) -> Any:
        """A bad row has a null array: it gets one of one null, which gives it one row."""
        generator = node.generator()
        if generator.getClass().getSimpleName() not in _EXPLODES or node.outer():
            if node.outer():
                return node
            raise BypassError(f"uses {generator.prettyName()}")
        array = generator.children().apply(0)
        if array.dataType().typeName() != "array":
            raise BypassError("explodes a map")
        expressions = self._jvm.org.apache.spark.sql.catalyst.expressions
        null = self._object(f"{_CATALYST}.expressions.Literal").create(None, array.dataType().elementType())
        one = self._object(f"{_CATALYST}.expressions.CreateArray").apply(self._seq([null]))
        guarded = generator.withNewChildren(self._seq([expressions.If(self._has_problem(child), one, array)]))
        return self._jvm.org.apache.spark.sql.catalyst.plans.logical.Generate(
            guarded, node.unrequiredChildIndex(), False, node.qualifier(), node.generatorOutput(), child
        )

    def _has_problem(self, child: Any) -> Any:
        kafka = _attribute(child, KAFKA_COLUMN)
        index = StructType.fromJson(_json(kafka.dataType())).names.index(PROBLEM_FIELD)
        expressions = self._jvm.org.apache.spark.sql.catalyst.expressions
        name = self._jvm.scala.Option.apply(PROBLEM_FIELD)
        return expressions.IsNotNull(expressions.GetStructField(kafka, index, name))

    def _seq(self, items: Sequence[Any]) -> Any:
        return self._jvm.PythonUtils.toSeq(list(items))

    def _object(self, name: str) -> Any:
        """Return an object of Scala's."""
        return getattr(getattr(self._jvm, f"{name}$"), "MODULE$")


def _json(kind: Any) -> Any:
    import json

    return json.loads(kind.json())


def _attribute(plan: Any, name: str) -> Any:
    return next(one for one in reversed(items_of(plan.output())) if one.name() == name)


def _leads_to_source(node: Any) -> bool:
    return is_source(node) or any(map(_leads_to_source, items_of(node.children())))
