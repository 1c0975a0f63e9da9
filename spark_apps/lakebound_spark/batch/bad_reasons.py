"""Why records of a batch go to quarantine, in words that may leave it: none of them stands in a record.

A row's ``error`` quotes the record. Of it only the name of a column is taken, and only one that the schema itself has.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from lakebound_spark.batch.observation import watch

REASONS = (
    "null_value",
    "unreadable_key",
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
_MOST_COLUMNS = 100
"""That the executors look for: each is an expression of its own."""
_AFTER_NAME = ("", ":", ".", "[", ",")


def reasons_of(rows: pa.Table, schema: StructType | None) -> Counter[str]:
    """Return how many rows of the quarantine table have which reason.

    Args:
        rows: Each error begins with the column.
        schema: Of the pipeline's records; None where they are bytes.
    """
    columns = column_names(schema)
    reasons, errors = rows["reason"].to_pylist(), rows["error"].to_pylist()
    return Counter(short_reason(reason, error or "", columns) for reason, error in zip(reasons, errors, strict=True))


@dataclass(frozen=True)
class ColumnNames:
    """Names of a schema's columns, and their lengths, the longest first: a schema may have a thousand, and few lengths."""

    names: frozenset[str] = frozenset()
    lengths: tuple[int, ...] = ()

    def at_start_of(self, text: str) -> str | None:
        """Return the longest name with which a text begins, as errors name a column; None without one."""
        ended = (text[:length] for length in self.lengths if text[length : length + 1] in _AFTER_NAME)
        return next((start for start in ended if start in self.names), None)


def column_names(schema: StructType | None) -> ColumnNames:
    """Return the names of a schema's columns, as ``short_reason`` wants them."""
    names = frozenset(field.name for field in schema.fields) if schema is not None else frozenset()
    return ColumnNames(names, tuple(sorted({len(name) for name in names}, reverse=True)))


def short_reason(reason: str, error: str, columns: ColumnNames) -> str:
    """Return the reason, with the column where the error begins with one of the schema, such as ``does_not_fit: amount``."""
    if reason not in REASONS:
        return _OTHER
    if reason not in _NAMES_FIRST:
        return reason
    column = columns.at_start_of(error.removeprefix(_NAMES_FIRST[reason]))
    return f"{reason}: {column}" if column else reason


def observed_reasons(rows: DataFrame, schema: StructType | None, tag: str) -> tuple[DataFrame, Callable[[], Counter[str]]]:
    """Return the rows, and what returns the reasons once the executors have written them.

    Args:
        rows: Of the quarantine table.
        schema: Of the pipeline's records; None where they are bytes.
        tag: Unique per attempt.
    """
    columns = [field.name for field in schema.fields[:_MOST_COLUMNS]] if schema is not None else []
    tests = {reason: F.col("reason") == reason for reason in REASONS}
    for reason, words in _NAMES_FIRST.items():
        tests |= {f"{reason}: {name}": tests[reason] & _names(f"{words}{name}") for name in columns}
    aliases = {f"reason{number}": told for number, told in enumerate(tests)}
    counts = [F.count_if(tests[told]).alias(alias) for alias, told in aliases.items()]
    watched = watch(rows, f"reasons-{tag}", *counts)

    def observed() -> Counter[str]:
        found = Counter({aliases[alias]: int(count) for alias, count in watched.seen().items()})
        for reason in _NAMES_FIRST:
            found[reason] -= sum(count for told, count in found.items() if told.startswith(f"{reason}: "))
        return +found

    return watched.rows, observed


def _names(words: str) -> Column:
    """Whether an error begins with these words, and nothing makes another name of them."""
    error = F.col("error")
    return F.coalesce(error.startswith(words) & F.substring(error, len(words) + 1, 1).isin(*_AFTER_NAME), F.lit(False))
