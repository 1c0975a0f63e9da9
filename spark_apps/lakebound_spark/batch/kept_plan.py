"""The plan that a function made of some rows: the rows of the next slices take their place in it.

A small table that the records are joined with is read once for all slices of a plan, and where its keys are unique, the join
becomes a lookup (``table_lookup``).
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from lakebound.redaction import redacted
from lakebound_spark.batch.compiled_plan import CompiledPlan, compiled
from lakebound_spark.batch.local_relation import LocalRelations, arrow_of
from lakebound_spark.batch.passed_columns import Narrowing
from lakebound_spark.batch.spark_objects import SparkObjects, items_of, spark_objects
from lakebound_spark.batch.table_lookup import lookup_in_place_of

log = logging.getLogger(__name__)

_LARGEST_TABLE_BYTES = 4 * 1024 * 1024
"""Of a table, as Spark estimates it: files, or rows."""
_MOST_TABLE_ROWS = 100_000
"""Files of few bytes may hold many rows. These stay in the JVM, which has 1 GiB where nobody asks for more."""
NAMES_AND_HINTS = ("SubqueryAlias", "ResolvedHint")


@dataclass(frozen=True)
class Step:
    """A node of a plan above the rows, with its other children."""

    node: Any
    before: tuple[Any, ...]
    after: tuple[Any, ...]

    def over(self, spark: SparkObjects, below: Any) -> Any:
        """Return a copy of the node above another one, and its other children."""
        return self.node.withNewChildren(spark.to_seq([*self.before, below, *self.after]))


@dataclass(frozen=True)
class KeptPlan:
    """An analysed plan.

    Attributes:
        columns: Of the rows in it.
        steps: The nodes above them, from the lowest to the root.
        schema: Of what it makes.
        narrowing: What it gets of the records, and what is missing in what it makes; None where it gets and makes all.
        compiled: What rows go through; None where Spark is to plan each time.
    """

    columns: Any
    steps: tuple[Step, ...]
    schema: StructType
    narrowing: Narrowing | None = None
    compiled: CompiledPlan | None = None

    @property
    def code(self) -> CompiledPlan | None:
        """What rows go through today; None where nothing was compiled, or on another day."""
        return self.compiled if self.compiled is not None and self.compiled.is_of_today else None

    def made(self, session: SparkSession, rows: pa.Table, relations: LocalRelations) -> pa.Table:
        """Return what the function makes of other rows.

        Args:
            session: That in which the plan was analysed.
            rows: Of the schema of those in the plan.
            relations: Give them to Spark.
        """
        code = self.code
        if code is None:
            return arrow_of(self.over(session, analysed(relations(session, rows))))
        return relations.through(session, rows, code.rows_of, code.java_schema, self.schema)

    def over(self, session: SparkSession, rows: Any) -> DataFrame:
        """Return what the function makes of other rows.

        Args:
            session: That in which the plan was analysed.
            rows: A local relation, or a scan, of the same schema.
        """
        spark = spark_objects(session._jvm)
        leaf = spark.scan(self.columns, rows, session) if is_scan(rows) else spark.relation(self.columns, rows.data())
        root = _nodes(spark, leaf, self.steps)[-1]
        root.setAnalyzed()  # Its parts are: the analysis is most of what is to be spared.
        frame = DataFrame(spark.datasets.ofRows(session._jsparkSession, root), session)
        frame.__dict__["schema"] = self.schema  # PySpark keeps it there when it has asked the JVM.
        return frame

    def compiled_once(self, session: SparkSession) -> KeptPlan:
        """Return the same, which Spark plans and compiles now instead of for each slice, where that makes no difference."""
        if any(step.before or step.after for step in self.steps):
            return self
        spark = spark_objects(session._jvm)
        return replace(self, compiled=compiled(session, self.columns, lambda leaf: _nodes(spark, leaf, self.steps)[-1]))

    def tables_now(self, session: SparkSession) -> list[Any]:
        """Return what stands beside the records: of small tables that they are joined with the rows of now, else the nodes."""
        return [
            self._read(session, node) if step.node.nodeName() == "Join" else node
            for step in self.steps
            for node in (*step.before, *step.after)
        ]

    def with_tables(self, session: SparkSession, tables: Sequence[Any]) -> KeptPlan:
        """Return the same with what ``tables_now`` has returned beside the records."""
        left, steps = iter(tables), list[Step]()
        for step in self.steps:
            before, after = (tuple(next(left) for _ in nodes) for nodes in (step.before, step.after))
            steps += _joined(session, replace(step, before=before, after=after))
        return replace(self, steps=tuple(steps))

    def _read(self, session: SparkSession, node: Any) -> Any:
        spark = spark_objects(session._jvm)
        if node.nodeName() in NAMES_AND_HINTS:
            return node.withNewChildren(spark.to_seq([self._read(session, node.children().apply(0))]))
        if node.nodeName() == "LocalRelation":
            return node
        execution = spark.datasets.ofRows(session._jsparkSession, node).queryExecution()
        if int(execution.optimizedPlan().stats().sizeInBytes()) > _LARGEST_TABLE_BYTES:
            return node
        rows = execution.executedPlan().executeTake(_MOST_TABLE_ROWS + 1)
        if len(rows) > _MOST_TABLE_ROWS:
            return node
        return spark.relation(node.output(), spark.array_to_seq(rows))


def kept(records: DataFrame, output: DataFrame) -> KeptPlan | None:
    """Return the function's plan to be used for other rows; None where these rows cannot be replaced in it.

    Args:
        records: What the function got: a local relation, or a scan.
        output: What it returned.
    """
    plan = analysed(output)
    # A subquery may read the records as well, and so may the other side of a join.
    if not plan.deterministic() or plan.subqueriesAll().size():
        return None
    found = list(_paths(records, plan, _identity(records, analysed(records)), ()))
    if len(found) != 1:
        return None
    [(of_plan, steps)] = found
    # A copy of the root would share the set to which Spark adds the id of each DataFrame that is made of it.
    spark = spark_objects(records.sparkSession._jvm)
    plan.unsetTagValue(spark.datasets.DATASET_ID_TAG())
    columns = of_plan.output()
    # Without rows: they would stay in the JVM.
    _, *nodes = _nodes(spark, spark.relation(columns, spark.nil), steps)
    kept_steps = tuple(replace(step, node=node) for step, node in zip(steps, nodes, strict=True))
    return KeptPlan(columns, kept_steps, output.schema)


def analysed(frame: DataFrame) -> Any:
    """Return the plan of a DataFrame as Spark has resolved it."""
    return frame._jdf.queryExecution().analyzed()


def is_scan(node: Any) -> bool:
    """Whether a plan is rows that Spark computes by a job."""
    return bool(node.nodeName() == "LogicalRDD")


def make_the_same(one: DataFrame, other: DataFrame) -> bool:
    """Whether two plans give the same of the same rows; Spark's canonical form has no names of columns."""
    plan, another = analysed(one), analysed(other)
    return bool(plan.canonicalized().equals(another.canonicalized()) and plan.schema().equals(another.schema()))


def are_same(tables: Sequence[Any], before: Sequence[Any]) -> bool:
    """Whether all have the rows that they had; False where those of one are not known."""
    pairs = [(_local_relation(one), _local_relation(other)) for one, other in zip(tables, before, strict=True)]
    return all(a is not None and b is not None and a.data().equals(b.data()) for a, b in pairs)


def _joined(session: SparkSession, step: Step) -> list[Step]:
    """Return a step; a lookup in its place where it is a join that one can stand for."""
    rows = _local_relation([*step.before, *step.after][0]) if step.node.nodeName() == "Join" else None
    try:
        nodes = None if rows is None else lookup_in_place_of(session, step.node, len(step.before), rows)
    except Exception as exc:
        log.info("a join stays a join, as no lookup can be made of it: %s", redacted(exc))
        nodes = None
    return [step] if nodes is None else [Step(node, (), ()) for node in nodes]


def _local_relation(node: Any) -> Any | None:
    """Return the rows that a node stands for; None where they are not known before."""
    while node.nodeName() in NAMES_AND_HINTS:
        node = node.children().apply(0)
    return node if node.nodeName() == "LocalRelation" else None


def _nodes(spark: SparkObjects, relation: Any, steps: Sequence[Step]) -> list[Any]:
    """Return a relation and copies of the nodes above it, the root last."""
    nodes = [relation]
    for step in steps:
        nodes.append(step.over(spark, nodes[-1]))
    return nodes


def _identity(records: DataFrame, leaf: Any) -> int | None:
    """Return what tells the rows of a leaf from those of all others; None where it is of another kind."""
    if leaf.nodeName() not in ("LocalRelation", "LogicalRDD"):
        return None
    return spark_objects(records.sparkSession._jvm).identity_of(leaf.rdd() if is_scan(leaf) else leaf.data())


def _paths(records: DataFrame, node: Any, rows: int | None, above: tuple[Step, ...]) -> list[tuple[Any, tuple[Step, ...]]]:
    """Return each leaf with these rows below a node, with the steps from it to the root."""
    children = items_of(node.children())
    if not children:
        return [(node, above)] if rows is not None and _identity(records, node) == rows else []
    return [
        found
        for index, child in enumerate(children)
        for found in _paths(records, child, rows, (Step(node, tuple(children[:index]), tuple(children[index + 1 :])), *above))
    ]
