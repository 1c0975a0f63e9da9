"""Decoded messages as columns of Arrow: structs, lists and maps around values. Pure.

What is not there is left out before the values inside are made, and put between them again as null.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from operator import attrgetter
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakebound.formats.protobuf.leaves import Make, Wrong

_FIRST = attrgetter("f0")
"""Value of the first field that is read of a message: a map's key, or the value that a message wraps."""

Column = Callable[[Sequence[Any], Wrong], pa.Array]
"""Makes a column of a field in each of some messages; notes what is wrong with a message."""


def constant(value: Any, kind: pa.DataType) -> Column:
    """Return the column of a field that the writer does not have."""
    return lambda rows, _: pa.array([value] * len(rows), kind)


def always(name: str, make: Make) -> Column:
    """Return the column of a field that has its default where it is not there."""
    get = attrgetter(name)
    return lambda rows, wrong: make([*map(get, rows)], wrong)


def maybe(name: str, make: Make) -> Column:
    """Return the column of a field that is null where it is not there."""
    get = attrgetter(name)
    # A value that is no default was there; of others it is asked, which takes longer.
    return lambda rows, wrong: make([value if (value := get(row)) or row.HasField(name) else None for row in rows], wrong)


def message(name: str, make: Make) -> Column:
    """Return the column of a field whose values are messages."""
    get = attrgetter(name)

    def column(rows: Sequence[Any], wrong: Wrong) -> pa.Array:
        held = [at for at, row in enumerate(rows) if row.HasField(name)]
        inside = Wrong()
        found = make([get(rows[at]) for at in held], inside)
        for at, problem in inside.items():
            wrong.setdefault(held[at], problem)
        if len(held) == len(rows):
            return found
        order = np.zeros(len(rows), np.int64)
        order[held] = np.arange(len(held))
        absent = np.ones(len(rows), np.bool_)
        absent[held] = False
        return found.take(pa.array(order, mask=absent))

    return column


def repeated(name: str, kind: pa.DataType, make: Make) -> Column:
    """Return the column of a field with many values."""
    get = attrgetter(name)

    def column(rows: Sequence[Any], wrong: Wrong) -> pa.Array:
        values = [*map(get, rows)]
        offsets, inside = _offsets(values), Wrong()
        elements = make([*chain.from_iterable(values)], inside)
        _note(wrong, inside, offsets)
        return pa.ListArray.from_arrays(pa.array(offsets), elements, type=kind)

    return column


def mapped(name: str, kind: pa.DataType, keys: Column, items: Column) -> Column:
    """Return the column of a map; of a key that comes twice the last item counts."""
    get = attrgetter(name)

    def column(rows: Sequence[Any], wrong: Wrong) -> pa.Array:
        values = [
            entries if len(entries) < 2 else [*{_FIRST(one): one for one in entries}.values()] for entries in map(get, rows)
        ]
        offsets, inside = _offsets(values), Wrong()
        entries = [*chain.from_iterable(values)]
        made = keys(entries, inside), items(entries, inside)
        _note(wrong, inside, offsets)
        return pa.MapArray.from_arrays(pa.array(offsets), *made, type=kind)

    return column


def struct(columns: Sequence[Column], kind: pa.DataType) -> Make:
    """Return what makes structs of messages."""

    def make(rows: Sequence[Any], wrong: Wrong) -> pa.Array:
        return pa.StructArray.from_arrays([column(rows, wrong) for column in columns], fields=kind.fields)

    return make


def unwrapped(make: Make) -> Make:
    """Return what makes values of messages that wrap one each."""
    return lambda rows, wrong: make([*map(_FIRST, rows)], wrong)


def _offsets(values: Iterable[Any]) -> npt.NDArray[np.int32]:
    return np.cumsum([0, *map(len, values)], dtype=np.int32)


def _note(wrong: Wrong, inside: Wrong, offsets: npt.NDArray[np.int32]) -> None:
    """Note what is wrong with elements of the messages in which they lie."""
    if inside:
        around = np.searchsorted(offsets, [*inside], side="right") - 1
        for at, problem in zip(around.tolist(), inside.values(), strict=True):
            wrong.setdefault(at, problem)
