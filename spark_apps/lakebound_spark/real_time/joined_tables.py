"""Whether a table that a transform joins can give a record several rows, as its rows are now.

In batches the rows of a record are numbered after the transform; in real time rows go out one by one, and nobody numbers
them. So each join there must find one row at most for a record. The join's condition, and the filters above it, are read from
the analysed plan: an expression of the table's columns that must equal one of the record's is a key, and a condition on the
table alone is a filter. All other conditions can only take rows away, so they are left out. Then Spark looks for a key with
two rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lakebound_spark.batch.spark_objects import items_of, spark_objects
from lakebound_spark.batch.transform_plan import is_source, path_to_source

_AT_MOST_ONE_ROW = ("LEFT SEMI", "LEFT ANTI")
_EQUALITIES = {"EqualTo": False, "EqualNullSafe": True}
"""Spark's, and whether null equals null."""


@dataclass(frozen=True)
class _Key:
    """An expression of a joined table that equals one of the record.

    Attributes:
        expression: Spark's.
        nulls_match: Whether a record finds rows that have null there.
    """

    expression: Any
    nulls_match: bool


@dataclass(frozen=True)
class _JoinedTable:
    """One side of a join: the one that does not come from the records.

    Attributes:
        plan: Its analysed plan.
        keys: What equals an expression of the record.
        filters: Conditions on its columns alone.
    """

    plan: Any
    keys: Sequence[_Key]
    filters: Sequence[Any]


def several_rows_of_a_record(session: SparkSession, output: DataFrame) -> str | None:
    """Return which joined table gives a record several rows; None where each gives one at most.

    Args:
        session: Spark's; it reads the joined tables.
        output: What a transform made of records under ``SOURCE_ALIAS``; each of its joins keeps its records.
    """
    for table in _joined_tables(session, output._jdf.queryExecution().analyzed()):
        if _has_key_twice(session, table):
            return _told(table)
    return None


def _joined_tables(session: SparkSession, root: Any) -> Iterator[_JoinedTable]:
    """Yield the joined tables, from the end of the transform to its beginning."""
    has_subquery = getattr(
        getattr(session._jvm, "org.apache.spark.sql.catalyst.expressions.SubqueryExpression$"), "MODULE$"
    ).hasSubquery
    conditions: list[Any] = []
    for node in path_to_source(root) or []:
        if node.nodeName() == "Filter":
            conditions += _parts(node.condition())
        if node.nodeName() != "Join" or node.joinType().sql() in _AT_MOST_ONE_ROW:
            continue
        left, right = items_of(node.children())
        records, other = (left, right) if is_source(left) or path_to_source(left) is not None else (right, left)
        own = _parts(node.condition().get()) if node.condition().isDefined() else []
        known = [one for one in [*own, *conditions] if not has_subquery(one)]
        yield _joined_table(records, other, known)


def _parts(condition: Any) -> list[Any]:
    """Return the conditions that must all hold for a condition to hold."""
    if condition.nodeName() != "And":
        return [condition]
    return [part for child in items_of(condition.children()) for part in _parts(child)]


def _joined_table(records: Any, other: Any, conditions: Sequence[Any]) -> _JoinedTable:
    of_records, of_other = records.outputSet(), other.outputSet()
    keys, filters = list[_Key](), list[Any]()
    for one in conditions:
        references = one.references()
        if not references.isEmpty() and references.subsetOf(of_other):
            filters.append(one)
        elif one.nodeName() in _EQUALITIES:
            left, right = items_of(one.children())
            for expression, equal in ((left, right), (right, left)):
                # Only the columns below this join: a table that is joined above it may have several rows of a record.
                is_key = expression.references().subsetOf(of_other) and equal.references().subsetOf(of_records)
                if is_key and not expression.references().isEmpty():
                    keys.append(_Key(expression, _EQUALITIES[one.nodeName()]))
    return _JoinedTable(other, keys, filters)


def _has_key_twice(session: SparkSession, table: _JoinedTable) -> bool:
    """Whether two rows of a table have one key; without a key, whether it has two rows."""
    objects = spark_objects(session._jvm)
    plan = table.plan
    for condition in table.filters:
        plan = objects.new_filter(condition, plan)
    names = [f"key{number}" for number in range(len(table.keys))]
    columns = [
        objects.alias(key.expression, name, objects.expression_ids.newExprId())
        for key, name in zip(table.keys, names, strict=True)
    ]
    project = objects.new_project(objects.to_seq(columns), plan)
    rows = DataFrame(objects.datasets.ofRows(session._jsparkSession, project), session)
    for key, name in zip(table.keys, names, strict=True):
        if not key.nulls_match:
            rows = rows.where(F.col(name).isNotNull())
    if not names:
        return rows.limit(2).count() > 1
    return not rows.groupBy(*names).count().where("count > 1").isEmpty()


def _told(table: _JoinedTable) -> str:
    name = _name(table.plan) or f"the table with the columns {', '.join(one.name() for one in items_of(table.plan.output()))}"
    what = "so that rows of one record would have one number"
    if not table.keys:
        return (
            f"the transform joins {name}, which has several rows, by no equality of its columns with the record's, {what}; "
            "join by columns that are equal, of which the table has each value once"
        )
    keys = ", ".join(_text(key.expression) for key in table.keys)
    return (
        f"the transform joins {name}, which has several rows with one value of {keys}, {what}; leave one row for each value of "
        f"{keys} in the table, or join by more of its columns"
    )


def _name(plan: Any) -> str | None:
    """Return what an author calls a table: its name, its alias, or where its files are; None where it has none of these."""
    kind = plan.nodeName()
    if kind == "SubqueryAlias":
        return str(plan.identifier().toString())
    if kind == "LogicalRelation" and plan.relation().getClass().getSimpleName() == "HadoopFsRelation":
        paths = items_of(plan.relation().location().rootPaths())
        return str(paths[0].toString()) if len(paths) == 1 else None
    children = items_of(plan.children())
    return _name(children[0]) if len(children) == 1 else None


def _text(expression: Any) -> str:
    return str(expression.name() if expression.nodeName() == "AttributeReference" else expression.sql())
