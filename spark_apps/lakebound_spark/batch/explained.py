"""Rows of the quarantine table get what is wrong with them, field by field; where nothing is found, they keep what they say."""

from __future__ import annotations

import logging
from itertools import islice

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from lakebound.first_line import first_line
from lakebound.spec.pipeline import KAFKA_COLUMN
from lakebound_spark.batch.decode import at_place
from lakebound_spark.batch.malformed import explain_malformed
from lakebound_spark.batch.misfits import explain
from lakebound_spark.batch.row_writer import KEY_FIELDS

log = logging.getLogger(__name__)

REASONS = ("does_not_fit", "not_an_object", "malformed_json")
"""What has an explanation of its own."""
MOST_RECORDS = 20_000
"""Maximum number of records of a batch that are explained: it takes about a second."""
MOST_BYTES = 4096
"""Of a batch that only the executors can hold, no longer record is explained: the driver gets 80 MB at the most."""


def explained(rows: pa.Table, schema: StructType | None) -> pa.Table:
    """Return rows of the quarantine table that the driver holds, explained.

    Args:
        rows: With the columns ``reason``, ``error`` and ``value``.
        schema: Of the pipeline's records; None where they are bytes, of which nothing is to be explained.
    """
    reasons = rows["reason"].to_pylist()
    if schema is None or not any(reason in REASONS for reason in reasons):
        return rows
    values, errors = rows["value"], rows["error"].to_pylist()
    suspects = islice((index for index, reason in enumerate(reasons) if reason in REASONS), MOST_RECORDS)
    for index in suspects:
        value = values[index].as_py()
        errors[index] = explain(value, schema) or explain_malformed(value) or errors[index]
    place = rows.column_names.index("error")
    return rows.set_column(place, rows.schema.field("error"), pa.array(errors, rows.schema.field("error").type))


def explained_by_driver(rows: DataFrame, schema: StructType | None) -> DataFrame:
    """Return rows of the quarantine table that only the executors hold; the first of them are explained, by the driver.

    The executors need no Python for it. Where the driver cannot read them, they keep what they say.
    """
    if schema is None:
        return rows
    suspects = rows.where(F.col("reason").isin(*REASONS) & (F.length("value") <= MOST_BYTES)).limit(MOST_RECORDS)
    keys = [F.col(f"{KAFKA_COLUMN}.{name}").alias(name) for name in KEY_FIELDS]
    try:
        known = explained(suspects.select(*keys, "reason", "error", "value").toArrow(), schema)
    except (PySparkException, Py4JJavaError) as exc:
        log.warning("the bad records of this batch are not explained: %s", first_line(exc))
        return rows
    if not known.num_rows:
        return rows
    told = rows.sparkSession.createDataFrame(known.select([*KEY_FIELDS, "error"]).rename_columns([*KEY_FIELDS, "told"]))
    joined = rows.join(F.broadcast(told), at_place(rows[KAFKA_COLUMN], told), "left")
    columns = [F.coalesce(told["told"], rows[name]).alias(name) if name == "error" else rows[name] for name in rows.columns]
    return joined.select(*columns)
