"""The columns that a pipeline's transform gets of each record, and where its YAML says each of them. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakebound.formats.same_names import as_compared
from lakebound.spec.ddl import UnclearDdlError, read_columns
from lakebound.spec.key import DEFAULT_COLUMN, JsonKeySpec, KeySpec, PlainKeySpec, SchemaKeySpec
from lakebound.spec.value import BytesValueSpec, PlainValueSpec, SchemaValueSpec, ValueSpec
from lakebound.spec.yaml_source import Keys

if TYPE_CHECKING:
    from lakebound.spec.pipeline import PipelineSpec

VALUE_COLUMN = "value"
"""The column of values that are one column."""
_RESERVED = "_kafka"
_PLAIN_TYPES = {"string": "STRING", "bytes": "BINARY"}


@dataclass(frozen=True)
class InputColumn:
    """A column.

    Attributes:
        name: As it is written.
        type: Its type in Spark's DDL; of the columns of a schema the type's name alone, in capitals.
        keys: Where the YAML says it.
    """

    name: str
    type: str
    keys: Keys


def input_columns(spec: PipelineSpec) -> tuple[InputColumn, ...]:
    """Return the columns without ``_kafka``, in their order: those of the key, of the value, of headers.

    Raises:
        UnclearDdlError: Only Spark can tell.
    """
    return (*_key_columns(spec), *_value_columns(spec.value), *_header_columns(spec))


def whole_key(value: ValueSpec, key: KeySpec | None) -> tuple[str, str] | None:
    """Return the column that holds each record's key as it is, and its format; None where none does.

    Args:
        value: How values are decoded.
        key: How keys are.
    """
    if key is None:
        return (DEFAULT_COLUMN, "bytes") if isinstance(value, BytesValueSpec) else None
    return (key.column, key.format) if isinstance(key, PlainKeySpec) else None


def clash(spec: PipelineSpec) -> str | None:
    """Return the field that gives a column of the key or of a header a wrong name, and why; None where none does."""
    try:
        values = _value_columns(spec.value)
    except UnclearDdlError:
        values = _read_columns(spec.value)
    seen = {as_compared(column.name): column for column in values}
    for column in (*_clear_key_columns(spec), *_header_columns(spec)):
        if as_compared(column.name) == _RESERVED:
            return (
                f"{_field(column.keys)}: the column {_RESERVED} is reserved: Lakebound writes the topic, partition and offset "
                f"of a row there; give another name with as"
            )
        other = seen.setdefault(as_compared(column.name), column)
        if other is not column:
            return f"{_field(column.keys)}: {_field(other.keys)} gives a column {other.name}, too; give another name with as"
    return None


def _key_columns(spec: PipelineSpec) -> Iterator[InputColumn]:
    key = spec.key
    if isinstance(key, JsonKeySpec | SchemaKeySpec):
        if key.value_schema is None:
            raise UnclearDdlError  # a registry says, or a file
        known = read_columns(key.value_schema)
        if key.columns is None:
            yield InputColumn(key.column or DEFAULT_COLUMN, "STRUCT", ("key", "as"))
        for position, name in enumerate(key.columns or ()):
            yield InputColumn(name, next(one.type for one in known if one.name == name), ("key", "columns", position))
    elif (found := whole_key(spec.value, key)) is not None:
        yield InputColumn(found[0], _PLAIN_TYPES[found[1]], ("key", "as") if key is not None else ("value", "format"))


def _clear_key_columns(spec: PipelineSpec) -> list[InputColumn]:
    try:
        return [*_key_columns(spec)]
    except UnclearDdlError:
        key = spec.key
        if not isinstance(key, JsonKeySpec | SchemaKeySpec):
            return []
        if key.columns is None:
            return [InputColumn(key.column or DEFAULT_COLUMN, "", ("key", "as"))]
        return [InputColumn(name, "", ("key", "columns", position)) for position, name in enumerate(key.columns)]


def _read_columns(value: ValueSpec) -> tuple[InputColumn, ...]:
    """Return the columns of values whose schemas were read; else their names are compared when they are."""
    if not isinstance(value, SchemaValueSpec) or not value.is_read:
        return ()
    return tuple(InputColumn(name, "", ("value",)) for name in value.read.columns.names)


def _value_columns(value: ValueSpec) -> tuple[InputColumn, ...]:
    if isinstance(value, PlainValueSpec):
        return (InputColumn(VALUE_COLUMN, _PLAIN_TYPES[value.format], ("value", "format")),)
    if value.value_schema is None:
        raise UnclearDdlError  # a registry says, or a file
    return tuple(InputColumn(one.name, one.type, ("value", "schema")) for one in read_columns(value.value_schema))


def _header_columns(spec: PipelineSpec) -> Iterator[InputColumn]:
    for position, one in enumerate(spec.headers):
        yield InputColumn(one.column, one.ddl, ("headers", position, "as" if one.as_ is not None else "name"))


def _field(keys: Keys) -> str:
    return "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in keys).removeprefix(".")
