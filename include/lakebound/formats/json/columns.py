"""Values that msgspec has decoded, as columns of Arrow.

Usual values become a column at once; of others each is read by the reader of its type. Where a value does not fit, its record
is noted, and read again by itself: only that says what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import date
from decimal import Decimal
from itertools import chain
from operator import attrgetter
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakebound.formats.json.leaves import leaf_reader, text_of
from lakebound.formats.json.misfit import MisfitError
from lakebound.formats.times import NotATimeError, microseconds_of

_TIME = r"^(19|20)\d\d-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d{1,6})?"
"""Of the many forms of a time, the usual one."""
_OFFSET = r"[+-](0\d|1[0-7]):[0-5]\d$"
_LEAST_FLOAT, _LARGEST_FLOAT = float(np.finfo(np.float32).smallest_normal), float(np.finfo(np.float32).max)
_HALF_OF_LAST_BIT = 1 << 28
"""Of a FLOAT's last bit, in the bits of a DOUBLE."""
_MOST_SECONDS = 10**11
"""Since 1970; fewer than until the year 9999."""

Wrong = set[int]
"""Positions of values that do not fit, or that only the text of their record tells."""


def column_of(values: list[Any], kind: pa.DataType, wrong: Wrong) -> pa.Array:
    """Return values of a type, decoded as ``lakebound.formats.json.types`` says.

    Args:
        values: One of each record.
        kind: Their type.
        wrong: Gets the positions of those that are to be read by themselves; in the column these are anything.
    """
    if pa.types.is_struct(kind):
        return _structs(values, kind, wrong)
    if pa.types.is_map(kind):
        return _maps(values, kind, wrong)
    if pa.types.is_list(kind):
        offsets, inside = _offsets(values), Wrong()
        elements = column_of(list(chain.from_iterable(filter(None, values))), kind.value_type, inside)
        wrong |= _around(inside, offsets)
        return pa.ListArray.from_arrays(pa.array(offsets), elements, type=kind, mask=_nulls(values))
    if pa.types.is_decimal(kind):
        return _decimals(values, kind, wrong)
    make = _LEAVES.get(kind)
    return pa.array(values, kind) if make is None else make(values, kind, wrong)


def _structs(values: list[Any], kind: pa.DataType, wrong: Wrong) -> pa.Array:
    fields = [
        column_of([value if value is None else get(value) for value in values], field.type, wrong)
        for get, field in ((attrgetter(f"f{index}"), field) for index, field in enumerate(kind.fields))
    ]
    return pa.StructArray.from_arrays(fields, fields=kind.fields, mask=_nulls(values))


def _maps(values: list[Any], kind: pa.DataType, wrong: Wrong) -> pa.Array:
    wrong |= {at for at, value in enumerate(values) if value and len(value) > 1 and len({*map(str, value)}) < len(value)}
    held, offsets, inside = [value for value in values if value], _offsets(values), Wrong()
    keys = pa.array(list(chain.from_iterable(held)), pa.string())
    items = column_of(list(chain.from_iterable(value.values() for value in held)), kind.item_type, inside)
    wrong |= _around(inside, offsets)
    return pa.MapArray.from_arrays(pa.array(offsets), keys, items, type=kind, mask=_nulls(values))


def _offsets(values: Iterable[Any]) -> npt.NDArray[np.int32]:
    return np.cumsum([0, *(len(value) if value else 0 for value in values)], dtype=np.int32)


def _around(inside: Wrong, offsets: npt.NDArray[np.int32]) -> Wrong:
    """Return the positions of the values in which elements lie."""
    return {*(np.searchsorted(offsets, sorted(inside), side="right") - 1).tolist()} if inside else Wrong()


def _nulls(values: Iterable[Any]) -> pa.Array:
    return pa.array([value is None for value in values], pa.bool_())


def _texts(values: list[Any], kind: pa.DataType, _: Wrong) -> pa.Array:
    """Return texts; where any value is taken, each is there as it is written."""
    try:
        return pa.array(values, kind)
    except pa.ArrowTypeError:  # not texts, but what is written
        pass
    written = (None if value is None else bytes(value) for value in values)
    return pa.array([None if raw is None or raw == b"null" else text_of(raw) for raw in written], kind)


def _decimals(values: list[Any], kind: pa.DataType, wrong: Wrong) -> pa.Array:
    """Take numbers without an exponent, also in quotes, that need no rounding, at once."""
    written = [None if value is None else bytes(value) for value in values]
    texts = pc.utf8_trim(pa.array([None if text == b"null" else text for text in written], pa.string()), '"')
    before = kind.precision - kind.scale
    whole = f"(0|[1-9][0-9]{{0,{before - 1}}})" if before else "0"
    fraction = rf"(\.[0-9]{{1,{kind.scale}}})?" if kind.scale else ""
    if _all_match(texts, f"^-?{whole}{fraction}$"):
        return texts.cast(kind)
    read = leaf_reader(kind)
    found: list[Decimal | None] = []
    for at, text in enumerate(written):
        try:
            found.append(None if text is None or text == b"null" else read(text))
        except MisfitError:
            wrong.add(at)
            found.append(None)
    return pa.array(found, kind)


def _floats(values: list[Any], kind: pa.DataType, wrong: Wrong) -> pa.Array:
    """Note numbers that may be rounded otherwise where they are not rounded to a DOUBLE first."""
    numbers = np.array([0.0 if value is None else value for value in values])
    sizes = np.abs(numbers)
    between = (numbers.view(np.int64) & (2 * _HALF_OF_LAST_BIT - 1)) == _HALF_OF_LAST_BIT
    strange = between | (sizes > _LARGEST_FLOAT) | ((sizes < _LEAST_FLOAT) & (sizes > 0))
    if strange.any():
        wrong |= {*np.flatnonzero(strange).tolist()}
        numbers = np.where(strange, 0.0, numbers)
    return pa.array(numbers.astype(np.float32), kind, mask=np.array([value is None for value in values], np.bool_))


def _times(values: list[Any], kind: pa.DataType, wrong: Wrong) -> pa.Array:
    zoned = kind.tz is not None
    found = None
    with suppress(pa.ArrowTypeError):  # numbers among the texts
        texts = pa.array(values, pa.string())
        if _all_match(texts, _TIME + (f"(Z?$|{_OFFSET})" if zoned else "$")):
            found = _usual_times(texts, kind, zoned=zoned)
    if found is not None:
        return found
    return pa.array([_microseconds(at, value, wrong, zoned=zoned) for at, value in enumerate(values)], kind)


def _usual_times(texts: pa.Array, kind: pa.DataType, *, zoned: bool) -> pa.Array | None:
    try:
        if zoned and pc.any(has_offset := pc.match_substring_regex(texts, _OFFSET)).as_py():
            utc = pc.binary_join_element_wise(pc.utf8_rtrim(texts, "Z"), "Z", "")
            return pc.if_else(has_offset, texts, utc).cast(pa.timestamp("us", "UTC")).cast(kind)
        return pc.utf8_rtrim(texts, "Z").cast(pa.timestamp("us")).cast(kind)
    except pa.ArrowInvalid:  # the day, or the time of day, is none
        return None


def _microseconds(at: int, value: str | int | None, wrong: Wrong, *, zoned: bool) -> int | None:
    if value is None:
        return None
    if isinstance(value, str):
        try:
            return microseconds_of(value, zoned=zoned)
        except NotATimeError:
            pass
    elif -_MOST_SECONDS < value < _MOST_SECONDS and value > _FIRST_SECOND:
        return value * 1_000_000
    wrong.add(at)
    return None


_FIRST_SECOND = -(date(1970, 1, 1).toordinal() - 1) * 86_400


def _all_match(texts: pa.Array, pattern: str) -> bool:
    return pc.all(pc.match_substring_regex(texts, pattern)).as_py() is not False


_LEAVES: dict[pa.DataType, Callable[[list[Any], pa.DataType, Wrong], pa.Array]] = {
    pa.string(): _texts,
    pa.float32(): _floats,
    pa.timestamp("us"): _times,
    pa.timestamp("us", tz="UTC"): _times,
}
