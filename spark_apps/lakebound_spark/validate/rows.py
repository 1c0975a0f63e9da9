"""The rows of a batch, read once and kept at hand, with what is asked of them that can be computed."""

from __future__ import annotations

import logging
from dataclasses import replace

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession

from lakebound.inspection.validation.expectations import Expectation, GxExpectation
from lakebound.inspection.validation.run import Batch
from lakebound.inspection.validation.verdict import ExpectationResult
from lakebound.tables.places import Places
from lakebound_spark.validate.copies import Copies
from lakebound_spark.validate.questions import Prepared, prepare, problem_of, used_columns

_log = logging.getLogger(__name__)


def cached_rows(
    session: SparkSession, batch: Batch, places: Places, copies: Copies, schema: pa.Schema
) -> tuple[Prepared, DataFrame, int]:
    """Return what is prepared, its rows, to be unpersisted, and how many these are.

    An expectation whose column cannot be computed is left out, with a problem, so that the others are asked. Rows that cannot
    be read without any of these columns raise.

    Args:
        session: Spark's.
        batch: Files, and what is expected of their rows.
        places: Where tables are.
        copies: Of files that lie in a store.
        schema: The table's columns.
    """
    prepared = prepare(session, batch, places, copies, schema)
    try:
        return prepared, *_cached(prepared)
    except Exception as exc:
        _log.warning("%s: the rows cannot be computed; each expectation is tried alone: %s", batch.table.id, exc)
        alone = {one.label: _problem_alone(session, batch, places, copies, schema, one) for one in batch.expectations}
        failed = {label: problem for label, problem in alone.items() if problem}
        if not failed:
            raise
    sound = tuple(one for one in batch.expectations if one.label not in failed)
    prepared = prepare(session, replace(batch, expectations=sound), places, copies, schema)
    prepared.problems += failed.values()
    return prepared, *_cached(prepared)


def _cached(prepared: Prepared) -> tuple[DataFrame, int]:
    frame = prepared.frame.select(*used_columns(prepared)).persist(StorageLevel.MEMORY_AND_DISK)
    try:
        return frame, frame.count()
    except BaseException:
        frame.unpersist()
        raise


def _problem_alone(
    session: SparkSession, batch: Batch, places: Places, copies: Copies, schema: pa.Schema, one: Expectation
) -> ExpectationResult | None:
    """Return why the column of an expectation cannot be computed; None where it can be, or where it has none of its own."""
    if isinstance(one, GxExpectation):
        return None
    prepared = prepare(session, replace(batch, expectations=(one,)), places, copies, schema)
    if prepared.problems:
        return prepared.problems[0]
    try:
        # A count would not compute the columns.
        prepared.frame.select(*used_columns(prepared)).write.format("noop").mode("overwrite").save()
    except Exception as exc:
        return problem_of(one, exc)
    return None
