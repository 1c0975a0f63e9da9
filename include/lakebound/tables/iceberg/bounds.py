"""Bounds of columns as Iceberg's manifests hold them, and partition values. Pure.

A bound may be wider than the values, never narrower, and where none can be written there is none. By PyIceberg's own
statistics a string whose 16th character is U+D7FF cannot be committed, nor a timestamp that Python has no date for, and a NaN
is left out.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from decimal import Context, Decimal
from typing import Any

from pyiceberg import types
from pyiceberg.io.pyarrow import MetricModeTypes, MetricsMode
from pyiceberg.partitioning import PartitionField

from lakebound.tables.column_facts import ColumnFacts, Raw, signed_zero, text_of
from lakebound.tables.partition_values import FileRefusedError

_LARGEST_CHARACTER = 0x10FFFF
_SURROGATES = range(0xD800, 0xE000)
_EXACT = Context(prec=76)
"""Twice the digits of the longest decimal, so that none is rounded."""


def bounds(facts: ColumnFacts, kind: types.PrimitiveType, mode: MetricsMode) -> tuple[bytes | None, bytes | None]:
    """Return the lower and the upper bound; None where there is none that is true.

    Args:
        facts: Of a column.
        kind: Its type in the table.
        mode: What the table's properties ask for.
    """
    if mode.type in (MetricModeTypes.NONE, MetricModeTypes.COUNTS) or facts.low is None or facts.high is None:
        return None, None
    low, high = facts.low, facts.high
    if isinstance(low, float) and isinstance(high, float):
        low, high = signed_zero(low, -1.0), signed_zero(high, 1.0)
    length = mode.length if isinstance(kind, types.StringType | types.BinaryType) else None
    lower = _encoded(kind, low) if length is None else _cut(kind, low, length)
    upper = _encoded(kind, high) if length is None else _cut_upwards(kind, high, length)
    # Iceberg takes a bound as one of the numbers: of NaNs, which Spark takes for the largest, it would know nothing.
    return lower, None if facts.has_nan else upper


def partition_value(facts: ColumnFacts, rows: int, field: PartitionField, kind: types.PrimitiveType) -> Any:
    """Return a file's value of one partition field.

    Args:
        facts: Of the column that the field is made of.
        rows: How many the file has.
        field: The field.
        kind: The column's type.

    Raises:
        ValueError: The file spans several values, or the value does not fit the field's type.
    """
    if facts.nulls == rows:
        return None
    if facts.low is None or facts.high is None or facts.nulls or facts.has_nan:
        raise FileRefusedError("its values do not tell one partition")
    transform: Callable[[Any], Any] = field.transform.transform(kind)
    low, high = transform(_python(facts.low, kind)), transform(_python(facts.high, kind))
    if low != high:
        raise FileRefusedError("it spans several partitions")
    if isinstance(kind, types.IntegerType | types.LongType):
        _packed(kind, low)
    return low


def _python(value: Raw, kind: types.PrimitiveType) -> Any:
    """Return a raw value as PyIceberg's transforms take it: dates and timestamps are numbers to them, too."""
    return value.decode() if isinstance(value, bytes) and isinstance(kind, types.StringType) else value


def _encoded(kind: types.PrimitiveType, value: Raw) -> bytes | None:
    """Return Iceberg's binary form of a value, None where it is no value of the type.

    Source: https://iceberg.apache.org/spec/#binary-single-value-serialization.
    """
    if isinstance(value, bytes):
        return value if isinstance(kind, types.BinaryType) or text_of(value) is not None else None
    if isinstance(kind, types.DecimalType) and isinstance(value, Decimal):
        unscaled = int(value.scaleb(kind.scale, context=_EXACT))
        return unscaled.to_bytes(((unscaled if unscaled >= 0 else ~unscaled).bit_length() + 8) // 8, "big", signed=True)
    try:
        return _packed(kind, value)
    except ValueError:
        return None


_FORMATS: dict[type[types.PrimitiveType], str] = {
    types.BooleanType: "<?",
    types.IntegerType: "<i",
    types.LongType: "<q",
    types.FloatType: "<f",
    types.DoubleType: "<d",
    types.DateType: "<i",
    types.TimestampType: "<q",
    types.TimestamptzType: "<q",
}


def _packed(kind: types.PrimitiveType, value: Any) -> bytes:
    try:
        return struct.pack(_FORMATS[type(kind)], value)
    except (KeyError, struct.error) as exc:
        raise FileRefusedError(f"a value is not a {kind}") from exc


def _cut(kind: types.PrimitiveType, value: Raw, length: int) -> bytes | None:
    if not isinstance(value, bytes) or isinstance(kind, types.BinaryType):
        return value[:length] if isinstance(value, bytes) else None
    text = text_of(value)
    return None if text is None else text[:length].encode()


def _cut_upwards(kind: types.PrimitiveType, value: Raw, length: int) -> bytes | None:
    """Return the smallest value of at most this length that is not smaller, None where there is none."""
    if not isinstance(value, bytes):
        return None
    if isinstance(kind, types.BinaryType):
        return value if len(value) <= length else _next_bytes(value[:length])
    text = text_of(value)
    if text is None or len(text) <= length:
        return value if text is not None else None
    return _next_text(text[:length])


def _next_bytes(value: bytes) -> bytes | None:
    kept = value.rstrip(b"\xff")
    return kept[:-1] + bytes([kept[-1] + 1]) if kept else None


def _next_text(text: str) -> bytes | None:
    kept = text.rstrip(chr(_LARGEST_CHARACTER))
    if not kept:
        return None
    following = ord(kept[-1]) + 1
    return (kept[:-1] + chr(_SURROGATES.stop if following in _SURROGATES else following)).encode()
