"""Fields of several versions of a schema as one list: a field that a newer version has no more keeps its place. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa


def merged(versions: Sequence[Sequence[pa.Field]]) -> list[pa.Field]:
    """Return the fields of all versions, inside of structs, lists and maps, too.

    A field has the newest type that a version has it with: what an older one cannot give in it, its decoder finds out.

    Args:
        versions: Fields of each, the newest first.
    """
    found: dict[str, pa.Field] = {}
    for fields in versions:
        for field in fields:
            known = found.get(field.name.lower())
            found[field.name.lower()] = field if known is None else known.with_type(_merged_type(known.type, field.type))
    return list(found.values())


def _merged_type(newer: pa.DataType, older: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(newer) and pa.types.is_struct(older):
        return pa.struct(merged([list(newer), list(older)]))
    if pa.types.is_list(newer) and pa.types.is_list(older):
        item = newer.value_field
        return pa.list_(item.with_type(_merged_type(item.type, older.value_type)))
    if pa.types.is_map(newer) and pa.types.is_map(older):
        item = newer.item_field
        return pa.map_(newer.key_field, item.with_type(_merged_type(item.type, older.item_type)))
    return newer
