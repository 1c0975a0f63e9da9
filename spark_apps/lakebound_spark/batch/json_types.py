"""Types of a pipeline's JSON values as msgspec decodes them.

Where msgspec has no check as strict as Spark's, a value is taken as it is written, and judged with all others of its column
(``lakebound_spark.batch.json_columns``).
"""

from __future__ import annotations

import datetime
import operator
import re
from typing import Annotated, Any

import msgspec
from pyspark.sql.types import (
    ArrayType,
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

_UNNAMED = re.compile(r'["\\\x00-\x1f]')
_SIMPLE: dict[type[DataType], Any] = {
    StringType: str,
    DoubleType: float,
    FloatType: float,
    BooleanType: bool,
    DateType: datetime.date,
    TimestampType: str,
    TimestampNTZType: str,
    DecimalType: msgspec.Raw,
    **{
        kind: Annotated[int, msgspec.Meta(ge=-(1 << bits - 1), le=(1 << bits - 1) - 1)]
        for kind, bits in {ByteType: 8, ShortType: 16, IntegerType: 32, LongType: 64}.items()
    },
}
JUDGED_LATER: tuple[type[DataType], ...] = (DecimalType, FloatType, TimestampType, TimestampNTZType)
"""Types of which a decoded value may still be none that Spark takes."""


class MapKey(str):
    """A key of a map, equal to itself alone: so a map has a key twice where its text has it twice."""

    __slots__ = ()
    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other

    def __ne__(self, other: object) -> bool:
        return self is not other


def is_taken(kind: DataType) -> bool:
    """Whether the driver decodes values of a type; msgspec gives no field a name that JSON writes with an escape."""
    if isinstance(kind, ArrayType):
        return is_taken(kind.elementType)
    if isinstance(kind, MapType):
        return isinstance(kind.keyType, StringType) and is_taken(kind.valueType)
    if isinstance(kind, StructType):
        return all(is_taken(field.dataType) and not _UNNAMED.search(field.name) for field in kind.fields)
    return type(kind) in _SIMPLE


def object_decoder(schema: StructType, *, unknown_refused: bool) -> msgspec.json.Decoder[Any]:
    """Return the decoder of objects; what it makes has the fields' values as f0, f1, ...

    Args:
        schema: Of the objects.
        unknown_refused: Whether it refuses a field that the schema does not name.
    """
    return msgspec.json.Decoder(_struct(schema, unknown_refused=unknown_refused), dec_hook=operator.call)


def _struct(schema: StructType, *, unknown_refused: bool = False, nested: bool = False) -> type[msgspec.Struct]:
    """Return a type with fields f0, f1, ... under the schema's names; inside of a value Spark takes each as nullable."""
    fields: list[Any] = []
    for index, field in enumerate(schema.fields):
        if field.nullable or nested:
            fields.append((f"f{index}", _or_null(field.dataType), None))
        else:
            fields.append((f"f{index}", _python_type(field.dataType)))
    names = {f"f{index}": field.name for index, field in enumerate(schema.fields)}
    return msgspec.defstruct(
        "Value", fields, rename=names, forbid_unknown_fields=unknown_refused, kw_only=True, gc=False, frozen=True
    )


def _python_type(kind: DataType) -> Any:
    if isinstance(kind, ArrayType):
        return list[_or_null(kind.elementType)]  # type: ignore[misc]
    if isinstance(kind, MapType):
        return dict[MapKey, _or_null(kind.valueType)]  # type: ignore[misc]
    if isinstance(kind, StructType):
        return _struct(kind, nested=True)
    return _SIMPLE[type(kind)]


def _or_null(kind: DataType) -> Any:
    found = _python_type(kind)
    return found if found is msgspec.Raw else found | None
