"""Columns of Arrow in the columns of a table that may have grown since: added fields, at any depth, are null.

Arrow's own cast adds fields to a struct, but not to one in a map. Not one value becomes another: types are only widened.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

Match = Callable[[Sequence[pa.Field], pa.Field], int | None]
"""Finds the field that holds a wanted field's values: its place among the fields, or None."""


def by_name(fields: Sequence[pa.Field], wanted: pa.Field) -> int | None:
    """Find a field by its name."""
    return next((place for place, field in enumerate(fields) if field.name == wanted.name), None)


def fit_column(
    column: pa.ChunkedArray, wanted: pa.Field, match: Match = by_name, own: pa.Field | None = None
) -> pa.ChunkedArray:
    """Return a column in a type that it has grown to.

    Args:
        column: Its values.
        wanted: The table's field.
        match: Finds fields inside of structs.
        own: The column's field, where more than its type is needed to match.
    """
    kind = column.type if own is None else own.type
    if match is by_name and kind == wanted.type:
        return column
    if not pa.types.is_nested(kind):
        return column.cast(wanted.type)
    return pa.chunked_array([_fit(chunk, kind, wanted.type, match) for chunk in column.chunks], wanted.type)


def fit_rows(rows: pa.Table, wanted: pa.Schema, match: Match = by_name, own: pa.Schema | None = None) -> pa.Table:
    """Return rows with the columns of a table; a column that they lack is null.

    Args:
        rows: The rows.
        wanted: Columns of the table.
        match: Finds columns, and fields inside of structs.
        own: The rows' columns, where more than their types is needed to match.
    """
    fields, columns = list(rows.schema if own is None else own), []
    for field in wanted:
        place = match(fields, field)
        columns.append(
            pa.nulls(rows.num_rows, field.type)
            if place is None
            else fit_column(rows.column(place), field, match, fields[place])
        )
    return pa.Table.from_arrays(columns, schema=wanted)


def _fit(values: pa.Array, own: pa.DataType, wanted: pa.DataType, match: Match) -> pa.Array:
    if pa.types.is_struct(wanted) and pa.types.is_struct(own):
        return _fit_struct(values, own, wanted, match)
    if pa.types.is_map(wanted) and pa.types.is_map(own):
        keys = _fit(values.keys, own.key_type, wanted.key_type, match)
        items = _fit(values.items, own.item_type, wanted.item_type, match)
        return _with_values(
            values, wanted, pa.StructArray.from_arrays([keys, items], fields=[wanted.key_field, wanted.item_field])
        )
    if pa.types.is_list(wanted) and pa.types.is_list(own):
        return _with_values(values, wanted, _fit(values.values, own.value_type, wanted.value_type, match))
    return values.cast(wanted)


def _fit_struct(values: pa.StructArray, own: pa.StructType, wanted: pa.StructType, match: Match) -> pa.Array:
    fields, inside = list(own), []
    for field in wanted:
        place = match(fields, field)
        inside.append(
            pa.nulls(len(values), field.type)
            if place is None
            else _fit(values.field(place), fields[place].type, field.type, match)
        )
    mask = values.is_null() if values.null_count else None
    return pa.StructArray.from_arrays(inside, fields=list(wanted), mask=mask)


def _with_values(values: pa.Array, wanted: pa.DataType, inside: pa.Array) -> pa.Array:
    """Return a list or a map with the same places and nulls, and with other values."""
    return pa.Array.from_buffers(wanted, len(values), values.buffers()[:2], values.null_count, values.offset, children=[inside])
