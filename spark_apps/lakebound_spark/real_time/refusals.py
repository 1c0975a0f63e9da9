"""What Real-Time Mode refuses of a pipeline's plan, found before a query is started."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from lakebound.spec.pipeline import PipelineSpec
from lakebound_spark.batch.transform import KAFKA_SCHEMA, Transform, planned_output
from lakebound_spark.batch.transform_plan import not_numbered
from lakebound_spark.real_time.bypass import BypassError
from lakebound_spark.real_time.joined_tables import several_rows_of_a_record
from lakebound_spark.real_time.rows import real_time_rows
from lakebound_spark.real_time.spark_decoder import make_spark_decoder

_ALLOWED = frozenset(
    {
        "AppendColumnsExec",
        "BroadcastExchangeExec",
        "BroadcastHashJoinExec",
        "CollectMetricsExec",
        "ColumnarToRowExec",
        "DeserializeToObjectExec",
        "EventTimeWatermarkExec",
        "ExpandExec",
        "FileSourceScanExec",
        "FilterExec",
        "GenerateExec",
        "InputAdapter",
        "LocalTableScanExec",
        "MapElementsExec",
        "MapPartitionsExec",
        "ProjectExec",
        "RangeExec",
        "ReusedExchangeExec",
        "SerializeFromObjectExec",
        "UnionExec",
        "WholeStageCodegenExec",
        # Not Spark's: where the records of Kafka are in a query.
        "RDDScanExec",
    }
)
"""``RealTimeModeAllowlist`` of Spark 4.1.3, which is hard-coded there."""


def real_time_refusal(session: SparkSession, spec: PipelineSpec, transform: Transform) -> str | None:
    """Return why the transform cannot run in real time, as an author would call it; None where it can.

    Args:
        session: Spark's; it reads the tables that are joined.
        spec: The pipeline.
        transform: The pipeline's, without the JSON; it can be planned (``planned_output``).

    Raises:
        PySparkException: A table that is joined cannot be read.
    """
    output = planned_output(session, spec, transform)
    reason = not_numbered(output)
    if reason is not None:
        return reason
    nothing = session.createDataFrame(session.sparkContext.emptyRDD(), KAFKA_SCHEMA)
    try:
        rows = real_time_rows(session, spec, nothing, make_spark_decoder(spec, {}), transform, ())
    except BypassError as exc:
        return f"the transform {exc}; a bad record could then get lost"
    return next(_refused(_operators(rows)), None) or several_rows_of_a_record(session, output)


def _operators(rows: DataFrame) -> Iterator[str]:
    # Before Spark adds exchanges: a broadcast is allowed, and another exchange comes with an operator that is not.
    pending: list[Any] = [rows._jdf.queryExecution().sparkPlan()]
    while pending:
        node = pending.pop()
        yield node.getClass().getSimpleName()
        children = node.children()
        pending += [children.apply(index) for index in range(children.size())]


def _refused(names: Iterator[str]) -> Iterator[str]:
    for name in names:
        if name in _ALLOWED:
            continue
        if "Python" in name or "Arrow" in name or "Pandas" in name:
            yield f"the transform uses a function in Python ({name}), which delays rows until a batch is full"
        elif "Join" in name:
            yield f"the transform joins in a way that Spark refuses there ({name}); put the other table into broadcast(...)"
        elif name == "InMemoryTableScanExec":
            yield "the transform reads a table that is cached, which Spark refuses there; read its files"
        else:
            yield f"the transform needs {name.removesuffix('Exec')}, which Spark refuses there"
