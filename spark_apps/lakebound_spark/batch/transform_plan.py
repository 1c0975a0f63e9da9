"""Whether the plan that a function made gives each record its own rows, whatever other records share its batch.

The whole analysed plan is judged: each place where the records stand, in joins, unions and subqueries, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from lakebound.spec.pipeline import KAFKA_COLUMN
from lakebound_spark.batch.spark_objects import id_of, items_of

SOURCE_ALIAS = "lakebound_source"
"""By which the transform's input is found in a plan."""
KEEPING_JOINS = (
    frozenset({"INNER", "CROSS", "LEFT OUTER", "LEFT SEMI", "LEFT ANTI"}),
    frozenset({"INNER", "CROSS", "RIGHT OUTER"}),
)
"""Joins of which each row is of a record, where the records are on the left, and on the right."""

_ALLOWED = {"Project", "Filter", "Generate", "Join", "SubqueryAlias", "ResolvedHint", "View"}
_KAFKA_FIELDS = ["topic", "topic_id", "partition", "offset", "timestamp", "ordinal"]
_LINE = re.compile(r"^([ :+-]*)(\w+)(?: (\w+),?)?", re.MULTILINE)
_ONE_BY_ONE = "filter, project and explode them one by one, and join them with tables that are not made of them"
_LEFT_AS_IT_IS = "leave it as it is, and pass it on: Lakebound sets _kafka.ordinal by itself"


def refusal(output: DataFrame) -> str | None:
    """Return why rows of a function's output would not be those of their records; None where they are.

    Args:
        output: What the function made of records under ``SOURCE_ALIAS``.
    """
    return next(_refusals(output, output._jdf.queryExecution().analyzed()), None)


def may_multiply(output: DataFrame) -> bool:
    """Return whether one record may become several rows, or one row whose number is not 0."""
    root = output._jdf.queryExecution().analyzed()
    path = path_to_source(root) or []
    return any(node.nodeName() in ("Generate", "Join") for node in path) or _is_numbered(root, path)


def not_numbered(output: DataFrame) -> str | None:
    """Return why rows of one record could have one number, where nobody numbers them after the function; None where not.

    Args:
        output: What the function made of records under ``SOURCE_ALIAS``.
    """
    path = path_to_source(output._jdf.queryExecution().analyzed()) or []
    explodes = [index for index, node in enumerate(path) if node.nodeName() == "Generate"]
    if len(explodes) > 1:
        return (
            "the transform explodes twice, and rows of one record have one number there; make one array of both (flatten, "
            "transform) and explode it once with lakebound_spark.columns.explode, or use freshness: 0ms"
        )
    if explodes and not _renumbers(path[: explodes[0]]):
        return (
            "the transform explodes without numbering the rows; use lakebound_spark.columns.explode, which sets _kafka.ordinal"
        )
    return None


def passes_on(output: DataFrame, name: str) -> bool:
    """Whether a column of a function's output is the records' own column of that name, as it was.

    Args:
        output: What the function made of records under ``SOURCE_ALIAS``.
        name: Of the column.
    """
    root = output._jdf.queryExecution().analyzed()
    path = path_to_source(root) or []
    wanted = next((id_of(one) for one in items_of(root.output()) if one.name() == name), None)
    for node in path:
        if node.nodeName() != "Project":
            continue
        made = next((one for one in items_of(node.projectList()) if id_of(one) == wanted), None)
        if made is not None and made.nodeName() == "Alias":
            made = made.child()
        if made is None or made.nodeName() != "AttributeReference":
            return False
        wanted = id_of(made)
    source = _source_below(path, root)
    return wanted in [id_of(one) for one in items_of(source.output()) if one.name() == name]


def shape(output: DataFrame) -> tuple[Any, ...]:
    """Return what tells plans apart that are judged differently: nodes, kinds of join, and whether they are deterministic.

    It costs two questions to the JVM, and is the same for all batches of one lane.
    """
    root = output._jdf.queryExecution().analyzed()
    lines = _LINE.findall(root.toString())
    return bool(root.deterministic()), tuple((at, node, kind if node == "Join" else "") for at, node, kind in lines)


def path_to_source(node: Any) -> list[Any] | None:
    """Return the plan's nodes from the root to the transform's input, or None when the input is not below ``node``."""
    if is_source(node):
        return []
    for child in items_of(node.children()):
        below = path_to_source(child)
        if below is not None:
            return [node, *below]
    return None


def is_source(node: Any) -> bool:
    """Whether a node is the transform's input."""
    return bool(node.nodeName() == "SubqueryAlias" and node.identifier().name() == SOURCE_ALIAS)


def _refusals(output: DataFrame, root: Any) -> Iterator[str]:
    for reason in _of_columns(output):
        yield reason
        return
    path = path_to_source(root)
    places = _places(root)
    if path is None:
        if places:
            yield f"uses its records only in a subquery; {_ONE_BY_ONE}"
        yield "does not use the DataFrame that it is given; begin with that one"
        return
    for node in path:
        yield from _of_node(node)
    if places > 1:
        yield (
            "uses its records more than once (in a join with themselves, a union or a subquery), so that its rows depend on "
            f"which records share a batch; {_ONE_BY_ONE}"
        )
    for node in path:
        if node.nodeName() == "Join":
            yield from _of_join(node)
    yield from _of_other_sources(root)
    if _kafka_of(root, path) is None:
        yield f"makes the column {KAFKA_COLUMN} anew, or takes it from another table; {_LEFT_AS_IT_IS}"


def _of_columns(output: DataFrame) -> Iterator[str]:
    if KAFKA_COLUMN not in output.columns:
        yield f"loses the column {KAFKA_COLUMN}; keep it in every select, it says where a row came from"
        return
    fields = output.schema[KAFKA_COLUMN].dataType
    if not isinstance(fields, StructType) or [name for name in fields.names if name in _KAFKA_FIELDS] != _KAFKA_FIELDS:
        yield f"changes the fields of {KAFKA_COLUMN}; {_LEFT_AS_IT_IS}"
    twice = {column for column in output.columns if output.columns.count(column) > 1}
    if twice:
        yield f"gives two columns the name {', '.join(sorted(twice))}; rename or drop one"


def _of_node(node: Any) -> Iterator[str]:
    kind = node.nodeName()
    if kind == "WithCTE":
        yield "uses WITH in SQL; write it as a subquery in FROM"
    if kind not in _ALLOWED:
        yield f"uses {kind}, whose rows depend on which records share a batch; project, filter, explode and static joins only"
    if not node.deterministic():
        yield f"uses a function that gives another result each time ({kind}); a replay would differ: take it out"


def _renumbers(above: list[Any]) -> bool:
    """Whether a projection above the explode gives ``_kafka`` another ordinal."""
    return any(
        node.nodeName() == "Project"
        and "ordinal" in _text(node.projectList())
        and f"AS {KAFKA_COLUMN}#" in _text(node.projectList())
        for node in above
    )


def _text(expressions: Any) -> str:
    text: str = expressions.mkString(" | ")
    return text


def _of_join(join: Any) -> Iterator[str]:
    on_the_left = path_to_source(join.children().apply(0)) is not None
    kind = join.joinType().sql()
    if kind not in KEEPING_JOINS[0 if on_the_left else 1]:
        side = "left" if on_the_left else "right"
        yield (
            f"joins by {kind.lower()} with its records on the {side}, which gives rows that come from no record; use an inner "
            "or left join, with the records on the left"
        )


def _of_other_sources(root: Any) -> Iterator[str]:
    for leaf in _leaves(root):
        kind = leaf.nodeName()
        if kind == "LogicalRelation" and "Kafka" in leaf.relation().getClass().getSimpleName():
            yield "reads Kafka by itself: what it finds there depends on when it is called; use the DataFrame that it is given"
        if leaf.isStreaming():
            yield "reads a stream of its own; use the DataFrame that it is given, and tables"


def _places(node: Any) -> int:
    """Return how often the records stand in a plan."""
    if is_source(node):
        return 1
    return sum(map(_places, _below(node)))


def _leaves(node: Any) -> Iterator[Any]:
    """Yield the leaves of a plan beside the records."""
    if is_source(node):
        return
    below = _below(node)
    if not below:
        yield node
    for one in below:
        yield from _leaves(one)


def _below(node: Any) -> list[Any]:
    return [*items_of(node.children()), *items_of(node.subqueries())]


def _kafka_of(root: Any, path: list[Any]) -> int | None:
    """Return the id of the records' own column that a plan's ``_kafka`` is, but for its number; None where it is none."""
    wanted = _kafka_id(root)
    for node in path:
        if node.nodeName() != "Project":
            continue
        made = next((one for one in items_of(node.projectList()) if id_of(one) == wanted), None)
        if made is None:
            return None
        if made.nodeName() == "Alias":
            column = _passed_on(made.child())
            if column is None:
                return None
            wanted = id_of(column)
    source = _source_below(path, root)
    own = next((id_of(one) for one in items_of(source.output()) if one.name() == KAFKA_COLUMN), None)
    return wanted if wanted == own else None


def _is_numbered(root: Any, path: list[Any]) -> bool:
    """Whether a projection gives ``_kafka`` another number."""
    source = _source_below(path, root)
    return _kafka_id(root) not in {id_of(one) for one in items_of(source.output()) if one.name() == KAFKA_COLUMN}


def _kafka_id(root: Any) -> int:
    return next(id_of(one) for one in items_of(root.output()) if one.name() == KAFKA_COLUMN)


def _source_below(path: list[Any], root: Any) -> Any:
    lowest = path[-1] if path else None
    return root if lowest is None else next(one for one in items_of(lowest.children()) if is_source(one))


def _passed_on(expression: Any) -> Any | None:
    """Return the column that an expression is, or of which it only changes the number; None where it is another one."""
    kind = expression.nodeName()
    if kind == "AttributeReference":
        return expression
    if kind == "UpdateFields":
        operations = items_of(expression.fieldOps())
        if all(one.nodeName() == "WithField" and one.name() == "ordinal" for one in operations):
            return _passed_on(expression.structExpr())
    return None
