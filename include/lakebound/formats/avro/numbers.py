"""Columns of Avro's numbers and booleans."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from lakebound.formats.avro.making import Making
from lakebound.formats.avro.tape import Numbers
from lakebound.formats.times import FIRST_MS, LAST_MS

Convert = Callable[[Making, Numbers, Numbers, str], pa.Array]
"""Makes a column of what was read of a part: the making, what is on the tape, the record of each value, and the part's path."""

_WHOLE: dict[pa.DataType, type[np.signedinteger]] = {
    pa.int8(): np.int8,
    pa.int16(): np.int16,
    pa.int32(): np.int32,
    pa.int64(): np.int64,
}
_FLOATS: dict[pa.DataType, type[np.floating]] = {pa.float32(): np.float32, pa.float64(): np.float64}
_LAST_DAY = (LAST_MS + 1) // 86_400_000 - 1
_FIRST_DAY = FIRST_MS // 86_400_000
_UNITS = {1000: "milliseconds", 1_000_000: "microseconds"}
_DAY_US = 86_400_000_000


def whole_numbers(bits: int, kind: pa.DataType, name: str, factor: int = 1, divisor: int = 1) -> Convert:
    """Return what makes whole numbers of a type; one that is beyond it does not fit.

    Args:
        bits: Of what was written.
        kind: Of the column.
        name: Of the type.
        factor: What each is multiplied with.
        divisor: By what each is divided; one with a rest does not fit.
    """
    made = _WHOLE[kind]
    most = np.iinfo(made).max // factor

    def convert(making: Making, values: Numbers, owners: Numbers, path: str) -> pa.Array:
        bad = values % divisor != 0
        values = values // divisor
        bad |= (values > most) | (values < -most - (factor == 1))
        making.note(bad, owners, path, lambda at: f"{values[at] * divisor} is beyond {name}")
        return pa.array((np.where(bad, 0, values) * factor).astype(made))

    def same(making: Making, values: Numbers, owners: Numbers, path: str) -> pa.Array:
        return pa.array(values.astype(made, copy=False))

    return same if bits <= np.iinfo(made).bits and factor == divisor == 1 else convert


def whole_as_floats(kind: pa.DataType, name: str) -> Convert:
    """Return what makes whole numbers into ones with a fraction; one that it would round does not fit."""
    made = _FLOATS[kind]

    def convert(making: Making, values: Numbers, owners: Numbers, path: str) -> pa.Array:
        found = values.astype(made)
        within = (found >= -(2.0**63)) & (found < 2.0**63)
        bad = ~within | (np.where(within, found, 0).astype(np.int64) != values)
        making.note(bad, owners, path, lambda at: f"{values[at]} has more digits than {name} keeps")
        return pa.array(found)

    return convert


def whole_as_texts(making: Making, values: Numbers, owners: Numbers, path: str) -> pa.Array:
    """Make texts of whole numbers: their digits."""
    return pa.array(values).cast(pa.string())


def floats(size: int, kind: pa.DataType) -> Convert:
    """Return what makes numbers of 4 or 8 bytes, in a type that holds each of them."""
    made = _FLOATS[kind]

    def convert(making: Making, values: Numbers, owners: Numbers, path: str) -> pa.Array:
        words = making.words[values]
        found = words.view("<f8") if size == 8 else words.astype("<u4").view("<f4")
        return pa.array(found.astype(made, copy=False))

    return convert


def booleans(making: Making, values: Numbers, owners: Numbers, path: str) -> pa.Array:
    """Make booleans."""
    return pa.array(values.astype(np.bool_))


def days(making: Making, values: Numbers, owners: Numbers, path: str) -> pa.Array:
    """Make dates of days since 1970."""
    bad = (values < _FIRST_DAY) | (values > _LAST_DAY)
    making.note(bad, owners, path, lambda at: f"{values[at]} days since 1970 are not within the years 1 to 9999")
    return pa.array(np.where(bad, 0, values).astype(np.int32)).view(pa.date32())


def moments(kind: pa.DataType, per_second: int) -> Convert:
    """Return what makes timestamps.

    Args:
        kind: Microseconds, in UTC or without a zone.
        per_second: What is counted since 1970.
    """
    factor = 1_000_000 // per_second
    first, last = FIRST_MS * 1000 // factor, (LAST_MS * 1000 + 999) // factor
    unit = _UNITS[per_second]

    def convert(making: Making, values: Numbers, owners: Numbers, path: str) -> pa.Array:
        bad = (values < first) | (values > last)
        if bad.any():
            making.note(bad, owners, path, lambda at: f"{values[at]} {unit} since 1970 are not within the years 1 to 9999")
            values = np.where(bad, 0, values)
        return pa.array(values if factor == 1 else values * factor).view(kind)

    return convert


def clock_texts(per_second: int, shown_per_second: int) -> Convert:
    """Return what makes texts of times of day.

    Args:
        per_second: What is counted since midnight.
        shown_per_second: As many digits as it has the texts have; not fewer than what is counted.
    """
    unit, factor = _UNITS[per_second], shown_per_second // per_second
    stored, kind = (np.int32, pa.time32("ms")) if shown_per_second == 1000 else (np.int64, pa.time64("us"))

    def convert(making: Making, values: Numbers, owners: Numbers, path: str) -> pa.Array:
        bad = (values < 0) | (values >= _DAY_US * per_second // 1_000_000)
        making.note(bad, owners, path, lambda at: f"{values[at]} {unit} since midnight are no time of a day")
        return pa.array((np.where(bad, 0, values) * factor).astype(stored)).view(kind).cast(pa.string())

    return convert
