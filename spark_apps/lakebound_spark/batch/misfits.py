"""Which fields of a record do not fit the schema, in words: ``amount: 'abc' is not a DECIMAL(12,2)``. Pure.

``decode`` alone decides which records are bad, and does so in Spark without naming fields. This is asked about
bad records only. It knows the rules of Spark's JSON reader; where it finds nothing, it says nothing.
Source: Spark's ``JacksonParser.makeConverter``; ``tests/spark/test_explained.py`` holds the two side by side.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable, Iterator
from decimal import ROUND_HALF_UP, Context, Decimal
from itertools import islice
from typing import Any

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from lakebound.spec.draft.epoch_units import unit_of
from lakebound.spec.draft.time_texts import wrong_date, wrong_time
from lakebound_spark.batch.landable import FIRST_MS, LAST_MS

MOST_NAMED = 3
"""Number of fields that are named; then the text says that there are more."""
MOST_SHOWN = 60
"""Number of characters of a value that are shown."""
_NAMES: dict[type[DataType], str] = {
    BinaryType: "BINARY",
    BooleanType: "BOOLEAN",
    ByteType: "TINYINT",
    DateType: "DATE",
    DoubleType: "DOUBLE",
    FloatType: "FLOAT",
    IntegerType: "INT",
    LongType: "BIGINT",
    ShortType: "SMALLINT",
    TimestampNTZType: "TIMESTAMP_NTZ",
    TimestampType: "TIMESTAMP",
}
_BITS: dict[type[DataType], int] = {ByteType: 8, ShortType: 16, IntegerType: 32, LongType: 64}
_LARGEST: dict[type[DataType], Decimal] = {
    FloatType: Decimal("3.4028235677973366e38"),
    DoubleType: Decimal("1.797693134862315808e308"),
}
_DIGITS = re.compile(r"^-?\d+$")
_NUMBER = re.compile(r"^[+-]?(\d++(\.\d*+)?|\.\d++)([eE][+-]?\d++)?$")
_PLAIN = re.compile(r"^[A-Za-z_]\w*$")


def explain(value: bytes | None, schema: StructType) -> str | None:
    """Return the first fields of a record that do not fit, and why; None where none is found. It never raises.

    Args:
        value: The record's bytes: a JSON object.
        schema: Of the pipeline's records.
    """
    try:
        body = json.loads(value or b"", parse_float=Decimal)
        found = list(islice(_misfits(body, schema, ""), MOST_NAMED + 1)) if isinstance(body, dict) else []
    except Exception:  # a record may hold anything, and a batch must not fail because an explanation is missing
        return None
    if not found:
        return None
    return "; ".join(found[:MOST_NAMED]) + ("; and more" if len(found) > MOST_NAMED else "")


def _misfits(value: Any, kind: DataType, path: str) -> Iterator[str]:
    """Yield ``PATH: what is wrong`` of a value and all inside of it; null fits every type."""
    if value is None:
        return
    if isinstance(kind, StructType | MapType | ArrayType):
        is_list = isinstance(kind, ArrayType)
        if not isinstance(value, list if is_list else dict):
            yield f"{path}: {_shown(value)} is not an {'array' if is_list else 'object'}"
            return
        for inside, own_kind, own_path in _insides(value, kind, path):
            yield from _misfits(inside, own_kind, own_path)
        return
    wrong = _wrong_leaf(value, kind)
    if wrong is not None:
        yield f"{path}: {_shown(value)} {wrong}"


def _insides(value: Any, kind: StructType | MapType | ArrayType, path: str) -> Iterator[tuple[Any, DataType, str]]:
    """Yield what a value has inside: value, type and path."""
    if isinstance(kind, StructType):
        for field in kind.fields:
            if field.name in value:
                yield value[field.name], field.dataType, _below(path, field.name)
    elif isinstance(kind, MapType):
        for key, inside in value.items():
            yield inside, kind.valueType, f"{path}[{_shown(key)}]"
    else:
        for number, inside in enumerate(value):
            yield inside, kind.elementType, f"{path}[{number}]"


def _below(path: str, name: str) -> str:
    shown = name if _PLAIN.match(name) else f"`{name[:MOST_SHOWN]}`"
    return f"{path}.{shown}" if path else shown


def _wrong_leaf(value: Any, kind: DataType) -> str | None:
    """Return what is wrong with a value that has none inside; None where it fits."""
    test = _TESTS.get(type(kind))
    if test is None:
        return None
    wrong = test(value, kind)
    if wrong != "":
        return wrong
    name = _name(kind)
    quoted = "; it is a text, not a number" if _is_quoted_number(value, kind) else ""
    return f"is not {'an' if name[0] in 'AEIO' else 'a'} {name}{quoted}"


def _name(kind: DataType) -> str:
    return f"DECIMAL({kind.precision},{kind.scale})" if isinstance(kind, DecimalType) else _NAMES[type(kind)]


def _is_quoted_number(value: Any, kind: DataType) -> bool:
    return isinstance(value, str) and isinstance(kind, (*_BITS, FloatType, DoubleType)) and bool(_NUMBER.match(value))


# Each of these returns what is wrong; "" where there is no more to say than that it is not of the type; None where it fits.


def _integer(value: Any, kind: DataType) -> str | None:
    if not _is_integer(value):
        return ""
    bound = 1 << _BITS[type(kind)] - 1
    return None if -bound <= value < bound else f"is beyond {_name(kind)} ({-bound} to {bound - 1})"


def _floating(value: Any, kind: DataType) -> str | None:
    if isinstance(value, float):  # NaN and Infinity as bare words
        return None if value != value else ""
    if isinstance(value, str):
        return None if value == "NaN" else ""
    if not _is_number(value):
        return ""
    return f"is beyond {_name(kind)}" if Decimal(value).copy_abs() >= _LARGEST[type(kind)] else None


def _decimal(value: Any, kind: DataType) -> str | None:
    assert isinstance(kind, DecimalType)
    if isinstance(value, str):
        if "," in value and _NUMBER.match(value.replace(",", "")):
            return "has a comma, which may be a decimal point: send a point, or a number without quotes"
        number = Decimal(value) if _NUMBER.match(value) else None
    else:
        number = Decimal(value) if _is_number(value) else None
    if number is None:
        return ""
    before = kind.precision - kind.scale
    if number and number.adjusted() >= before:
        return f"is beyond {_name(kind)}: it has more than {before} digits before the point"
    rounded = number.quantize(Decimal(1).scaleb(-kind.scale), ROUND_HALF_UP, Context(prec=100))
    return f"is beyond {_name(kind)}" if rounded and rounded.adjusted() >= before else None


def _time(value: Any, kind: DataType) -> str | None:
    if isinstance(value, str):
        wrong = wrong_time(value, zoned=isinstance(kind, TimestampType))
        return _epoch(value, kind) if wrong is not None and _DIGITS.match(value) else wrong
    if isinstance(value, Decimal) or not _is_integer(value) or isinstance(kind, TimestampNTZType):
        return _epoch(value, kind)
    return None if FIRST_MS <= value * 1000 <= LAST_MS else _epoch(value, kind)


def _date(value: Any, kind: DataType) -> str | None:
    wrong = wrong_date(value) if isinstance(value, str) else ""
    return _epoch(value, kind) if wrong is not None and (not isinstance(value, str) or _DIGITS.match(value)) else wrong


def _epoch(value: Any, kind: DataType) -> str:
    """Return what is wrong with a number that is no time of this type."""
    if isinstance(value, str | Decimal):
        whole = int(value) if isinstance(value, str) or value.adjusted() < 20 else 0
    else:
        whole = value if _is_integer(value) else 0
    unit = unit_of(whole)
    if unit is None:
        return ""
    form = " as a text" if isinstance(value, str) else " with a fraction" if isinstance(value, Decimal) else ""
    return f"looks like epoch {unit}{form}; the schema says {_name(kind)}"


def _boolean(value: Any, _: DataType) -> str | None:
    return None if isinstance(value, bool) else ""


def _binary(value: Any, _: DataType) -> str | None:
    if not isinstance(value, str):
        return ""
    try:
        base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        return "is not BINARY, which JSON has in Base64"
    return None


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | Decimal) and not isinstance(value, bool)


def _shown(value: Any) -> str:
    """Return a value as its reader knows it, cut."""
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "an array"
    if isinstance(value, str):
        return repr(value) if len(value) <= MOST_SHOWN else repr(value[:MOST_SHOWN]) + "..."
    text = (
        json.dumps(value) if isinstance(value, bool | float) else str(value)
    )  # true, NaN, Infinity as JSON's writers have them
    return text if len(text) <= MOST_SHOWN else text[:MOST_SHOWN] + "..."


def _text(value: Any, kind: DataType) -> str | None:
    """Spark writes a number into a text as a DOUBLE, and makes the word Infinity of a larger one."""
    too_large = isinstance(value, Decimal) and abs(value) >= _LARGEST[DoubleType]
    return "is a number too large to be kept as a text" if too_large else None


_TESTS: dict[type[DataType], Callable[[Any, DataType], str | None]] = {
    **dict.fromkeys(_BITS, _integer),
    **dict.fromkeys(_LARGEST, _floating),
    BinaryType: _binary,
    BooleanType: _boolean,
    DateType: _date,
    DecimalType: _decimal,
    StringType: _text,
    TimestampNTZType: _time,
    TimestampType: _time,
}
