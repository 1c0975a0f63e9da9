"""Columns of Avro's decimals: numbers of any bytes, most significant first, with a scale that the schema has."""

from __future__ import annotations

from decimal import Context, Decimal

import numpy as np
import pyarrow as pa

from lakebound.formats.avro.making import Bytes, Chosen, Making
from lakebound.formats.avro.numbers import Convert
from lakebound.formats.avro.tape import Numbers
from lakebound.formats.avro.texts import spans_of

_WIDTH = 16
"""Bytes of a decimal in Arrow."""
_LARGE = (10**38 >> 64) - 1
"""Of the upper eight bytes: from here on a number may have more than 38 digits."""
_EXACT = Context(prec=80)


def decimals(scale: int, kind: pa.DataType, size: int | None) -> Convert:
    """Return what makes decimals of bytes.

    Args:
        scale: Of what was written; at most 38.
        kind: Of the column.
        size: Bytes of each value; None: each has its own number.
    """

    def convert(making: Making, values: Numbers, owners: Numbers, path: str) -> pa.Array:
        spans = np.minimum(spans_of(values, size), len(making.data))
        lengths = spans[:, 1] - spans[:, 0]
        raw = _low_bytes(making, spans, lengths)
        bad = (lengths == 0) | _has_more(making, spans, lengths, raw)
        making.note(bad, owners, path, lambda at: f"{lengths[at]:,} bytes are no number of at most 38 digits")
        raw[bad] = 0
        return _of_type(making, raw, scale, kind, owners, path)

    return convert


def whole_as_decimals(kind: pa.DataType) -> Convert:
    """Return what makes decimals of whole numbers."""

    def convert(making: Making, values: Numbers, owners: Numbers, path: str) -> pa.Array:
        raw = np.stack([values, values >> 63], axis=1).view(np.uint8)
        return _of_type(making, raw, 0, kind, owners, path)

    return convert


def _low_bytes(making: Making, spans: Numbers, lengths: Numbers) -> Bytes:
    """Return the last 16 bytes of each number, least significant first."""
    last = spans[:, 1] - 1
    negative = (lengths > 0) & (making.data[np.minimum(spans[:, 0], len(making.data) - 1)] > 0x7F)
    fill = np.where(negative, 255, 0).astype(np.uint8)
    raw = np.repeat(fill[:, None], _WIDTH, axis=1)
    for place in range(min(_WIDTH, int(lengths.max(initial=0)))):
        raw[:, place] = np.where(lengths > place, making.data[np.maximum(last - place, 0)], fill)
    return raw


def _has_more(making: Making, spans: Numbers, lengths: Numbers, raw: Bytes) -> Chosen:
    """Return which numbers have more than 38 digits."""
    upper = raw.view("<i8")[:, 1]
    found = np.zeros(len(raw), np.bool_)
    for at in np.flatnonzero((upper >= _LARGE) | (upper <= -_LARGE) | (lengths > _WIDTH)).tolist():
        number = making.data[spans[at, 0] : spans[at, 1]].tobytes()
        sign = b"\xff" if number[0] > 0x7F else b"\x00"
        cut = number.lstrip(sign)[-_WIDTH - 1 :]
        found[at] = len(number.lstrip(sign)) > _WIDTH or abs(int.from_bytes(sign + cut, "big", signed=True)) >= 10**38
    return found


def _of_type(
    making: Making,
    raw: Bytes,
    scale: int,
    kind: pa.DataType,
    owners: Numbers,
    path: str,
) -> pa.Array:
    """Return numbers in a type: what it would round, or cannot hold, does not fit."""
    found = pa.Array.from_buffers(pa.decimal128(38, scale), len(raw), [None, pa.py_buffer(np.ascontiguousarray(raw))])
    try:
        return found.cast(kind)
    except pa.ArrowInvalid:  # at least one does not fit
        pass
    numbers = found.to_pylist()
    fitting = [_fitting(number, kind) for number in numbers]
    bad = np.array([one is None for one in fitting], np.bool_)
    name = f"DECIMAL({kind.precision},{kind.scale})"
    making.note(bad, owners, path, lambda at: f"{numbers[at]:f} is beyond {name}")
    return pa.array(fitting, kind)


def _fitting(number: Decimal, kind: pa.DataType) -> Decimal | None:
    scaled = number.scaleb(kind.scale, _EXACT)
    whole = scaled.to_integral_value(context=_EXACT)
    if whole != scaled or abs(whole) >= 10**kind.precision:
        return None
    return whole.scaleb(-kind.scale, _EXACT)
