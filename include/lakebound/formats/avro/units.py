"""What whole numbers in columns count, where a schema says that they are times. Pure."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from lakebound.formats.avro import types

_UNITS = ("millis", "micros", "nanos")


def units_of(kind: types.AvroType, column: pa.DataType, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield paths of whole numbers that hold times, and what they count, such as ``micros``.

    Args:
        kind: Of what a schema has.
        column: Of what is made of it.
        path: Of both.
    """
    unit = kind.logical.name.rpartition("-")[2] if isinstance(kind, types.Primitive) and kind.logical is not None else ""
    if unit in _UNITS and pa.types.is_integer(column):
        yield path, unit
    for step, inner, own in _parts(kind, column):
        yield from units_of(inner, own, types.inside(path, step) if step else path)


def _parts(kind: types.AvroType, column: pa.DataType) -> Iterator[tuple[str, types.AvroType, pa.DataType]]:
    """Yield the parts of a type that its column has: the name of each, "" where it has none, its type, and its column."""
    if isinstance(kind, types.Union) and (len(kind.named) == 1 or not pa.types.is_struct(column)):
        yield from (("", one, column) for one in kind.named)
    elif isinstance(kind, types.Union | types.Record) and pa.types.is_struct(column):
        members = {one.name: one.type for one in kind.fields} if isinstance(kind, types.Record) else _named(kind)
        yield from ((field.name, members[field.name], field.type) for field in column if field.name in members)
    elif isinstance(kind, types.Array) and pa.types.is_list(column):
        yield "element", kind.items, column.value_type
    elif isinstance(kind, types.Map) and pa.types.is_map(column):
        yield "value", kind.values, column.item_type


def _named(kind: types.Union) -> dict[str, types.AvroType]:
    return {types.type_key(one): one for one in kind.named}
