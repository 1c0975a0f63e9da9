"""Headers of records as columns.

Of equal names the last one counts, as in Kafka's own clients (``Headers.lastHeader``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, pairwise
from typing import Literal

import pyarrow as pa

from lakebound.formats.contract import Decoded, Headers, Problem, Records, ValueDecoder
from lakebound.formats.plain import NOT_UTF8, text_column

HeaderKind = Literal["STRING", "BINARY", "BIGINT", "INT"]
HEADERS_TYPE = pa.list_(pa.field("element", pa.struct([pa.field("name", pa.string()), pa.field("value", pa.binary())])))
"""All headers of a record, in their order."""
DOES_NOT_FIT = "does_not_fit"
_NUMBERS = {"INT": pa.int32(), "BIGINT": pa.int64()}
_TYPES = {"STRING": pa.string(), "BINARY": pa.binary(), **_NUMBERS}
_NUMBER = re.compile(rb"[+-]?[0-9]{1,40}")
_SHOWN_BYTES = 40


@dataclass(frozen=True)
class HeaderColumn:
    """A column made of headers.

    Attributes:
        column: Its name.
        name: Of the header; None: the column has all headers.
        kind: Its type. A number is written as decimal text in the header. Not looked at for all headers.
    """

    column: str
    name: str | None
    kind: HeaderKind = "STRING"

    @property
    def type(self) -> pa.DataType:
        """Its type in Arrow."""
        return HEADERS_TYPE if self.name is None else _TYPES[self.kind]


@dataclass(frozen=True)
class HeadersFormat:
    """What becomes of the headers of a record; of its key and value nothing.

    Attributes:
        wanted: The columns.
    """

    wanted: tuple[HeaderColumn, ...]

    @property
    def columns(self) -> pa.Schema:
        """What the decoder gives."""
        return pa.schema([pa.field(one.column, one.type) for one in self.wanted])

    @property
    def reads_headers(self) -> bool:
        """Whether the decoder needs the records' headers."""
        return True

    def decoder(self) -> ValueDecoder:
        """Return a decoder."""
        return self

    def decode(self, records: Records) -> Decoded:
        """Return what becomes of records; headers that are not there are null, and all headers of a record without any empty.

        Raises:
            ValueError: The records came without their headers.
        """
        if records.headers is None:
            raise ValueError("records came without their headers, which become columns")
        problems: dict[int, Problem] = {}
        by_name = [dict(one) for one in records.headers]
        columns = {one.column: _column(one, records.headers, by_name, problems) for one in self.wanted}
        decoded = Decoded(columns, problems, len(records.values))
        if not problems:
            return decoded
        good = pa.array(decoded.good, pa.int64())
        return Decoded({name: column.take(good) for name, column in columns.items()}, problems, decoded.count)


def headers_array(headers: Sequence[Headers | None]) -> pa.ListArray:
    """Return headers of records as an array of ``HEADERS_TYPE``; None is null."""
    flat = [*chain.from_iterable(one for one in headers if one)]
    inside = [pa.array([name for name, _ in flat], pa.string()), pa.array([value for _, value in flat], pa.binary())]
    offsets = pa.array([0, *accumulate(len(one) if one else 0 for one in headers)], pa.int32())
    elements = pa.StructArray.from_arrays(inside, fields=list(HEADERS_TYPE.value_type))
    mask = pa.array([one is None for one in headers], pa.bool_()) if None in headers else None
    return pa.ListArray.from_arrays(offsets, elements, type=HEADERS_TYPE, mask=mask)


def headers_of(array: pa.ListArray) -> list[Headers]:
    """Return the headers of each record in an array of names and values; none where it is null."""
    if array.null_count == len(array):
        return [()] * len(array)
    inside = array.values
    flat = [*zip(inside.field(0).to_pylist(), inside.field(1).to_pylist(), strict=True)]
    spans = pairwise(array.offsets.to_pylist())
    if not array.null_count:
        return [flat[first:end] for first, end in spans]
    is_there = array.is_valid().to_pylist()
    return [flat[first:end] if valid else () for valid, (first, end) in zip(is_there, spans, strict=True)]


def _column(
    one: HeaderColumn,
    headers: Sequence[Headers],
    by_name: Sequence[Mapping[str, bytes | None]],
    problems: dict[int, Problem],
) -> pa.Array:
    """Return a column with nulls where a header does not fit, and add that to the problems; the first one counts."""
    if one.name is None:
        return headers_array(headers)
    name = one.name
    values = [found.get(name) for found in by_name]
    if one.kind == "BINARY":
        return pa.array(values, pa.binary())
    if one.kind == "STRING":
        column, wrong = text_column(values)
        for at, what in wrong.items():
            problems.setdefault(at, Problem(NOT_UTF8, f"header {name}: is not UTF-8: {what}"))
        return column
    bits = one.type.bit_width
    numbers = [None if value is None else _number(value, bits) for value in values]
    for at, (value, number) in enumerate(zip(values, numbers, strict=True)):
        if value is not None and number is None:
            problems.setdefault(at, Problem(DOES_NOT_FIT, f"header {name}: {_shown(value)} is no {one.kind} in decimal text"))
    return pa.array(numbers, one.type)


def _number(value: bytes, bits: int) -> int | None:
    if not _NUMBER.fullmatch(value):
        return None
    number, beyond = int(value), 1 << bits - 1
    return number if -beyond <= number < beyond else None


def _shown(value: bytes) -> str:
    text = value[:_SHOWN_BYTES].decode("utf-8", "backslashreplace")
    return repr(text) + ("…" if len(value) > _SHOWN_BYTES else "")
