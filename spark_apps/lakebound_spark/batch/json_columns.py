"""Values that msgspec has decoded, as columns of Arrow in the types that Spark gives them.

Each raises DirectReadRefusedError where Spark might make something else of a value. The rules were found with Spark 4.1.3, and
``tests/spark/test_direct_decode.py`` holds them against it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from decimal import ROUND_HALF_UP, Context, Decimal
from itertools import chain
from operator import attrgetter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DecimalType,
    FloatType,
    MapType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from lakebound.landing.direct_read import DirectReadRefusedError

_TIME = r"^(19|20)\d\d-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d{1,6})?"
"""Of the many texts that Spark takes for a timestamp, the usual one. Without a zone it is the session's: UTC."""
_OFFSET = r"[+-](0\d|1[0-7]):[0-5]\d$"
"""How Python's ``isoformat()`` and others say the zone. Spark takes up to 18 hours."""
_MOST_DIGITS = 38
"""Of a DECIMAL, and here also after the point of a number that becomes one."""
_EXACT = Context(prec=2 * _MOST_DIGITS + 2)
_LEAST_FLOAT, _LARGEST_FLOAT = float(np.finfo(np.float32).smallest_normal), float(np.finfo(np.float32).max)
_HALF_OF_LAST_BIT = 1 << 28
"""Of a FLOAT's last bit, in the bits of a DOUBLE."""


def column_of(values: list[Any], kind: DataType) -> pa.Array:
    """Return values of a type, decoded as ``lakebound_spark.batch.json_types`` says.

    Raises:
        DirectReadRefusedError: Spark is to decode one of them.
    """
    if isinstance(kind, StructType):
        return _structs(values, kind)
    if isinstance(kind, ArrayType):
        elements = column_of(list(chain.from_iterable(filter(None, values))), kind.elementType)
        return pa.ListArray.from_arrays(_offsets(values), elements, type=to_arrow_type(kind), mask=_nulls(values))
    if isinstance(kind, MapType):
        return _maps(values, kind)
    make = _LEAVES.get(type(kind))
    return pa.array(values, to_arrow_type(kind)) if make is None else make(values, kind)


def _structs(values: list[Any], kind: StructType) -> pa.Array:
    fields = [
        column_of([value if value is None else get(value) for value in values], field.dataType)
        for get, field in ((attrgetter(f"f{index}"), field) for index, field in enumerate(kind.fields))
    ]
    return pa.StructArray.from_arrays(fields, fields=list(to_arrow_type(kind)), mask=_nulls(values))


def _maps(values: list[Any], kind: MapType) -> pa.Array:
    if any(value and len(value) > 1 and len({*map(str, value)}) < len(value) for value in values):
        raise DirectReadRefusedError("a map has a key twice")
    held = [value for value in values if value]
    keys = pa.array(list(chain.from_iterable(held)), pa.string())
    items = column_of(list(chain.from_iterable(value.values() for value in held)), kind.valueType)
    return pa.MapArray.from_arrays(_offsets(values), keys, items, type=to_arrow_type(kind), mask=_nulls(values))


def _offsets(values: Iterable[Any]) -> pa.Array:
    lengths = [0, *(len(value) if value else 0 for value in values)]
    return pa.array(np.cumsum(lengths, dtype=np.int32))


def _nulls(values: Iterable[Any]) -> pa.Array:
    return pa.array([value is None for value in values], pa.bool_())


def _decimals(values: list[Any], kind: DataType) -> pa.Array:
    """Take numbers without an exponent, also in quotes; more digits after the point than the type has are rounded half up."""
    assert isinstance(kind, DecimalType)
    written = [None if value is None else bytes(value) for value in values]
    quoted = pa.array([None if text == b"null" else text for text in written], pa.string())
    texts = pc.utf8_trim(quoted, '"')
    before = kind.precision - kind.scale
    whole = f"(0|[1-9][0-9]{{0,{before - 1}}})" if before else "0"
    if not _all_match(texts, rf"^-?{whole}(\.[0-9]{{1,{_MOST_DIGITS}}})?$"):
        raise DirectReadRefusedError("a decimal is not written in the usual way, or has too many digits")
    exact = rf"^[^.]*(\.[0-9]{{1,{kind.scale}}})?$" if kind.scale else r"^[^.]*$"
    try:
        if not _all_match(texts, exact):
            texts = pa.array([_rounded(text, kind.scale) for text in texts.to_pylist()], pa.string())
        return texts.cast(to_arrow_type(kind))
    except pa.ArrowInvalid as exc:
        raise DirectReadRefusedError(f"no decimal of this type: {exc}") from exc


def _rounded(text: str | None, scale: int) -> str | None:
    """Return a decimal of so many digits after the point. (Arrow 26 rounds some of more than 70 digits to another number.)"""
    if text is None:
        return None
    return format(Decimal(text).quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP, _EXACT), "f")


def _floats(values: list[Any], _: DataType) -> pa.Array:
    """Refuse numbers that Spark, which does not round them to a DOUBLE first, may round to another FLOAT."""
    numbers = pa.array(values, pa.float64())
    held = numbers.drop_null().to_numpy(zero_copy_only=False)
    sizes = np.abs(held)
    between = (held.view(np.int64) & (2 * _HALF_OF_LAST_BIT - 1)) == _HALF_OF_LAST_BIT
    if np.any(between | (sizes > _LARGEST_FLOAT) | ((sizes < _LEAST_FLOAT) & (sizes > 0))):
        raise DirectReadRefusedError("a number may be rounded to another FLOAT")
    return numbers.cast(pa.float32(), safe=False)


def _timestamps(values: list[Any], kind: DataType) -> pa.Array:
    texts, zoned = pa.array(values, pa.string()), isinstance(kind, TimestampType)
    if not _all_match(texts, _TIME + (f"(Z?$|{_OFFSET})" if zoned else "$")):
        raise DirectReadRefusedError("a timestamp is not written in the usual way")
    try:
        if zoned and pc.any(has_offset := pc.match_substring_regex(texts, _OFFSET)).as_py():
            utc = pc.binary_join_element_wise(pc.utf8_rtrim(texts, "Z"), "Z", "")
            return pc.if_else(has_offset, texts, utc).cast(pa.timestamp("us", "UTC")).cast(to_arrow_type(kind))
        return pc.utf8_rtrim(texts, "Z").cast(pa.timestamp("us")).cast(to_arrow_type(kind))
    except pa.ArrowInvalid as exc:
        raise DirectReadRefusedError(f"no timestamp: {exc}") from exc


def _all_match(texts: pa.Array, pattern: str) -> bool:
    return pc.all(pc.match_substring_regex(texts, pattern)).as_py() is not False


_LEAVES: dict[type[DataType], Callable[[list[Any], DataType], pa.Array]] = {
    DecimalType: _decimals,
    FloatType: _floats,
    TimestampType: _timestamps,
    TimestampNTZType: _timestamps,
}
