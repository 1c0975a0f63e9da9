"""Rows that the driver holds as a DataFrame of Spark, and back as Arrow, with as little between as there can be.

A filter or a projection of a local relation Spark evaluates while it plans (its rule ``ConvertToLocalRelation``). Then the rows
are taken from the plan: no job, no task, and no socket between Python and the JVM but py4j's.
"""

from __future__ import annotations

import gc

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from lakebound_spark.batch.spark_objects import spark_objects
from lakebound_spark.jvm_socket import send_at_once

FEW_ROWS = 4_096
"""py4j hands bytes over as text. More rows go through files and sockets, as PySpark has it."""
_UNBOUNDED = 1 << 40
_COLLECT_BYTES = 16 * 1024 * 1024
"""Of rows in DataFrames until Python is told to search. The JVM needs up to six times of it for the same rows, and has 1 GiB
where nobody asks for more."""
_PLAN_BYTES = 256 * 1024
"""What a DataFrame counts for without any rows: Spark keeps its plans with it."""


class LocalRelations:
    """Makes DataFrames of one schema of rows that the driver holds, as ``SparkSession.createDataFrame`` does, but sooner.

    An object of py4j whose methods were called is part of a cycle, so the JVM keeps the rows of earlier DataFrames until Python
    searches for cycles; and Python counts objects, not what they hold in the JVM. So it is told to search.
    """

    def __init__(self, schema: StructType) -> None:
        self._schema = schema
        self._json = schema.json()
        self._arrow = to_arrow_schema(schema)
        self._bytes_since_collected = 0

    def __call__(self, session: SparkSession, rows: pa.Table) -> DataFrame:
        """Return the rows as a local relation."""
        self._bytes_since_collected += rows.nbytes + _PLAN_BYTES
        if self._bytes_since_collected > _COLLECT_BYTES:
            gc.collect(1)
            self._bytes_since_collected = 0
        if rows.num_rows > FEW_ROWS:
            # In one chunk: createDataFrame of PySpark 4.1.3 loses all rows behind an empty one.
            return session.createDataFrame(rows.combine_chunks(), self._schema)
        batches = rows.cast(self._arrow).combine_chunks().to_batches()
        send_at_once(session)
        spark = spark_objects(session._jvm)
        parts = spark.to_seq([batch.serialize().to_pybytes() for batch in batches]).iterator()
        return DataFrame(spark.to_data_frame(parts, self._json, session._jsparkSession), session)


def arrow_of(output: DataFrame) -> pa.Table:
    """Return the rows as ``DataFrame.toArrow`` does; without a job where the plan holds them already, and they are few."""
    plan = output._jdf.queryExecution().executedPlan()
    if plan.nodeName() != "LocalTableScan" or plan.rows().size() > FEW_ROWS:
        return output.toArrow()
    schema = to_arrow_schema(output.schema, error_on_duplicated_field_names_in_struct=True)
    parts = spark_objects(output.sparkSession._jvm).converters.toBatchWithSchemaIterator(
        plan.rows().iterator(), output._jdf.schema(), FEW_ROWS, _UNBOUNDED, "UTC", True, False
    )
    tables = []
    while parts.hasNext():
        tables.append(pa.ipc.open_stream(parts.next()).read_all())
    return pa.concat_tables(tables).cast(schema) if tables else schema.empty_table()
