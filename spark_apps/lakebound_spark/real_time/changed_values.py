"""Values that Spark's ``from_json`` changes silently. They go to quarantine instead.

- TINYINT: 128 to 255 become negative. So it is decoded as INT, and compared with its own range.
- TIMESTAMP: a number of milliseconds is taken for seconds, and the largest overflow to any other time. A text without a day,
  such as "12:30", gets the day on which it is decoded: another one when the record is read again.
- DATE: a text of one to three digits, or of five and more, is taken for days since 1970, and what follows a day is ignored,
  whether it is a time or not.
- DECIMAL: commas in a text are left out, so that "12,50" becomes 1250. A comma may be a decimal point, or part thousands.
- STRING: half a character, an escape such as "\\ud800" without its other half, becomes a question mark; a number beyond
  DOUBLE becomes the text "Infinity", with its quotes. (One with a fraction lands as Java writes that DOUBLE.)
- MAP: a key that comes twice is there twice, and readers differ in which of its values they take.

A number in a DECIMAL is rounded to the column's scale, half up, and one in a FLOAT or DOUBLE to the nearest: these land.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import reduce
from operator import or_

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from lakebound_spark.batch.landable import Test, any_of, some_field

_PLAIN_NAME = re.compile(r"[A-Za-z0-9_]+")
_ESCAPE = r"\u"
_ESCAPED_HALF = r"\\u[dD][89a-fA-F]"
"""In few records with an escape."""
_UNESCAPED = r"(?<!\\)(?:\\\\){0,9}"
_HIGH, _LOW = r"\\u[dD][89abAB][0-9a-fA-F]{2}", r"\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_HALF = rf"{_UNESCAPED}(?:{_HIGH}(?!{_LOW})|(?<!{_UNESCAPED}{_HIGH}){_LOW})"
_BEYOND_DOUBLE = r"[eE]\+?[0-9]{3}|[0-9]{309}[0-9]*[.eE]"
"""In all texts with a number of more than a DOUBLE holds, and in few others."""
_BLANKS = r"[\s\p{Cntrl}]*"
"""What Spark ignores before and after a date or time."""
_DAY = rf"^{_BLANKS}[0-9]{{4}}(-[0-9]{{1,2}}(-[0-9]{{1,2}}([ T][0-9].*)?)?)?{_BLANKS}$"


def half_character(text: Column) -> Column:
    """Return the condition that an escape in a JSON text is half a character, which UTF-8 cannot write."""
    # A pattern is tried at each character of a text, which costs as much as decoding it; few texts have an escape at all.
    return text.contains(_ESCAPE) & text.rlike(_ESCAPED_HALF) & text.rlike(_HALF)


def decoded_type(kind: T.DataType) -> T.DataType:
    """Return the type that a value is decoded as: its own, with INT in place of TINYINT."""
    return _nullable(kind, lambda leaf: T.IntegerType() if isinstance(leaf, T.ByteType) else leaf)


def as_named(value: Column, kind: T.DataType) -> Column:
    """Return a value that was decoded as ``decoded_type`` in the type that the schema names."""
    named = _nullable(kind, lambda leaf: leaf)
    return value if decoded_type(kind) == named else value.try_cast(named)


def changes(body: Column, schema: T.StructType, text: Column) -> Iterator[tuple[Column, Column]]:
    """Yield the conditions that Spark changed a value of a record, each with what it did in words.

    Args:
        body: The decoded record, in the types of ``decoded_type``.
        schema: Of the records.
        text: The record's JSON.
    """
    for test, told in ((_outside_byte, "a number is too large for its type"), (_key_twice, "a map has a key twice")):
        found = some_field(body, schema, test)
        if found is not None:
            yield found, F.lit(told)
    infinite = some_field(body, schema, _infinity_in_quotes)
    if infinite is not None:
        # Without a null, so that the pattern is searched for in these texts only.
        yield F.coalesce(infinite, F.lit(False)) & text.rlike(_BEYOND_DOUBLE), F.lit("a number is too large to be a text")
    for kind, suspected, tests in _AS_TEXT:
        yield from _strange_texts(schema, text, kind, suspected, tests)


def _nullable(kind: T.DataType, leaf: Callable[[T.DataType], T.DataType]) -> T.DataType:
    """Return the type with every part nullable; ``leaf`` says what becomes of a type that has none inside."""
    if isinstance(kind, T.StructType):
        return T.StructType([T.StructField(field.name, _nullable(field.dataType, leaf)) for field in kind.fields])
    if isinstance(kind, T.ArrayType):
        return T.ArrayType(_nullable(kind.elementType, leaf))
    if isinstance(kind, T.MapType):
        return T.MapType(_nullable(kind.keyType, leaf), _nullable(kind.valueType, leaf))
    return leaf(kind)


def _outside_byte(value: Column, kind: T.DataType) -> Column | None:
    """A ``Test`` of values in their decoded type: a TINYINT is none."""
    return (value < -128) | (value > 127) if isinstance(kind, T.ByteType) else None


def _infinity_in_quotes(value: Column, kind: T.DataType) -> Column | None:
    """A ``Test``: a text is what Spark makes of a number beyond DOUBLE."""
    return value.isin('"Infinity"', '"-Infinity"') if isinstance(kind, T.StringType) else None


def _key_twice(value: Column, kind: T.DataType) -> Column | None:
    """A ``Test``: a map has a key twice."""
    keys = F.map_keys(value)
    return F.size(keys) != F.size(F.array_distinct(keys)) if isinstance(kind, T.MapType) else None


def _long_number(value: Column, kind: T.DataType) -> Column | None:
    """A ``Test`` of times decoded as text: a number that is no second of the years 1 to 9999."""
    return value.rlike("^-?[0-9]{13,}$") if isinstance(kind, T.StringType) else None


def _no_day(value: Column, kind: T.DataType) -> Column | None:
    """A ``Test`` of times decoded as text: neither a number nor a text that begins with a year."""
    return ~value.rlike(rf"^{_BLANKS}[+-]?[0-9]{{4}}|^-?[0-9]+$") if isinstance(kind, T.StringType) else None


def _with_comma(value: Column, kind: T.DataType) -> Column | None:
    """A ``Test`` of numbers decoded as text: Spark would leave out a comma."""
    return value.contains(",") if isinstance(kind, T.StringType) else None


def _no_plain_day(value: Column, kind: T.DataType) -> Column | None:
    """A ``Test`` of dates decoded as text: something else than year, month and day, perhaps with a time."""
    return ~value.rlike(_DAY) if isinstance(kind, T.StringType) else None


_AS_TEXT: tuple[tuple[type[T.DataType], str, tuple[tuple[Test, str], ...]], ...] = (
    (
        T.TimestampType,
        r"""-?[0-9]{13}|["'](?!\s*[0-9]{4})""",
        (
            (_long_number, "a time is a number that is not in seconds; it looks like milliseconds, or finer"),
            (_no_day, "a time has no day"),
        ),
    ),
    (
        T.DateType,
        r"""["'](?![0-9]{4}-[0-9]{1,2}-[0-9]{1,2}["'])""",
        ((_no_plain_day, "a date is not written as year, month and day"),),
    ),
    (
        T.DecimalType,
        r"""["'][^"'\\]*[,\\]""",
        ((_with_comma, "a number in a text has a comma, which may be a decimal point"),),
    ),
)
"""Per type: what a text may begin with that is strange, as a pattern, and the tests that say whether it is."""


def _strange_texts(
    schema: T.StructType, text: Column, kind: type[T.DataType], suspected: str, tests: tuple[tuple[Test, str], ...]
) -> Iterator[tuple[Column, Column]]:
    """Yield the condition that a value fails a test, and which. Where it may, its type's values are decoded again, as text."""
    as_text, tested = _as_text(schema, kind, T.StringType()), _as_text(schema, kind, T.BinaryType())
    if not isinstance(as_text, T.StructType) or not isinstance(tested, T.StructType):
        return
    suspect = _suspect(as_text, suspected, text)
    times = F.from_json(text, as_text)
    failed = [
        (F.coalesce(found, F.lit(False)), told)
        for test, told in tests
        if (found := some_field(times, tested, test)) is not None
    ]
    strange = any_of([condition for condition, _ in failed])
    if strange is not None:
        first_told = F.coalesce(*(F.when(condition, F.lit(told)) for condition, told in failed))
        yield (strange if suspect is None else suspect & strange), first_told


def _as_text(kind: T.DataType, wanted: type[T.DataType], key: T.DataType) -> T.DataType | None:
    """Return a type with its values of the wanted type alone, as text; None where it has none.

    Args:
        kind: A type.
        wanted: Of the values.
        key: The type of the keys of maps. To be decoded they are text; of another type they are not taken for values.
    """
    if isinstance(kind, wanted):
        return T.StringType()
    if isinstance(kind, T.StructType):
        inside = [(field.name, _as_text(field.dataType, wanted, key)) for field in kind.fields]
        fields = [T.StructField(name, found) for name, found in inside if found is not None]
        return T.StructType(fields) if fields else None
    if isinstance(kind, T.ArrayType):
        element = _as_text(kind.elementType, wanted, key)
        return None if element is None else T.ArrayType(element)
    if isinstance(kind, T.MapType):
        value = _as_text(kind.valueType, wanted, key)
        return None if value is None else T.MapType(key, value)
    return None


def _suspect(fields: T.StructType, suspected: str, text: Column) -> Column | None:
    """Return a condition that all records meet in which a value begins so, and few others: it saves decoding these again.

    None where a name does not tell the value.
    """
    names = _names_of(fields)
    if names is None:
        return None
    # Each pattern begins with a name: Java searches faster for one fixed beginning than for several (java.util.regex.Pattern).
    patterns = (rf"""{name}["']\s*:\s*(?:{suspected})""" for name in sorted(names))
    return reduce(or_, (text.rlike(pattern) for pattern in patterns), text.contains(_ESCAPE))


def _names_of(fields: T.StructType) -> set[str] | None:
    """Return the names of all these values; None where a name does not tell them: elements of lists and maps have none."""
    names: set[str] = set()
    for field in fields.fields:
        inside = _names_of(field.dataType) if isinstance(field.dataType, T.StructType) else {field.name}
        if inside is None or not _PLAIN_NAME.fullmatch(field.name) or isinstance(field.dataType, T.ArrayType | T.MapType):
            return None
        names |= inside
    return names
