"""Rows that the driver holds as a DataFrame of Spark, and back as Arrow, with as little between as there can be.

A filter or a projection of a local relation Spark evaluates while it plans (its rule ``ConvertToLocalRelation``). Then the rows
are taken from the plan: no job, and no task. What was compiled before (``compiled_plan``) needs no DataFrame either.
"""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext, suppress
from threading import Lock
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.serializers import NoOpSerializer
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.serializers import ArrowStreamSerializer
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType
from pyspark.util import _create_local_socket

from lakebound_spark.batch.session_settings import LARGEST_RELATION
from lakebound_spark.batch.spark_objects import SparkObjects, spark_objects
from lakebound_spark.jvm_socket import send_at_once

log = logging.getLogger(__name__)

_FEW_BYTES = 64 * 1024
"""py4j hands bytes over as text, which takes the time of the batch. More go through a file or a socket, as PySpark has it."""
_ROWS_PER_FILE_PART = 10_000
_ROWS_PER_PART = 1_000
_COMPUTED_PER_PART = 10_000
_BYTES_PER_PART = 4 * 1024 * 1024
"""Of rows that come back, which the JVM holds once more, outside its heap. Of those just computed it knows the bytes."""
_SCAN_ROWS = 8_192
"""From so many rows on a scan is faster than a relation. Many rules of Spark's optimiser walk through the rows of a local
relation, and the function is evaluated without generated code, on one core: 139 ms for 32,768 rows, by a job on two cores
65 ms. What was compiled before is faster than both, and takes less of the cores."""
_MAKING = Lock()
"""While ``LARGEST_RELATION`` is another one: the rows of a plan's renewal, in another thread, must not become a scan by it. (A
small table that the function itself makes just then may. Its plan then differs from the one before, and is not kept.)"""
_AS_BYTES: Any = NoOpSerializer()
_TIMEOUT = "java.util.concurrent.TimeoutException"
_COLLECT_BYTES = 16 * 1024 * 1024
"""Of rows in DataFrames until Python is told to search. The JVM needs up to six times of it for the same rows, and has 1 GiB
where nobody asks for more."""
_PLAN_BYTES = 256 * 1024
"""What a DataFrame counts for without any rows: Spark keeps its plans with it."""
_SCAN_BYTES = 4 * 1024 * 1024
"""The same of a scan: with its plan Spark keeps what it was joined with."""
_SLICE_BYTES, _COLUMN_BYTES = 4 * 1024, 2 * 1024
"""The same of a slice that goes through what was compiled: readers and writers of Arrow, which have some objects per column."""


class LocalRelations:
    """Gives rows of one schema that the driver holds to Spark: DataFrames, sooner than ``SparkSession.createDataFrame``.

    Functions that Spark has compiled get them without one (``through``).

    An object of py4j whose methods were called is part of a cycle, so the JVM keeps the rows of earlier DataFrames until Python
    searches for cycles; and Python counts objects, not what they hold in the JVM. So it is told to search.
    """

    def __init__(self, schema: StructType, *, may_scan: bool = False) -> None:
        """Make nothing yet.

        Args:
            schema: Of the rows.
            may_scan: Spark may compute what is made of many rows by a job, where its tasks run in the driver.
        """
        self._schema = schema
        self._may_scan = may_scan
        self._json = schema.json()
        self._arrow = to_arrow_schema(schema)
        self._java_schema: Any = None
        self._bytes_since_collected = 0

    def __call__(self, session: SparkSession, rows: pa.Table) -> DataFrame:
        """Return the rows as a local relation; many of them as a scan where that is allowed."""
        by_job = self.is_scan(session, rows.num_rows)
        self._count(rows.nbytes + (_SCAN_BYTES if by_job else _PLAN_BYTES))
        spark = spark_objects(session._jvm)
        parts = self._parts(session, rows)
        with _MAKING, _no_relation(session) if by_job else nullcontext():
            return DataFrame(spark.to_data_frame(parts, self._json, session._jsparkSession), session)

    def through(
        self,
        session: SparkSession,
        rows: pa.Table,
        function: Callable[[Any], Any],
        java_schema: Any,
        schema_of_made: StructType,
    ) -> pa.Table:
        """Return what a function makes of the rows.

        Args:
            session: Spark's.
            rows: What the driver holds.
            function: Returns an iterator of the JVM for another one. Each row is gone when the next one is asked for.
            java_schema: Of what it makes, as the JVM has it.
            schema_of_made: The same, as PySpark has it.
        """
        columns = len(self._schema) + len(schema_of_made)
        self._count(rows.nbytes + _SLICE_BYTES + columns * _COLUMN_BYTES)
        spark = spark_objects(session._jvm)
        self._java_schema = self._java_schema or spark.schema_of_json(self._json)
        given = spark.converters.fromBatchIterator(self._parts(session, rows), self._java_schema, "UTC", False, False, None)
        # It frees what it holds outside the heap when it has come to its end.
        return arrow_of_rows(session, function(given), java_schema, schema_of_made, _COMPUTED_PER_PART, free=given.size)

    def _parts(self, session: SparkSession, rows: pa.Table) -> Any:
        """Return the rows as an iterator of the JVM, of Arrow batches."""
        # In one chunk before: the JVM takes an empty batch for the end of the file, and loses the rows behind it.
        batches = rows.cast(self._arrow).combine_chunks().to_batches(max_chunksize=_ROWS_PER_FILE_PART)
        send_at_once(session)
        spark = spark_objects(session._jvm)
        if rows.nbytes <= _FEW_BYTES:
            return spark.to_seq([batch.serialize().to_pybytes() for batch in batches]).iterator()
        return session.sparkContext._serialize_to_jvm(
            batches, ArrowStreamSerializer(), spark.read_arrow_file, spark.new_arrow_server
        )

    def _count(self, in_the_jvm: int) -> None:
        """Have Python search for cycles where DataFrames since it did so last stand for many bytes."""
        self._bytes_since_collected += in_the_jvm
        if self._bytes_since_collected > _COLLECT_BYTES:
            # All of them: a search of the younger ones makes old what is alive just then, such as rows of a plan's renewal.
            gc.collect()
            self._bytes_since_collected = 0

    def is_scan(self, session: SparkSession, count: int) -> bool:
        """Return whether so many rows become a scan."""
        return self._may_scan and count >= _SCAN_ROWS and bool(session.sparkContext._jsc.sc().isLocal())


@contextmanager
def _no_relation(session: SparkSession) -> Iterator[None]:
    """Have Spark make scans of Arrow's rows, however few."""
    before = str(session.conf.get(LARGEST_RELATION))
    session.conf.set(LARGEST_RELATION, "0")
    try:
        yield
    finally:
        session.conf.set(LARGEST_RELATION, before)


def arrow_of(output: DataFrame) -> pa.Table:
    """Return the rows as ``DataFrame.toArrow`` does; without a job where the plan holds them already."""
    plan = output._jdf.queryExecution().executedPlan()
    if plan.nodeName() != "LocalTableScan":
        return output.toArrow()
    return arrow_of_rows(output.sparkSession, plan.rows().iterator(), output._jdf.schema(), output.schema)


def arrow_of_rows(
    session: SparkSession,
    rows: Any,
    java_schema: Any,
    schema_of_rows: StructType,
    rows_per_part: int = _ROWS_PER_PART,
    *,
    free: Callable[[], Any] | None = None,
) -> pa.Table:
    """Return rows that the JVM holds.

    Args:
        session: Spark's.
        rows: An iterator of Scala's, of rows as Spark has them inside.
        java_schema: Their schema, as the JVM has it.
        schema_of_rows: The same, as PySpark has it.
        rows_per_part: At most so many come at once.
        free: Gives back what the iterator holds, where it does not come to its end.

    Raises:
        Py4JError: Computing a row has raised, or the thread of the JVM has ended without saying how.
    """
    spark, served, frees = spark_objects(session._jvm), None, [] if free is None else [free]
    try:
        schema = to_arrow_schema(schema_of_rows, error_on_duplicated_field_names_in_struct=True)
        parts = spark.converters.toBatchWithSchemaIterator(
            rows, java_schema, rows_per_part, _BYTES_PER_PART, "UTC", True, False
        )
        frees.append(parts.close)  # By itself it frees what it holds outside the heap at its end only.
        served = spark.serve(parts, "rows of a plan")
        with closing(_create_local_socket(served)) as stream:
            tables = [pa.ipc.open_stream(part).read_all() for part in _AS_BYTES.load_stream(stream)]
        # Where the JVM fails, the socket only ends, and rows would be missing: this raises what it met.
        served[2].getResult(spark.patience)
    except Exception as exc:
        if served is None or (not _is_timeout(exc) and _has_ended(served, spark)):
            for give_back in reversed(frees):
                with suppress(Py4JError):
                    give_back()
        else:
            log.warning("a thread of the JVM gave rows and no result, and keeps what it holds outside the heap (a full stack?)")
        raise
    return pa.concat_tables(tables).cast(schema) if tables else schema.empty_table()


def _has_ended(served: Any, spark: SparkObjects) -> bool:
    """Whether the JVM's thread does not read or write any more, so that its memory can be freed."""
    try:
        served[2].getResult(spark.patience)
    except Py4JJavaError as exc:
        return not _is_timeout(exc)
    return True


def _is_timeout(exc: Exception) -> bool:
    return isinstance(exc, Py4JJavaError) and str(exc.java_exception.getClass().getName()) == _TIMEOUT
