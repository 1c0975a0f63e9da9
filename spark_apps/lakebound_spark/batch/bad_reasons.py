"""Why records of a batch go to quarantine, in words that may leave it: none of them stands in a record.

A row's ``error`` quotes the record. Of it only the name of a column is taken, and only one that the schema itself has.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

REASONS = (
    "null_value",
    "empty_value",
    "not_utf8",
    "not_an_object",
    "malformed_json",
    "missing_field",
    "does_not_fit",
    "unknown_field",
    "transform",
)
"""Every reason that a decoder or a check gives."""

_OTHER = "other"
_NAMES_FIRST = {"does_not_fit": "", "missing_field": "required but missing or null: "}
"""Reasons whose error begins with the name of a column, after these words."""
_AFTER_NAME = ("", ":", ".", "[", ",")


def reasons_of(rows: pa.Table, schema: StructType | None) -> Counter[str]:
    """Return how many rows of the quarantine table have which reason.

    Args:
        rows: Explained (``lakebound_spark.batch.explained``), so that an error begins with the column.
        schema: Of the pipeline's records; None where they are bytes.
    """
    columns = sorted((field.name for field in schema.fields), key=len, reverse=True) if schema is not None else []
    reasons, errors = rows["reason"].to_pylist(), rows["error"].to_pylist()
    return Counter(short_reason(reason, error or "", columns) for reason, error in zip(reasons, errors, strict=True))


def short_reason(reason: str, error: str, columns: Sequence[str]) -> str:
    """Return the reason, with the column where the error begins with one of the schema, such as ``does_not_fit: amount``."""
    if reason not in REASONS:
        return _OTHER
    if reason not in _NAMES_FIRST:
        return reason
    told = error.removeprefix(_NAMES_FIRST[reason])
    named = (one for one in columns if told.startswith(one) and told[len(one) : len(one) + 1] in _AFTER_NAME)
    column = next(named, None)
    return f"{reason}: {column}" if column else reason


def observed_reasons(rows: DataFrame, tag: str) -> tuple[DataFrame, Observation]:
    """Return the rows, and what counts their reasons while they are written: the executors name no columns."""
    observation = Observation(f"reasons-{tag}")
    counts = [F.count_if(F.col("reason") == reason).alias(reason) for reason in REASONS]
    return rows.observe(observation, *counts), observation


def reasons_observed(observation: Observation) -> Counter[str]:
    """Return what was counted, once the rows are written."""
    return +Counter({reason: int(count) for reason, count in observation.get.items()})
