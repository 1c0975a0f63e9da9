"""Partition values: rows split by them, and how Delta's log writes one. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakebound.errors import LakeboundError
from lakebound.spec.table import PartitionField
from lakebound.tables.column_facts import FactsByColumn, Raw, stored_values
from lakebound.tables.schemas import normalise_type

_EPOCH = datetime(1970, 1, 1)

PartitionKey = tuple[Any, ...]
"""Tells a partition from others; what its parts are does not matter."""


class FileRefusedError(LakeboundError, ValueError):
    """What is known of a file does not fit its table. The text is told to others, so it names columns and no values."""


def split(rows: pa.Table, fields: tuple[PartitionField, ...]) -> Iterator[tuple[PartitionKey, pa.Table]]:
    """Yield the rows of each partition, in their order."""
    if not fields:
        yield (), rows
        return
    keys = [_key(rows[field.column].combine_chunks(), field) for field in fields]
    for indices in _groups(keys):
        part = rows if len(indices) == rows.num_rows else rows.take(pa.array(indices))
        yield tuple(key[int(indices[0])] for key in keys), part


def delta_partition(
    facts: FactsByColumn, fields: tuple[PartitionField, ...], schema: pa.Schema, rows: int
) -> dict[str, str | None]:
    """Return a file's partition value per column, as Delta's log writes it, from what is known of its columns.

    Args:
        facts: Of the file, its partition columns among them.
        fields: The partitioning.
        schema: The types of the columns.
        rows: How many rows the file has.

    Raises:
        ValueError: The file spans several partitions, or a value cannot be written.
    """
    values: dict[str, str | None] = {}
    for field in fields:
        found = facts[(field.column,)]
        if found.nulls == rows:
            values[field.column] = None
        elif found.has_nan and found.low is None and found.nulls == 0:
            values[field.column] = "NaN"
        elif found.low is None or found.low != found.high or found.nulls or found.has_nan:
            raise FileRefusedError(f"it does not hold one value of {field.column}")
        else:
            values[field.column] = delta_partition_text(found.low, schema.field(field.column).type)
    return values


def delta_partition_text(value: Raw, kind: pa.DataType) -> str:
    """Return a value that is not null as Delta's log writes it.

    Source: https://github.com/delta-io/delta/blob/master/PROTOCOL.md#partition-value-serialization. An empty string is written
    as it is: of a file that Lakebound did not write, for it takes it for null, as the protocol says.

    Args:
        value: As it is stored.
        kind: The column's type.

    Raises:
        ValueError: A string is not UTF-8, or a date is outside of the years 1 to 9999.
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, float):
        value += 0.0  # of the two zeros, which are one partition, the positive one
        return str(value) if math.isfinite(value) else {math.inf: "Infinity", -math.inf: "-Infinity"}.get(value, "NaN")
    try:
        if pa.types.is_date(kind):
            return (_EPOCH + timedelta(days=value)).date().isoformat()
        if pa.types.is_timestamp(kind):
            return (_EPOCH + timedelta(microseconds=value)).isoformat(sep=" ", timespec="microseconds")
    except OverflowError as exc:
        raise FileRefusedError("a value is outside of the years 1 to 9999") from exc
    return str(value)


def delta_partition_texts(values: pa.ChunkedArray) -> list[str | None]:
    """Return a column of partition values, as deltalake has read them from a log, as the log writes them."""
    kind = normalise_type(values.type)
    encoded = values.cast(kind).combine_chunks().dictionary_encode()
    known = stored_values(pa.chunked_array([encoded.dictionary])).to_pylist()
    texts = [delta_partition_text(value, kind) for value in known]
    return [None if index is None else texts[index] for index in encoded.indices.to_pylist()]


def _groups(keys: list[pa.Array]) -> Iterator[np.ndarray]:
    """Yield the row numbers, ascending, of each distinct combination of key values."""
    codes = np.zeros(len(keys[0]), dtype=np.int64)
    for key in keys:
        encoded = key.dictionary_encode(null_encoding="encode")
        codes = np.unique(codes * len(encoded.dictionary) + encoded.indices.to_numpy(), return_inverse=True)[1]
    order = np.argsort(codes, kind="stable")
    yield from np.split(order, np.flatnonzero(np.diff(codes[order])) + 1)


def _key(values: pa.Array, field: PartitionField) -> pa.Array:
    """Return a key that is equal where the partition is."""
    if field.transform == "identity":
        return values.view(pa.binary()) if pa.types.is_string(values.type) else values
    if field.transform != "truncate":
        return pc.floor_temporal(values, unit=field.transform)
    if pa.types.is_string(values.type):
        return pc.utf8_slice_codeunits(values, 0, field.width)
    return _floored(values, field.width or 1)


def _floored(values: pa.Array, width: int) -> pa.Array:
    wide = pc.cast(values, pa.int64())
    whole = pc.divide(wide, width)
    below = pc.and_(pc.less(wide, 0), pc.not_equal(pc.multiply(whole, width), wide))
    return pc.subtract(whole, pc.cast(below, pa.int64()))
