"""CSV files as Arrow has them. What is wrong with one is said by its name and the column's, without a value."""

from __future__ import annotations

import csv as text_csv
import re
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv

from lakebound.tables.type_names import type_name
from lakebound_spark.reference.loaded import UnusableReferenceError

_MISFIT = re.compile(r"In CSV column #(\d+): ")
_NOT_TEXT = "CSV conversion error to string"
_IN_UTC = pa.timestamp("us", "UTC")


def rows_of(file: Path, types: Mapping[str, pa.DataType]) -> pa.Table:
    """Return the rows of a file. An empty field without quotes is null; times without a zone are UTC.

    Args:
        file: Its first line names the columns.
        types: Of the columns that are read; empty: all, and their types are inferred.

    Raises:
        UnusableReferenceError: It lacks a column, a value does not fit its column's type, or it is not CSV.
    """
    options = csv.ConvertOptions(
        column_types=dict(types),
        include_columns=list(types),
        strings_can_be_null=True,
        null_values=[""],
        quoted_strings_can_be_null=False,
    )
    try:
        rows = csv.read_csv(file, convert_options=options)
    except KeyError as exc:
        raise UnusableReferenceError(f"{file.name} lacks a column of its schema; its first line must name the columns") from exc
    except pa.ArrowInvalid as exc:
        # Without a cause: Arrow's text holds the value.
        raise UnusableReferenceError(f"it cannot be read: {_problem(str(exc), file, types)}") from None
    return pa.table([_in_utc(column) for column in rows.columns], names=rows.column_names)


def _problem(message: str, file: Path, types: Mapping[str, pa.DataType]) -> str:
    """Return what Arrow says of a file, without a value of it."""
    found = _MISFIT.search(message)
    if found is None:
        return (
            f"{file.name} is not CSV: its first line must name the columns, each line must have as many fields as the first, "
            f"and a field with a comma must be in quotes"
        )
    name = _name(int(found[1]), file)
    column = f"column {name} of {file.name}"
    if _NOT_TEXT in message:
        return f"{column} has a text that is not UTF-8; write the file as UTF-8"
    kind = types[name]
    told = type_name(_IN_UTC if pa.types.is_timestamp(kind) else kind)
    return f"{column} has a value that {told} cannot hold; correct the file, or change the column's type in 'schema'"


def _name(position: int, file: Path) -> str:
    """Return the name of a column. It is a declared one: Arrow infers a type that every value has."""
    # Arrow counts the columns of the file, not those that are read.
    with file.open(newline="", encoding="utf-8-sig", errors="replace") as text:
        return next(text_csv.reader(text))[position]


def _in_utc(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if not pa.types.is_timestamp(column.type) or column.type.tz:
        return column
    return pc.assume_timezone(column.cast(pa.timestamp("us")), _IN_UTC.tz)
