"""Whether the plan that a function made is one windowed aggregation whose rows a rebuild gives again, and what it reads.

The argument is in docs/decisions/0044: rows of a closed window depend on its records alone, not on their order and not on how
they were cut into batches.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from lakebound.errors import LakeboundError
from lakebound.spec.pipeline import KAFKA_COLUMN, PipelineSpec
from lakebound_spark.batch.spark_objects import items_of, spark_objects
from lakebound_spark.batch.transform_plan import SOURCE_ALIAS, path_to_source

UP = "INTERVAL '0.000999' SECOND"
"""What rounds a time up to milliseconds."""
WINDOW = "_window"
"""Column of ``windows_of``: the window of a record, as the function's plan has it."""

_ABOVE = ("Project", "Filter", "SubqueryAlias", "View")
_BELOW = ("Project", "Filter", "SubqueryAlias", "View", "Generate", "Expand", "ResolvedHint")
_EXACT = ("Count", "Sum", "Min", "Max", "Average", "BitAndAgg", "BitOrAgg", "BitXorAgg", "HyperLogLogPlusPlus")
"""Aggregates whose result does not depend on the order of the rows."""
_EXACT_SUMS = ("byte", "short", "integer", "long", "decimal")
_TUMBLING, _SESSION, _DELAY = "spark.timeWindow", "spark.sessionWindow", "spark.watermarkDelayMs"
"""Keys of the metadata that Spark gives to the column of a window, and to one that has a watermark."""
_GROUPING_SETS = "spark_grouping_id"
_NEAREST = "group by functions.window(event_time, …) and columns, and aggregate with count, sum, min, max or avg"
_INSTEAD = {
    "Deduplicate": "drops duplicates, which state does not support yet; count per key and window instead",
    "DeduplicateWithinWatermark": "drops duplicates, which state does not support yet; count per key and window instead",
    "Join": "joins, which state does not support yet; join the table of closed windows in a query of its own",
    "Distinct": "uses distinct, which state does not support yet; group by the columns and the window",
    "FlatMapGroupsInPandasWithState": "keeps a state of its own, which is not supported yet",
    "TransformWithStateInPySpark": "keeps a state of its own (transformWithState), which is not supported yet",
    "EventTimeWatermark": "sets a watermark; remove withWatermark, state.watermark in the YAML says it",
    "Sort": "sorts, which a stream cannot; sort where the table is read",
    "GlobalLimit": "limits the rows, which depends on batches; remove the limit",
    "Union": "uses its records more than once (a union); use one windowed aggregation",
    "MapInPandas": "calls Python by mapInPandas, which may see records of one batch together; use functions of Spark",
    "PythonMapInArrow": "calls Python by mapInArrow, which may see records of one batch together; use functions of Spark",
}


class WindowPlanError(LakeboundError):
    """Spark gives the plan of a windowed aggregation in another form than the one that is known."""


def window_refusal(output: DataFrame) -> str | None:
    """Return why a function's output is no windowed aggregation that can be rebuilt; None where it is one.

    Args:
        output: What the function made of a streaming frame with a watermark under ``SOURCE_ALIAS``.
    """
    return next(_refusals(output), None)


def _refusals(output: DataFrame) -> Iterator[str]:
    root = output._jdf.queryExecution().analyzed()
    path = path_to_source(root)
    if path is None:
        yield "does not use the DataFrame that it is given; begin with that one"
        return
    places = [at for at, node in enumerate(path) if node.nodeName() == "Aggregate"]
    for at, node in enumerate(path):
        yield from _of_node(node, _BELOW if places and at > places[-1] else _ABOVE)
    if not places:
        yield f"makes no windows, but the YAML has 'state'; {_NEAREST}, or remove 'state'"
        return
    if len(places) > 1:
        yield "aggregates twice (a chain), which state does not support yet; aggregate the table of closed windows instead"
    yield from _of_columns(output)
    jvm: Any = output.sparkSession._jvm
    if root.containsPattern(jvm.org.apache.spark.sql.catalyst.trees.TreePattern.CURRENT_LIKE()):
        yield "uses the time of now (as current_timestamp does), which a rebuild does not have: compare columns of records"
    aggregate = path[places[-1]]
    if KAFKA_COLUMN not in [one.name() for one in items_of(aggregate.child().output())]:
        yield f"loses the column {KAFKA_COLUMN} before it aggregates; keep it in every select: late records are found by it"
    yield from _of_grouping(aggregate)
    for one in items_of(aggregate.aggregateExpressions()):
        yield from _of_aggregates(one)


def _of_node(node: Any, allowed: tuple[str, ...]) -> Iterator[str]:
    kind = node.nodeName()
    if node.subqueries().size():
        yield f"reads another table in a subquery ({kind}); a rebuild would find it changed: join it with the closed windows"
    if kind == "Aggregate":
        return
    if kind not in allowed:
        yield _INSTEAD.get(kind, f"uses {kind}, which state does not support; {_NEAREST}")
    if not node.deterministic():
        yield f"uses a function that gives another result each time ({kind}); a rebuild would differ: take it out"


def _of_columns(output: DataFrame) -> Iterator[str]:
    if KAFKA_COLUMN in output.columns:
        yield f"gives a column {KAFKA_COLUMN}: rows of windows come from many records; leave it out of the aggregates"
    twice = {column for column in output.columns if output.columns.count(column) > 1}
    if twice:
        yield f"gives two columns the name {', '.join(sorted(twice))}; rename or drop one"


def _of_grouping(aggregate: Any) -> Iterator[str]:
    windows = _window_columns(aggregate)
    groups = items_of(aggregate.groupingExpressions())
    if any(_has(one, _SESSION) for one in groups):
        yield "uses session_window, which state does not support yet; use functions.window"
    elif any(one.name() == _GROUPING_SETS for one in groups if one.nodeName() == "AttributeReference"):
        yield "uses rollup, cube or grouping sets: windows without a window would never close; use groupBy"
    elif any("collate" in one.dataType().catalogString() for one in groups):
        yield "groups by a text with a collation: which of its spellings a row has depends on the order; use lower() or upper()"
    elif len(windows) != 1:
        yield f"groups by {'no window' if not windows else 'several windows'}; {_NEAREST}"
    elif not _has(windows[0], _DELAY):
        yield "makes windows of another column than state.event_time, or of one that it has changed; pass it to window as it is"


def _of_aggregates(expression: Any) -> Iterator[str]:
    if expression.nodeName() == "AggregateExpression":
        function = expression.aggregateFunction()
        name = function.getClass().getSimpleName()
        if expression.isDistinct():
            yield "counts distinct values, which streams do not support; use approx_count_distinct"
        elif name not in _EXACT:
            yield (
                f"uses {function.prettyName()}, whose result may depend on the order of the records, so that a rebuild could "
                f"differ; use count, sum, min, max or avg"
            )
        elif name in ("Min", "Max") and "collate" in function.dataType().catalogString():
            yield (
                f"uses {function.prettyName()} of a text with a collation: which of its spellings a row has depends on the "
                f"order; use lower() or upper()"
            )
        elif name in ("Sum", "Average"):
            has_mode = function.evalContext() if name == "Sum" else function
            if has_mode.evalMode().toString() == "TRY":
                yield f"uses {function.prettyName()}, which is null or not by the order of the records; cast to DECIMAL first"
            kind = items_of(function.children())[0].dataType().typeName()
            exact = ("decimal",) if name == "Average" else _EXACT_SUMS
            if not kind.startswith(exact):
                yield (
                    f"uses {function.prettyName()} of {kind}, which is computed in floating point and depends on the order of "
                    f"the records; cast the column to DECIMAL first"
                )
        return
    for child in items_of(expression.children()):
        yield from _of_aggregates(child)


def windows_of(output: DataFrame) -> DataFrame:
    """Return the windows of each record that a function's aggregation takes: ``_kafka`` and ``_window``.

    These are the rows that come to the aggregation, by the function's own plan: without the records that it filters, and with
    several windows of a record where windows slide.

    Args:
        output: What the function made of records under ``SOURCE_ALIAS``.
    """
    aggregate = _aggregate_of(output)
    [window] = _window_columns(aggregate)
    session = output.sparkSession
    jvm: Any = session._jvm
    rows = DataFrame(jvm.org.apache.spark.sql.classic.Dataset.ofRows(session._jsparkSession, aggregate.child()), session)
    return rows.select(F.col(KAFKA_COLUMN), F.col(window.name()).alias(WINDOW))


def of_some_rows(output: DataFrame, choose: Callable[[DataFrame, Column], DataFrame]) -> DataFrame:
    """Return what a function makes of some of the rows that come to its aggregation, by the function's own plan.

    Args:
        output: What the function made of records under ``SOURCE_ALIAS``.
        choose: Gets these rows and their window, as ``windows_of`` has them; returns some of them, with all columns.
    """
    aggregate, session = _aggregate_of(output), output.sparkSession
    [window] = _window_columns(aggregate)
    objects: Any = spark_objects(session._jvm)
    rows = DataFrame(objects.datasets.ofRows(session._jsparkSession, aggregate.child()), session)
    plan = choose(rows, F.col(window.name()))._jdf.queryExecution().analyzed()
    path = path_to_source(output._jdf.queryExecution().analyzed()) or []
    above = path[: next(at for at, node in enumerate(path) if node.nodeName() == "Aggregate") + 1]
    for node in reversed(above):
        plan = node.withNewChildren(objects.to_seq([plan]))
    return DataFrame(objects.datasets.ofRows(session._jsparkSession, plan), session)


def end_ms_of(window: Column) -> Column:
    """Return when a window ends, in epoch milliseconds.

    Rounded up: a window that ends within a millisecond is closed by the next one.
    """
    return F.unix_millis(window.getField("end") + F.expr(UP))


def window_column(output: DataFrame) -> str | None:
    """Return the column that says of which window a row is, as ``functions.window`` makes it; None where there is none.

    Args:
        output: What the function made of records under ``SOURCE_ALIAS``.
    """
    found = [one for one in items_of(output._jdf.queryExecution().analyzed().output()) if _has(one, _TUMBLING)]
    return str(found[0].name()) if len(found) == 1 else None


def window_id(spec: PipelineSpec, output: DataFrame) -> str:
    """Return what tells one aggregation from another: what it groups and computes, of which records.

    Args:
        spec: The pipeline.
        output: What its function made of records under ``SOURCE_ALIAS``.
    """
    aggregate = _aggregate_of(output)
    state = spec.state
    assert state is not None
    body = [
        *_text_of(aggregate),
        [(one.name(), one.dataType().catalogString()) for one in items_of(aggregate.child().output())],
        state.event_time,
        # Without defaults: a field that a later version adds makes no other aggregation.
        spec.value.model_dump(mode="json", exclude_defaults=True),
        None if spec.key is None else spec.key.model_dump(mode="json", exclude_defaults=True),
        [one.model_dump(mode="json", exclude_defaults=True) for one in spec.headers],
        spec.null_values,
    ]
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()[:16]


def rows_id(output: DataFrame, source: str) -> str:
    """Return what tells apart plans that make other rows of the same windows, as far as a plan says it.

    Args:
        output: What the function made of records under ``SOURCE_ALIAS``.
        source: Of the code; it counts where the plan calls Python, whose body no plan shows.
    """
    plan = output._jdf.queryExecution().analyzed()
    calls_python = plan.containsPattern(spark_objects(output.sparkSession._jvm).tree_patterns.PYTHON_UDF())
    return hashlib.sha256(json.dumps([*_text_of(plan), source if calls_python else ""]).encode()).hexdigest()[:16]


def _text_of(plan: Any) -> list[str]:
    """Return a plan without the numbers that each planning gives anew, and its literals: a text may look like a number."""
    text = re.sub(r"#\d+L?|-T\d+ms", "", plan.treeString(True, False, 100_000, False, False))
    return [text, *_literals(plan)]


def _literals(plan: Any) -> Iterator[str]:
    for one in items_of(plan.expressions()):
        yield from _literals_in(one)
    for child in items_of(plan.children()):
        yield from _literals(child)


def _literals_in(expression: Any) -> Iterator[str]:
    if expression.nodeName() == "Literal" and "#" in (text := expression.sql()):
        yield text
    for child in items_of(expression.children()):
        yield from _literals_in(child)


def empty_stream(session: SparkSession, columns: StructType, spec: PipelineSpec) -> DataFrame:
    """Return a stream without records, with a watermark, as the function gets it when it is planned.

    Args:
        session: Spark's.
        columns: What the function gets.
        spec: The pipeline.
    """
    rows = session.readStream.format("rate").load().select(F.lit(None).cast(columns).alias("record")).select("record.*")
    return with_watermark(rows, spec).alias(SOURCE_ALIAS)


def with_watermark(records: DataFrame, spec: PipelineSpec) -> DataFrame:
    """Return a stream of decoded records with the pipeline's watermark."""
    assert spec.state is not None
    return records.withWatermark(spec.state.event_time, f"{spec.state.watermark_ms} milliseconds")


def _aggregate_of(output: DataFrame) -> Any:
    path = path_to_source(output._jdf.queryExecution().analyzed()) or []
    found = [node for node in path if node.nodeName() == "Aggregate"]
    if len(found) != 1:
        raise WindowPlanError(f"the transform's plan has {len(found)} aggregations where one was checked")
    return found[0]


def _window_columns(aggregate: Any) -> list[Any]:
    return [one for one in items_of(aggregate.groupingExpressions()) if _has(one, _TUMBLING)]


def _has(expression: Any, key: str) -> bool:
    return expression.nodeName() in ("AttributeReference", "Alias") and bool(expression.metadata().contains(key))
