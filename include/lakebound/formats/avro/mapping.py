"""The columns of Avro's types. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from lakebound.formats.avro import types
from lakebound.formats.avro.logical import MOST_DIGITS
from lakebound.formats.same_names import as_compared
from lakebound.formats.schemas import UnreadableSchemaError

TIMESTAMP, TIMESTAMP_NTZ = pa.timestamp("us", tz="UTC"), pa.timestamp("us")
DURATION = pa.struct([pa.field(name, pa.int64()) for name in ("months", "days", "milliseconds")])
OF_PRIMITIVES = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
}
OF_LOGICALS = {
    "date": pa.date32(),
    "duration": DURATION,
    "local-timestamp-micros": TIMESTAMP_NTZ,
    "local-timestamp-millis": TIMESTAMP_NTZ,
    "time-micros": pa.string(),
    "time-millis": pa.string(),
    "timestamp-micros": TIMESTAMP,
    "timestamp-millis": TIMESTAMP,
    "uuid": pa.string(),
}
WITHOUT_COLUMN = {
    "big-decimal": "each value has a scale of its own, and a column has one for all: give it as BINARY in `schema:`",
    "local-timestamp-nanos": "tables have microseconds: give it as BIGINT in `schema:`",
    "timestamp-nanos": "tables have microseconds: give it as BIGINT in `schema:`",
}
VALUE = "value"
"""Name of the one column of a schema that is no record."""


def columns(kind: types.AvroType) -> pa.Schema:
    """Return the columns of a schema.

    Raises:
        UnreadableSchemaError: A part has no column.
    """
    if isinstance(kind, types.Record):
        return pa.schema(_fields([(one.name, one.type) for one in kind.fields], "", is_top=True))
    return pa.schema(_fields([(VALUE, kind)], "", is_top=True))


def _fields(parts: Sequence[tuple[str, types.AvroType]], path: str, *, is_top: bool = False) -> list[pa.Field]:
    """Return a field each; inside of a column all are nullable, as in the tables."""
    folded: dict[str, str] = {}
    for name, _ in parts:
        if as_compared(name) in folded:
            other = folded[as_compared(name)]
            told = (
                f"differs from {other} by upper and lower case only"
                if other != name
                else "the union has two types of this name"
            )
            raise UnreadableSchemaError(types.inside(path, name), told)
        folded[as_compared(name)] = name
    if not parts:
        raise UnreadableSchemaError(path, "a record without fields has no column")
    return [
        pa.field(name, column_type(kind, types.inside(path, name)), not is_top or is_nullable(kind)) for name, kind in parts
    ]


def is_nullable(kind: types.AvroType) -> bool:
    """Whether a value may be null."""
    return kind.has_null if isinstance(kind, types.Union) else types.is_null(kind)


def column_type(kind: types.AvroType, path: str) -> pa.DataType:
    """Return the type of a column, or of a part of one.

    Raises:
        UnreadableSchemaError: There is none; the part is named.
    """
    if isinstance(kind, types.Union):
        if len(kind.named) == 1:
            return column_type(kind.named[0], path)
        return pa.struct(_fields([(types.type_key(one), one) for one in kind.named], path))
    if isinstance(kind, types.Record):
        return pa.struct(_fields([(one.name, one.type) for one in kind.fields], path))
    if isinstance(kind, types.Array):
        return pa.list_(pa.field("element", column_type(kind.items, types.inside(path, "element"))))
    if isinstance(kind, types.Map):
        return pa.map_(pa.string(), column_type(kind.values, types.inside(path, "value")))
    if isinstance(kind, types.Enum):
        return pa.string()
    if kind.logical is not None:
        return _of_logical(kind.logical, path)
    if isinstance(kind, types.Fixed):
        return pa.binary()
    if types.is_null(kind):
        raise UnreadableSchemaError(path, "a field that is always null has no column: name the others in `schema:`")
    return OF_PRIMITIVES[kind.kind]


def _of_logical(logical: types.Logical, path: str) -> pa.DataType:
    if logical.name in WITHOUT_COLUMN:
        raise UnreadableSchemaError(path, f"{logical} has no column: {WITHOUT_COLUMN[logical.name]}")
    if logical.name != "decimal":
        return OF_LOGICALS[logical.name]
    if logical.precision > MOST_DIGITS:
        told = f"{logical} has no column: tables have at most {MOST_DIGITS} digits: give it as BINARY in `schema:`"
        raise UnreadableSchemaError(path, told)
    return pa.decimal128(logical.precision, logical.scale)
