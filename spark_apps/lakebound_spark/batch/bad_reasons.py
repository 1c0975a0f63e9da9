"""Why records of a batch go to quarantine, in words that may leave it: none of them stands in a record.

A row's ``error`` quotes the record. Of it only the name of a column is taken, and only one that the schema itself has; or that
the key or a header is wrong that the YAML names.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from lakebound.formats.reasons import NOT_LANDED
from lakebound_spark.batch.observation import watch

REASONS = NOT_LANDED
"""Every reason for which a record does not land."""

_OF_PARTS = ("empty_value", "not_utf8", "not_an_object", "malformed_json", "missing_field", "does_not_fit")
"""Those that the key or a header may have, too."""
_OTHER = "other"
_NAMES_FIRST = {"does_not_fit": "", "missing_field": "required but missing or null: "}
"""Reasons whose error begins with the name of a column, after these words."""
_MOST_COLUMNS, _MOST_PARTS = 100, 20
"""That the executors look for: each is an expression of its own, or some."""
_AFTER_NAME = ("", ":", ".", "[", ",")


def reasons_of(rows: pa.Table, schema: StructType | None, parts: Sequence[str] = ()) -> Counter[str]:
    """Return how many rows of the quarantine table have which reason.

    Args:
        rows: Each error begins with the column.
        schema: Of the pipeline's values; None where they are texts or bytes.
        parts: The key and headers that become columns, as errors name them.
    """
    columns = column_names(schema, parts)
    reasons, errors = rows["reason"].to_pylist(), rows["error"].to_pylist()
    return Counter(short_reason(reason, error or "", columns) for reason, error in zip(reasons, errors, strict=True))


@dataclass(frozen=True)
class ColumnNames:
    """Names of a schema's columns, and their lengths, the longest first: a schema may have a thousand, and few lengths.

    ``parts`` are the key and headers that become columns, as errors name them.
    """

    names: frozenset[str] = frozenset()
    lengths: tuple[int, ...] = ()
    parts: tuple[str, ...] = ()

    def at_start_of(self, text: str) -> str | None:
        """Return the longest name with which a text begins, as errors name a column; None without one."""
        ended = (text[:length] for length in self.lengths if text[length : length + 1] in _AFTER_NAME)
        return next((start for start in ended if start in self.names), None)


def column_names(schema: StructType | None, parts: Sequence[str] = ()) -> ColumnNames:
    """Return the names of a schema's columns and of other parts of a record, as ``short_reason`` wants them."""
    names = frozenset(field.name for field in schema.fields) if schema is not None else frozenset()
    return ColumnNames(names, tuple(sorted({len(name) for name in names}, reverse=True)), tuple(parts))


def short_reason(reason: str, error: str, columns: ColumnNames) -> str:
    """Return the reason, with the column where the error begins with one of the schema, such as ``does_not_fit: amount``.

    With the key, or a header, where the error begins with it: ``not_utf8: key``.
    """
    if reason not in REASONS:
        return _OTHER
    part = next((one for one in columns.parts if error.startswith(f"{one}: ")), None)
    if part is not None:
        return f"{reason}: {part}"
    if reason not in _NAMES_FIRST:
        return reason
    column = columns.at_start_of(error.removeprefix(_NAMES_FIRST[reason]))
    return f"{reason}: {column}" if column else reason


def observed_reasons(
    rows: DataFrame, schema: StructType | None, tag: str, parts: Sequence[str] = ()
) -> tuple[DataFrame, Callable[[], Counter[str]]]:
    """Return the rows, and what returns the reasons once the executors have written them.

    Args:
        rows: Of the quarantine table.
        schema: Of the pipeline's values; None where they are texts or bytes.
        tag: Unique per attempt.
        parts: The key and headers that become columns, as errors name them.
    """
    columns = [field.name for field in schema.fields[:_MOST_COLUMNS]] if schema is not None else []
    tests = {reason: F.col("reason") == reason for reason in REASONS}
    for reason, words in _NAMES_FIRST.items():
        tests |= {f"{reason}: {name}": tests[reason] & _names(f"{words}{name}") for name in columns}
    for part in parts[:_MOST_PARTS]:
        is_of_part = F.coalesce(F.col("error").startswith(f"{part}: "), F.lit(False))
        tests |= {f"{reason}: {part}": tests[reason] & is_of_part for reason in _OF_PARTS}
    aliases = {f"reason{number}": told for number, told in enumerate(tests)}
    counts = [F.count_if(tests[told]).alias(alias) for alias, told in aliases.items()]
    watched = watch(rows, f"reasons-{tag}", *counts)

    def observed() -> Counter[str]:
        found = Counter({aliases[alias]: int(count) for alias, count in watched.seen().items()})
        for told in set(found) - {*REASONS}:
            found[told.partition(": ")[0]] -= found[told]
        return +found

    return watched.rows, observed


def _names(words: str) -> Column:
    """Whether an error begins with these words, and nothing makes another name of them."""
    error = F.col("error")
    return F.coalesce(error.startswith(words) & F.substring(error, len(words) + 1, 1).isin(*_AFTER_NAME), F.lit(False))
