"""Readers of the JSON value of one column: what a value is in the column's type, or what is wrong with it, in words. Pure.

A value lands as it was sent, or not at all. A text column holds the record's own text: of a number, an object or an array the
characters that stand in the record. A number in a DECIMAL is rounded to the column's scale, half up, and one in a FLOAT or
DOUBLE to the nearest.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from lakebound.formats.epoch_units import unit_of
from lakebound.formats.json.misfit import MisfitError, shown
from lakebound.formats.times import FIRST_MS, LAST_MS, NotATimeError, day_of, microseconds_of

Read = Callable[[bytes], Any]
"""Returns the value of a JSON text that is not null; raises MisfitError."""

_BITS = {pa.int8(): 8, pa.int16(): 16, pa.int32(): 32, pa.int64(): 64}
_NAMES = {
    pa.binary(): "BINARY",
    pa.bool_(): "BOOLEAN",
    pa.int8(): "TINYINT",
    pa.date32(): "DATE",
    pa.float64(): "DOUBLE",
    pa.float32(): "FLOAT",
    pa.int32(): "INT",
    pa.int64(): "BIGINT",
    pa.int16(): "SMALLINT",
    pa.timestamp("us"): "TIMESTAMP_NTZ",
    pa.timestamp("us", tz="UTC"): "TIMESTAMP",
}
_MOST_DIGITS_OF_INT = 20
"""With the sign: a longer one is beyond every type. Python reads a long text of digits in time that grows by its square."""
_WHOLE = re.compile(rb"-?[0-9]+")
_NUMBER = re.compile(r"[+-]?(\d++(\.\d*+)?|\.\d++)([eE][+-]?\d++)?")
_EXACT = Context(prec=100)
_BLANKS = bytes(range(33))

_text_of = msgspec.json.Decoder(str).decode


def leaf_reader(kind: pa.DataType) -> Read:
    """Return the reader of values of a type that has none inside."""
    if pa.types.is_decimal(kind):
        return lambda raw: _decimal(raw, kind)
    make = _READERS.get(kind)
    if make is None:
        raise ValueError(f"JSON has no values of the type {kind}")
    return lambda raw: make(raw, kind)


def text_of(raw: bytes) -> str:
    """Return a JSON value as a text column holds it: a text without its quotes and escapes, else the characters as sent."""
    return _text_of(raw) if raw[0] == _QUOTE else raw.decode()


def is_text(raw: bytes) -> bool:
    """Whether a JSON value is a text."""
    return raw[0] == _QUOTE


_QUOTE = ord('"')
_OPENING = b"[{"
_WORDS = b"tfn"


def _is_number(raw: bytes) -> bool:
    return raw[0] not in _OPENING and raw[0] not in _WORDS and raw[0] != _QUOTE


def _misfit(raw: bytes, kind: pa.DataType) -> MisfitError:
    """Return that a value is not of a type, and no more."""
    name = name_of(kind)
    is_quoted = is_text(raw) and (kind in _BITS or pa.types.is_floating(kind)) and bool(_NUMBER.fullmatch(_text_of(raw)))
    quoted = "; it is a text, not a number" if is_quoted else ""
    return MisfitError(f"{shown(raw)} is not {'an' if name[0] in 'AEIO' else 'a'} {name}{quoted}")


def name_of(kind: pa.DataType) -> str:
    """Return a type as Spark's DDL writes it."""
    return f"DECIMAL({kind.precision},{kind.scale})" if pa.types.is_decimal(kind) else _NAMES[kind]


def _integer(raw: bytes, kind: pa.DataType) -> int:
    if not _WHOLE.fullmatch(raw):
        raise _misfit(raw, kind)
    bound = 1 << _BITS[kind] - 1
    number = int(raw) if len(raw) <= _MOST_DIGITS_OF_INT else bound
    if not -bound <= number < bound:
        raise MisfitError(f"{shown(raw)} is beyond {name_of(kind)} ({-bound} to {bound - 1})")
    return number


def _double(raw: bytes, kind: pa.DataType) -> float:
    if is_text(raw) and _text_of(raw) == "NaN":
        return float("nan")
    if not _is_number(raw):
        raise _misfit(raw, kind)
    number = float(raw) if raw != b"-0" else 0.0  # a whole number has no second zero
    if abs(number) == float("inf"):
        raise MisfitError(f"{shown(raw)} is beyond {name_of(kind)}")
    return number


def _float(raw: bytes, kind: pa.DataType) -> float:
    number = _double(raw, kind)
    if number == 0 or number != number:
        return number
    exact = Decimal(raw.decode())
    if exact != number and not np.float64(number).view(np.int64) & 1:
        # To the odd one of the two neighbours: so rounding twice is as rounding once.
        number = math.nextafter(number, math.inf if exact > number else -math.inf)
    with np.errstate(over="ignore"):
        near = float(np.float32(number))
    if math.isinf(near):
        raise MisfitError(f"{shown(raw)} is beyond {name_of(kind)}")
    return near


def _decimal(raw: bytes, kind: pa.DataType) -> Decimal:
    if not is_text(raw):
        if not _is_number(raw):
            raise _misfit(raw, kind)
        text = raw.decode()
    else:
        text = _text_of(raw)
        if not _NUMBER.fullmatch(text):
            if "," in text and _NUMBER.fullmatch(text.replace(",", "")):
                told = "has a comma, which may be a decimal point: send a point, or a number without quotes"
                raise MisfitError(f"{shown(raw)} {told}")
            raise _misfit(raw, kind)
    before = kind.precision - kind.scale
    try:
        number = Decimal(text)
        if number and number.adjusted() >= before:
            raise MisfitError(f"{shown(raw)} is beyond {name_of(kind)}: it has more than {before} digits before the point")
        if not number or number.adjusted() < -kind.scale - 1:
            return Decimal(0)
        rounded = number.quantize(Decimal(1).scaleb(-kind.scale), ROUND_HALF_UP, _EXACT)
    except InvalidOperation as exc:  # an exponent beyond all numbers
        raise _misfit(raw, kind) from exc
    if rounded and rounded.adjusted() >= before:
        raise MisfitError(f"{shown(raw)} is beyond {name_of(kind)}")
    return rounded


def _time(raw: bytes, kind: pa.DataType) -> int:
    zoned = kind.tz is not None
    if is_text(raw):
        text = _text_of(raw)
        try:
            return microseconds_of(text, zoned=zoned)
        except NotATimeError as exc:
            raise _no_time(raw, kind, str(exc)) from exc
    if zoned and _WHOLE.fullmatch(raw) and len(raw) <= _MOST_DIGITS_OF_INT:
        seconds = int(raw)
        if FIRST_MS <= seconds * 1000 <= LAST_MS:
            return seconds * 1_000_000
    raise _no_time(raw, kind, "")


def _day(raw: bytes, kind: pa.DataType) -> Any:
    if not is_text(raw):
        raise _no_time(raw, kind, "")
    try:
        return day_of(_text_of(raw))
    except NotATimeError as exc:
        raise _no_time(raw, kind, str(exc)) from exc


def _no_time(raw: bytes, kind: pa.DataType, told: str) -> MisfitError:
    epoch = _epoch(raw, kind)
    if epoch or told:
        return MisfitError(f"{shown(raw)} {epoch or told}")
    return _misfit(raw, kind)


def _epoch(raw: bytes, kind: pa.DataType) -> str:
    """Return in which unit a number is a time, which the type does not take so; "" where it is none."""
    text = raw.strip(b'"')
    whole, _, fraction = text.partition(b".")
    if not _WHOLE.fullmatch(whole) or len(whole) > _MOST_DIGITS_OF_INT or (fraction and not fraction.isdigit()):
        return ""
    unit = unit_of(int(whole))
    if unit is None:
        return ""
    form = " as a text" if is_text(raw) else " with a fraction" if fraction else ""
    return f"looks like epoch {unit}{form}; the schema says {name_of(kind)}"


def _boolean(raw: bytes, kind: pa.DataType) -> bool:
    if raw not in (b"true", b"false"):
        raise _misfit(raw, kind)
    return raw == b"true"


def _binary(raw: bytes, kind: pa.DataType) -> bytes:
    if not is_text(raw):
        raise _misfit(raw, kind)
    try:
        return base64.b64decode(_text_of(raw).encode().translate(None, _BLANKS), validate=True)
    except (binascii.Error, ValueError) as exc:
        raise MisfitError(f"{shown(raw)} is not BINARY, which JSON has in Base64") from exc


_READERS: dict[pa.DataType, Callable[[bytes, pa.DataType], Any]] = {
    **dict.fromkeys(_BITS, _integer),
    pa.float32(): _float,
    pa.float64(): _double,
    pa.binary(): _binary,
    pa.bool_(): _boolean,
    pa.date32(): _day,
    pa.string(): lambda raw, _: text_of(raw),
    pa.timestamp("us"): _time,
    pa.timestamp("us", tz="UTC"): _time,
}
