"""The types that a pipeline's schema takes, and of each the values at which readers are known to stumble."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa

Neighbour = Callable[[Any, int], Any]
"""Returns the value just below (-1) or just above (1) one, the value itself where there is none."""

_EXACT = Context(prec=60)
_MICROSECOND = datetime.timedelta(microseconds=1)


@dataclass(frozen=True)
class Kind:
    """A type, and values of it.

    Attributes:
        name: Of the type.
        type: In Arrow.
        values: In no order.
        neighbour: Of a value.
    """

    name: str
    type: pa.DataType
    values: tuple[Any, ...]
    neighbour: Neighbour = field(repr=False)

    @property
    def is_float(self) -> bool:
        """Whether it has NaN."""
        return bool(pa.types.is_floating(self.type))

    @property
    def has_prefixes(self) -> bool:
        """Whether it has a ``like``."""
        return bool(pa.types.is_string(self.type))


def _integer(bits: int) -> Kind:
    least, largest = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1

    def neighbour(value: int, step: int) -> int:
        return min(max(value + step, least), largest)

    kind = {8: pa.int8(), 16: pa.int16(), 32: pa.int32(), 64: pa.int64()}[bits]
    return Kind(f"int{bits}", kind, (least, least + 1, -10, -1, 0, 1, 10, largest - 1, largest), neighbour)


def _float32(value: float) -> float:
    return float(np.float32(value))


def _next32(value: float, step: int) -> float:
    return value if math.isnan(value) else float(np.nextafter(np.float32(value), np.float32(math.copysign(math.inf, step))))


def _next64(value: float, step: int) -> float:
    return math.nextafter(value, math.copysign(math.inf, step))


def _decimal(precision: int, scale: int) -> Kind:
    largest = Decimal(10**precision - 1).scaleb(-scale, context=_EXACT)
    last = Decimal(1).scaleb(-scale, context=_EXACT)
    some = Decimal(int("1234567890" * 4) % 10**precision).scaleb(-scale, context=_EXACT)

    def neighbour(value: Decimal, step: int) -> Decimal:
        found = _EXACT.add(value, last if step > 0 else _EXACT.minus(last))
        return value if found.copy_abs() > largest else found

    above = (last, some, largest)
    values = (*map(_EXACT.minus, above), Decimal(0).scaleb(-scale), *above)
    return Kind(f"decimal_{precision}_{scale}", pa.decimal128(precision, scale), values, neighbour)


def _next_text(value: str, step: int) -> str:
    return value + "\x01" if step > 0 else value[:-1]


def _next_bytes(value: bytes, step: int) -> bytes:
    return value + b"\x00" if step > 0 else value[:-1]


def _next_day(value: datetime.date, step: int) -> datetime.date:
    return datetime.date.fromordinal(min(max(value.toordinal() + step, 1), datetime.date.max.toordinal()))


def _next_moment(value: datetime.datetime, step: int) -> datetime.datetime:
    try:
        return value + step * _MICROSECOND
    except OverflowError:
        return value


_FLOATS = (math.nan, math.inf, -math.inf, -0.0, 0.0, 1.5, -1.5)
_TEXTS = (
    "",
    "a",
    "A",
    "abc",
    "a%_b",
    "x" * 32 + "a",
    "x" * 32 + "\U0010ffff" + "z",
    "z" * 5000,
    "\U0001f600",
    "\U00020000b",
    "\U0010ffff" * 40,
    "a" * 15 + "\ud7ff" + "b",
    "\ud7ff",
    "\ue000",
    "é" * 33,
    'it\'s \\ "q"',
    "line\u2028end\x85\t\n",
    "\x7f",
    "null",
)
_DAYS = ("0001-01-01", "1582-10-04", "1582-10-15", "1969-12-31", "1970-01-01", "2024-02-29", "9999-12-31")
_MOMENTS = (
    "0001-01-01T00:00:00",
    "1582-10-04T23:59:59.999999",
    "1900-01-01T00:00:00.000001",
    "1969-12-31T23:59:59.999999",
    "1970-01-01T00:00:00",
    "2024-01-01T00:00:00.000999",
    "2024-01-01T00:00:00.001001",
    "2024-03-31T01:30:00",
    "9999-12-31T23:59:59.999999",
)


def _moments(zone: datetime.tzinfo | None) -> tuple[datetime.datetime, ...]:
    return tuple(datetime.datetime.fromisoformat(text).replace(tzinfo=zone) for text in _MOMENTS)


KINDS = {
    kind.name: kind
    for kind in (
        *(_integer(bits) for bits in (8, 16, 32, 64)),
        Kind("truncatable", pa.int64(), (-(2**62), -8, -7, -1, 0, 6, 7, 2**63 - 1), _integer(64).neighbour),
        Kind("float32", pa.float32(), (*_FLOATS, _float32(0.1), _float32(1e-45), -_float32(3.4028235e38)), _next32),
        Kind("float64", pa.float64(), (*_FLOATS, 0.1, 5e-324, -1.7976931348623157e308), _next64),
        Kind("bool", pa.bool_(), (False, True), lambda value, step: step > 0),
        *(_decimal(*digits) for digits in ((9, 2), (18, 4), (30, 2), (38, 0), (38, 18), (38, 38))),
        Kind("string", pa.string(), _TEXTS, _next_text),
        Kind("binary", pa.binary(), (b"", b"\x00", b"a", b"\x7f\xff", b"\xff", b"\xff" * 40, b"z" * 5000), _next_bytes),
        Kind("date", pa.date32(), tuple(map(datetime.date.fromisoformat, _DAYS)), _next_day),
        Kind("timestamp", pa.timestamp("us", tz="UTC"), _moments(datetime.UTC), _next_moment),
        Kind("timestamp_ntz", pa.timestamp("us"), _moments(None), _next_moment),
    )
}
