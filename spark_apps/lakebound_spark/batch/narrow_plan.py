"""A kept plan over those columns of the records that its expressions read (``lakebound_spark.batch.passed_columns``)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from lakebound_spark.batch.kept_plan import NAMES_AND_HINTS, KeptPlan, Step
from lakebound_spark.batch.passed_columns import POSITION, Narrowing
from lakebound_spark.batch.spark_objects import SparkObjects, id_of, items_of, spark_objects
from lakebound_spark.batch.transform_plan import KEEPING_JOINS

_JUDGED = ("Filter", "Join", "Generate")
"""Nodes that pass every column of the records on, and whose expressions are all that they read."""


def narrowed(session: SparkSession, plan: KeptPlan) -> KeptPlan:
    """Return a kept plan over what it reads; the same where it passes nothing on, or has nodes of which that is not known.

    Args:
        session: That in which the plan was analysed.
        plan: Over all columns of the records.
    """
    columns = {id_of(column): column for column in items_of(plan.columns)}
    names = {number: str(column.name()) for number, column in columns.items()}
    read = _read(plan.steps, columns.keys())
    output = items_of(plan.steps[-1].node.output()) if plan.steps else list(columns.values())
    passed_on = {str(one.name()): names[id_of(one)] for one in output if id_of(one) in names}
    if read is None or not passed_on or POSITION.name in {*names.values(), *plan.schema.names}:
        return plan
    spark = spark_objects(session._jvm)
    position = spark.alias(spark.literals.apply(0), POSITION.name, spark.expression_ids.newExprId()).toAttribute()
    leaf_columns = spark.to_seq([*(column for number, column in columns.items() if number in read), position])
    steps = _steps(spark, plan.steps, leaf_columns, position, columns.keys() - read)
    # Above all others: only what the function computes comes back.
    computed = [one for one in output if id_of(one) not in columns]
    below = steps[-1].node if steps else spark.relation(leaf_columns, spark.nil)
    steps.append(Step(spark.new_project(spark.to_seq([*computed, position]), below), (), ()))
    made = StructType([*(plan.schema[one.name()] for one in computed), POSITION])
    sent = tuple(name for number, name in names.items() if number in read)
    return KeptPlan(leaf_columns, tuple(steps), made, Narrowing(sent, passed_on, plan.schema))


def _read(steps: Sequence[Step], columns: Collection[int]) -> set[int] | None:
    """Return which of the columns an expression reads; None where that is not known."""
    read: set[int] = set()
    for step in steps:
        kind = step.node.nodeName()
        if kind == "Project":
            for expression in items_of(step.node.projectList()):
                if not _is_column(expression):
                    read |= _ids(expression.references())
        elif kind in _JUDGED:
            if kind == "Generate" and step.node.unrequiredChildIndex().size():
                return None
            if kind == "Join" and step.node.joinType().sql() not in KEEPING_JOINS[len(step.before)]:
                return None
            read |= _ids(step.node.references())
        elif kind not in NAMES_AND_HINTS:
            return None
    return read & {*columns}


def _steps(
    spark: SparkObjects, steps: Iterable[Step], leaf_columns: Any, position: Any, left_out: Collection[int]
) -> list[Step]:
    """Return the same nodes over other columns: projections leave some out, and pass the positions on."""
    below, made = spark.relation(leaf_columns, spark.nil), list[Step]()
    for step in steps:
        if step.node.nodeName() == "Project":
            items = items_of(step.node.projectList())
            left = [one for one in items if not (_is_column(one) and id_of(one) in left_out)]
            below = step.node.copy(spark.to_seq([*left, position]), below)
        else:
            below = step.over(spark, below)
        made.append(replace(step, node=below))
    return made


def _is_column(expression: Any) -> bool:
    return bool(expression.nodeName() == "AttributeReference")


def _ids(attributes: Any) -> set[int]:
    return {id_of(one) for one in items_of(attributes.toSeq())}
