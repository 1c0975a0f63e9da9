"""Columns of dates and times that Avro has as texts: read as those of JSON are."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from lakebound.formats.avro.making import Making
from lakebound.formats.avro.numbers import Convert
from lakebound.formats.avro.tape import Numbers
from lakebound.formats.avro.texts import texts
from lakebound.formats.times import NotATimeError, day_of, microseconds_of

_READERS: dict[pa.DataType, Callable[[str], Any]] = {
    pa.date32(): day_of,
    pa.timestamp("us"): functools.partial(microseconds_of, zoned=False),
    pa.timestamp("us", tz="UTC"): functools.partial(microseconds_of, zoned=True),
}
WRITTEN_TIMES = tuple(_READERS)
"""Types of columns whose values a text may name."""


def written_times(kind: pa.DataType, name: str) -> Convert:
    """Return what makes dates or timestamps of texts; one that names none does not fit."""
    read = _READERS[kind]

    def convert(making: Making, values: Numbers, owners: Numbers, path: str) -> pa.Array:
        written = texts(making, values, owners, path).to_pylist()
        found, errors = [], dict[int, str]()
        for at, text in enumerate(written):
            try:
                found.append(read(text))
            except NotATimeError as exc:
                found.append(None)
                errors[at] = str(exc) or f"is not a {name}"
        bad = np.zeros(len(written), np.bool_)
        bad[[*errors]] = True
        making.note(bad, owners, path, lambda at: f"{written[at][:60]!r} {errors[at]}")
        return pa.array(found, kind)

    return convert
