"""Columns of PostgreSQL as Arrow and Spark have them. Pure."""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv

from lakebound.tables.type_names import type_name
from lakebound_spark.reference.loaded import UnusableReferenceError

_MOST_DIGITS = 38
_DIGITS_UNSAID = pa.decimal128(_MOST_DIGITS, 18)
"""Of numeric without a precision, as Spark's own JDBC source has it. A value that does not fit is refused, not rounded."""
_IN_UTC = pa.timestamp("us", "UTC")
_TYPES = {
    "bool": pa.bool_(),
    "int2": pa.int16(),
    "int4": pa.int32(),
    "int8": pa.int64(),
    "float4": pa.float32(),
    "float8": pa.float64(),
    "text": pa.string(),
    "varchar": pa.string(),
    "uuid": pa.string(),
    "jsonb": pa.string(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
    "timestamptz": _IN_UTC,
}
_COLUMN = re.compile(r"In CSV column #(\d+)")


@dataclass(frozen=True)
class Column:
    """A column as PostgreSQL describes it.

    Attributes:
        name: Its name.
        kind: PostgreSQL's name of its type, such as ``int8``.
        precision: Of a numeric, its digits; None where it has no limit.
        scale: Of these, the digits behind the point.
    """

    name: str
    kind: str
    precision: int | None = None
    scale: int | None = None


def arrow_types(columns: Sequence[Column]) -> dict[str, pa.DataType]:
    """Return the type of each column, by its name, in order.

    Raises:
        UnusableReferenceError: Two columns have one name, or Spark has no type for one.
    """
    if doubled := [name for name, count in Counter(column.name for column in columns).items() if count > 1]:
        raise UnusableReferenceError(f"it has two columns {', '.join(doubled)}; give one of them another name by AS in 'query'")
    types = {column.name: _arrow_type(column) for column in columns}
    unknown = [f"{column.name} ({_told(column)})" for column in columns if types[column.name] is None]
    if unknown:
        raise UnusableReferenceError(
            f"columns of these types cannot be read: {', '.join(unknown)}; leave them out by 'columns', or "
            "cast them in 'query', such as status::text"
        )
    return types


def rows_of(text: bytes, types: dict[str, pa.DataType]) -> pa.Table:
    """Return the rows of what COPY writes as CSV. Times without a zone are UTC, as those of CSV files.

    Args:
        text: The rows, without a header, times in ISO's form and UTC.
        types: Those of the columns, in order.

    Raises:
        UnusableReferenceError: A value does not fit its column's type.
    """
    if not text:
        return _timed(pa.schema(types.items()).empty_table())
    options = csv.ConvertOptions(
        column_types=types,
        strings_can_be_null=True,
        null_values=[""],
        quoted_strings_can_be_null=False,
        true_values=["t"],
        false_values=["f"],
    )
    try:
        rows = csv.read_csv(
            io.BytesIO(text),
            # One block: a value may be longer than Arrow's usual ones.
            read_options=csv.ReadOptions(column_names=list(types), block_size=len(text) + 1),
            # A line without anything is a row of one column, which is null.
            parse_options=csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
            convert_options=options,
        )
    except pa.ArrowInvalid as exc:
        # Without a cause: Arrow's text holds the value.
        raise UnusableReferenceError(_misfit(str(exc), types)) from None
    return _timed(rows)


def _timed(rows: pa.Table) -> pa.Table:
    columns = [
        pc.assume_timezone(column, "UTC") if pa.types.is_timestamp(column.type) and column.type.tz is None else column
        for column in rows.columns
    ]
    return pa.table(columns, names=rows.column_names)


def _misfit(message: str, types: dict[str, pa.DataType]) -> str:
    found = _COLUMN.search(message)
    if found is None:
        return "its rows cannot be read as text in CSV's form; read them by a query that casts the columns"
    name, kind = list(types.items())[int(found[1])]
    return (
        f"column {name} has a value that {type_name(kind)} cannot hold: NaN or infinity, a date before Christ or after 9999, "
        f"or too many digits; cast it or leave it out in 'query'"
    )


def _arrow_type(column: Column) -> pa.DataType | None:
    if column.kind != "numeric":
        return _TYPES.get(column.kind)
    if column.precision is None or column.scale is None:
        return _DIGITS_UNSAID
    fits = column.precision <= _MOST_DIGITS and 0 <= column.scale <= column.precision
    return pa.decimal128(column.precision, column.scale) if fits else None


def _told(column: Column) -> str:
    return column.kind if column.precision is None else f"{column.kind}({column.precision},{column.scale})"
