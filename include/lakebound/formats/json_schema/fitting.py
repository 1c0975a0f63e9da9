"""Whether records of one JSON Schema can be read with the columns of another. Pure.

JSON has the names of its fields and says what its values are, so a value that does not fit is found in its record. Refused here
is what a record does not show: that a value means something else, or that its name is another one.
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from lakebound.formats.same_names import as_compared
from lakebound.formats.schemas import UnreadableSchemaError


def check_names(fields: Iterable[pa.Field], path: str = "") -> None:
    """Refuse names beside each other that differ by upper and lower case alone, at every level.

    Raises:
        UnreadableSchemaError: There are such names.
    """
    folded: dict[str, str] = {}
    for field in fields:
        inside = f"{path}.{field.name}" if path else field.name
        other = folded.setdefault(as_compared(field.name), field.name)
        if other != field.name:
            raise UnreadableSchemaError(inside, f"differs from {other} by upper and lower case only, which columns cannot")
        _check_names_in(field.type, inside)


def _check_names_in(kind: pa.DataType, path: str) -> None:
    if pa.types.is_struct(kind):
        check_names(kind.fields, path)
    elif pa.types.is_list(kind):
        _check_names_in(kind.value_type, f"{path}[]")
    elif pa.types.is_map(kind):
        _check_names_in(kind.item_type, f"{path}.*")


def check_fit(written: Iterable[pa.Field], columns: Iterable[pa.Field], path: str = "") -> None:
    """Refuse what records of a schema would be misread by.

    Args:
        written: Columns of the schema that wrote the records.
        columns: What is made of them.
        path: Dotted path to both.

    Raises:
        UnreadableSchemaError: A column is such; it is named.
    """
    by_name = {as_compared(one.name): one for one in written} | {one.name: one for one in written}
    for column in columns:
        inside = f"{path}.{column.name}" if path else column.name
        if pa.types.is_map(column.type) and column.type.key_type != pa.string():
            raise UnreadableSchemaError(
                inside, f"keys of a map are {column.type.key_type} in the column, and JSON has only texts"
            )
        found = by_name.get(column.name) or by_name.get(as_compared(column.name))
        if found is None:
            continue
        if found.name != column.name:
            told = f"the schema that wrote the records calls it {found.name}, and names in JSON differ by upper and lower case"
            raise UnreadableSchemaError(inside, told)
        _check_type(found.type, column.type, inside)


def _check_type(written: pa.DataType, column: pa.DataType, path: str) -> None:
    if column == pa.string():
        return
    if _shape(written) != _shape(column):
        raise UnreadableSchemaError(
            path, f"the schema that wrote the records has {_shape(written)}, the column {_shape(column)}"
        )
    if pa.types.is_struct(column) and pa.types.is_struct(written):
        check_fit(written.fields, column.fields, path)
    elif pa.types.is_list(column):
        _check_type(written.value_type, column.value_type, f"{path}[]")
    elif pa.types.is_map(column) and pa.types.is_map(written):
        _check_type(written.item_type, column.item_type, f"{path}.*")
    elif pa.types.is_binary(column) and not pa.types.is_binary(written):
        raise UnreadableSchemaError(
            path, "the schema that wrote the records does not say that it is in Base64, as the column is"
        )
    elif pa.types.is_timestamp(column) and (pa.types.is_integer(written) or pa.types.is_floating(written)):
        raise UnreadableSchemaError(
            path, "the schema that wrote the records has a number, and nothing says in which unit it is a time"
        )


def _shape(kind: pa.DataType) -> str:
    if pa.types.is_list(kind):
        return "an array"
    return "an object" if pa.types.is_nested(kind) else "one value"
