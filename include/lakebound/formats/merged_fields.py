"""Fields of several versions of a schema as one list: a field that a newer version has no more keeps its place. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa

from lakebound.formats.same_names import as_compared


def merged(versions: Sequence[Sequence[pa.Field]]) -> list[pa.Field]:
    """Return the fields of all versions, inside of structs, lists and maps, too.

    A field has the newest type that a version has it with: what an older one cannot give in it, its decoder finds out.

    Args:
        versions: Fields of each, the newest first.
    """
    found: dict[str, pa.Field] = {}
    for fields in versions:
        for field in fields:
            known = found.get(as_compared(field.name))
            found[as_compared(field.name)] = field if known is None else known.with_type(_merged_type(known.type, field.type))
    return list(found.values())


def names_in_other_case(columns: Iterable[str], written: Iterable[str], read: Iterable[str] = ()) -> Mapping[str, str]:
    """Return what the fields of columns are called where that differs by upper and lower case alone.

    A decoder finds fields by their names as they are written. For these columns it would find none, and put a default or null
    in the place of the value that was sent.

    Args:
        columns: Names of columns beside each other.
        written: Names of the fields in their place that the writer has.
        read: Names of those that the reader has.
    """
    exact, also = ({name: name for name in names} for names in (written, read))
    folded, also_folded = ({as_compared(name): name for name in names} for names in (exact, also))
    found = {}
    for column in columns:
        if column not in exact:
            other = folded.get(as_compared(column), None if column in also else also_folded.get(as_compared(column)))
            if other is not None:
                found[column] = other
    return found


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
