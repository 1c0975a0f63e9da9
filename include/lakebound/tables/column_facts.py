"""What is known of each column of a data file: how many nulls, the smallest and the largest value.

Both formats make their statistics of it. A value is *raw*: a number as Parquet stores it (days, microseconds), a string as its
bytes. So no value is outside of what it can be: a Python date knows no year beyond 9999, and not every string is UTF-8.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

Leaf = tuple[str, ...]
"""Where a column lies: its name, after the names of the structs around it."""

Raw = bool | int | float | Decimal | bytes
"""A value of a column as it is stored: dates in days, timestamps in microseconds, strings as bytes."""


@dataclass(frozen=True)
class ColumnFacts:
    """What is known of a column's values in one file.

    Attributes:
        nulls: How many are null, or lie in a struct that is; None where that is not known.
        low: The smallest value, NaN left out; None where there is none, or where it is not known.
        high: The largest value, likewise.
        has_nan: Whether a NaN is among them. Spark takes it for larger than any other value.
    """

    nulls: int | None = 0
    low: Raw | None = None
    high: Raw | None = None
    has_nan: bool = False

    def plus(self, other: ColumnFacts) -> ColumnFacts:
        """Return what is known of both columns' values together; each column must have no value that is not told here."""
        lows = [one for one in (self.low, other.low) if one is not None]
        highs = [one for one in (self.high, other.high) if one is not None]
        return ColumnFacts(
            nulls=None if self.nulls is None or other.nulls is None else self.nulls + other.nulls,
            low=min(lows, default=None),
            high=max(highs, default=None),
            has_nan=self.has_nan or other.has_nan,
        )


FactsByColumn = Mapping[Leaf, ColumnFacts]
"""Of the columns that are not in a list or a map, each with its path."""


def float_facts(rows: pa.Table, before: FactsByColumn) -> dict[Leaf, ColumnFacts]:
    """Return what is known of the columns of floating-point numbers, in these rows and those before.

    A Parquet footer does not tell whether there is a NaN among them.

    Args:
        rows: A part of a file.
        before: Of the parts before.
    """
    found: dict[Leaf, ColumnFacts] = {}
    for field in rows.schema:
        for leaf, values in _floats((field.name,), rows.column(field.name)):
            found[leaf] = before.get(leaf, ColumnFacts()).plus(facts_of(values))
    return found


def file_facts(path: Path | BinaryIO, footer: pq.FileMetaData, known: FactsByColumn | None = None) -> FactsByColumn:
    """Return what is known of each column of a Parquet file that is not in a list or a map.

    Where the footer does not tell it (of floating-point numbers, and of strings over 4 KiB), the column is read.

    Args:
        path: The file, or what it can be read from.
        footer: Its footer.
        known: Of some columns, what was seen of them while they were written.
    """
    found: dict[Leaf, ColumnFacts] = {}
    for index, (leaf, kind) in enumerate(parquet_leaves(footer.schema.to_arrow_schema())):
        if footer.schema.column(index).max_repetition_level:
            continue
        if known is not None and leaf in known:
            found[leaf] = known[leaf]
        else:
            told = None if pa.types.is_floating(kind) else _told_by_footer(footer, index, kind)
            found[leaf] = told if told is not None else facts_of(_read_leaf(path, index, leaf))
    return found


def facts_of(values: pa.ChunkedArray) -> ColumnFacts:
    """Return what is known of values that are in memory."""
    kind = values.type
    has_nan = False
    if pa.types.is_floating(kind):
        is_nan = pc.fill_null(pc.is_nan(values), False)
        has_nan = bool(pc.any(is_nan).as_py())
        if has_nan:
            values = values.filter(pc.invert(is_nan))
            # Filtering keeps the nulls: only what is NaN is gone.
    bounds = pc.min_max(stored_values(values))
    return ColumnFacts(values.null_count, bounds["min"].as_py(), bounds["max"].as_py(), has_nan)


def stored_values(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the values as they are stored; no value is copied."""
    kind = values.type
    if pa.types.is_date32(kind):
        stored: pa.DataType = pa.int32()
    elif pa.types.is_timestamp(kind):
        stored = pa.int64()
    elif pa.types.is_string(kind):
        stored = pa.binary()
    else:
        return values
    return pa.chunked_array([chunk.view(stored) for chunk in values.chunks], stored)


def parquet_leaves(schema: pa.Schema) -> Iterator[tuple[Leaf, pa.DataType]]:
    """Yield path and type of each column of a Parquet file with this schema, in the order in which it holds them.

    In a list the last part is ``element``, in a map ``key`` or ``value``.
    """
    for field in schema:
        yield from _leaves((field.name,), field.type)


def columns_with_statistics(schema: pa.Schema) -> list[str]:
    """Return the columns, as Parquet names them, whose row groups may have bounds: all but floating-point numbers.

    By Parquet's rules bounds leave NaN out. Spark and DataFusion take it for the largest number, and yet skip row groups
    by such bounds: rows that match are lost.
    """
    return [".".join(path) for path, kind in _parquet_paths(schema) if not pa.types.is_floating(kind)]


def float_columns(schema: pa.Schema) -> list[str]:
    """Return the others."""
    return [".".join(path) for path, kind in _parquet_paths(schema) if pa.types.is_floating(kind)]


def _parquet_paths(schema: pa.Schema) -> Iterator[tuple[Leaf, pa.DataType]]:
    """Yield path and type of each column, the path with the groups that Parquet puts around elements."""
    for field in schema:
        yield from _leaves((field.name,), field.type, in_list=("list",), in_map=("key_value",))


def _leaves(path: Leaf, kind: pa.DataType, *, in_list: Leaf = (), in_map: Leaf = ()) -> Iterator[tuple[Leaf, pa.DataType]]:
    """Yield the columns below a path.

    Args:
        path: Of a column.
        kind: Its type.
        in_list: What stands between a list and its ``element``.
        in_map: What stands between a map and its ``key`` or ``value``.
    """
    below: list[tuple[Leaf, pa.DataType]] = []
    if pa.types.is_struct(kind):
        below = [((field.name,), field.type) for field in kind]
    elif pa.types.is_map(kind):
        below = [((*in_map, "key"), kind.key_type), ((*in_map, "value"), kind.item_type)]
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        below = [((*in_list, "element"), kind.value_type)]
    else:
        yield path, kind
    for names, inside in below:
        yield from _leaves((*path, *names), inside, in_list=in_list, in_map=in_map)


def _floats(path: Leaf, values: pa.ChunkedArray) -> Iterator[tuple[Leaf, pa.ChunkedArray]]:
    if pa.types.is_floating(values.type):
        yield path, values
    elif pa.types.is_struct(values.type) and any(_holds_floats(field.type) for field in values.type):
        for field, inside in zip(values.type, values.flatten(), strict=True):
            yield from _floats((*path, field.name), inside)


def _holds_floats(kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind):
        return any(_holds_floats(field.type) for field in kind)
    return bool(pa.types.is_floating(kind))


def _told_by_footer(footer: pq.FileMetaData, index: int, kind: pa.DataType) -> ColumnFacts | None:
    """Return what the footer tells of a column; None where it has no bounds of a row group with values."""
    found = ColumnFacts()
    for group in range(footer.num_row_groups):
        chunk = footer.row_group(group).column(index)
        told = chunk.statistics
        if told is None or not told.has_null_count:
            return None
        if told.has_min_max:
            found = found.plus(ColumnFacts(told.null_count, _stored(told.min_raw, kind), _stored(told.max_raw, kind)))
        elif told.null_count == chunk.num_values:
            found = found.plus(ColumnFacts(told.null_count))
        else:
            return None
    return found


def _stored(value: Any, kind: pa.DataType) -> Raw:
    """Return a bound of a footer as a raw value; a decimal comes as an integer, or as its bytes."""
    if not pa.types.is_decimal(kind):
        raw: Raw = value
        return raw
    unscaled = int.from_bytes(value, "big", signed=True) if isinstance(value, bytes) else int(value)
    return decimal_of(unscaled, kind.scale)


def decimal_of(unscaled: int, scale: int) -> Decimal:
    """Return a decimal with ``scale`` digits after the point, exactly, however many digits it has in total."""
    return Decimal((unscaled < 0, tuple(map(int, str(abs(unscaled)))), -scale))


def _read_leaf(path: Path | BinaryIO, index: int, leaf: Leaf) -> pa.ChunkedArray:
    """Read one column of a file, by its place: names with a dot in them do not tell columns from structs."""
    with pq.ParquetFile(path) as file:
        values = file.reader.read_all(column_indices=[index]).column(0)
    for _ in leaf[1:]:
        values = values.flatten()[0]
    return values


def signed_zero(value: float, sign: float) -> float:
    """Return a bound, a zero with this sign: as a lower bound -0.0 holds for both zeros, as an upper one 0.0."""
    return math.copysign(0.0, sign) if value == 0.0 else value


def text_of(value: bytes) -> str | None:
    """Return a raw string as text; None where it is not UTF-8."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return None
