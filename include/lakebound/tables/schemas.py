"""Schemas as both formats keep them. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from lakebound.errors import TableMismatchError
from lakebound.formats.same_names import as_compared
from lakebound.spec.table import PartitionField
from lakebound.tables.format_rules import FormatRules, rules_of
from lakebound.tables.type_names import type_name

FIELD_ID = b"PARQUET:field_id"
"""As Arrow names it in a field's metadata."""


def normalise_schema(schema: pa.Schema) -> pa.Schema:
    """Return the schema with every field nullable, without metadata, timestamps in microseconds, and zoned ones in UTC."""
    return pa.schema([normalise_field(field) for field in schema])


def normalise_field(field: pa.Field) -> pa.Field:
    """Return the field as ``normalise_schema`` does."""
    return pa.field(field.name, normalise_type(field.type))


def normalise_type(kind: pa.DataType) -> pa.DataType:
    """Return the type that a table and its files hold for an Arrow type."""
    types = pa.types
    if types.is_timestamp(kind):
        return pa.timestamp("us", tz="UTC" if kind.tz else None)
    if types.is_dictionary(kind):
        return normalise_type(kind.value_type)
    if types.is_large_string(kind) or types.is_string_view(kind):
        return pa.string()
    if types.is_large_binary(kind) or types.is_binary_view(kind) or types.is_fixed_size_binary(kind):
        return pa.binary()
    if types.is_struct(kind):
        return pa.struct([normalise_field(field) for field in kind])
    if types.is_map(kind):
        return pa.map_(normalise_type(kind.key_type), normalise_type(kind.item_type))
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return pa.list_(pa.field("element", normalise_type(kind.value_type)))
    return kind


def check_partitioning(table: str, table_format: str, fields: Sequence[PartitionField], schema: pa.Schema) -> None:
    """Check that the schema can be partitioned by the fields.

    Args:
        table: The table's id, for the message.
        table_format: Its format.
        fields: Its partitioning.
        schema: Its columns.

    Raises:
        TableMismatchError: A partition column is missing, or its type does not go with the partitioning.
    """
    rules = rules_of(table_format)
    for field in fields:
        if field.column not in schema.names:
            raise TableMismatchError(
                table, f"it is partitioned by {field.column!r}, which is not one of the columns {', '.join(schema.names)}"
            )
        kind = schema.field(field.column).type
        if not _partitions(rules, field.transform, normalise_type(kind)):
            raise TableMismatchError(table, f"it cannot be partitioned by {field}: {field.column!r} is {type_name(kind)}")


def _partitions(rules: FormatRules, transform: str, kind: pa.DataType) -> bool:
    types = pa.types
    if transform == "identity":
        if types.is_nested(kind) or types.is_binary(kind):
            return False
        return rules.is_partitioned_by(kind)
    if transform == "truncate":
        return bool(types.is_integer(kind) or types.is_string(kind))
    return bool(types.is_timestamp(kind) or (types.is_date(kind) and transform != "hour"))


def unusable_names(table_format: str, names: Sequence[str]) -> dict[str, str]:
    """Return why columns cannot have their names, by name: in a new table, and in one that they are added to.

    Args:
        table_format: Of the table.
        names: Of all its columns.
    """
    rules = rules_of(table_format)
    found: dict[str, str] = {}
    folded: dict[str, str] = {}
    for name in names:
        other = folded.setdefault(as_compared(name), name)
        if other != name:
            found[name] = f"differs from {other} by upper and lower case only: give one of them another name"
        elif (problem := rules.unusable_name(name)) is not None:
            found[name] = problem
    return found


def leaves(schema: pa.Schema) -> Iterator[tuple[tuple[str, ...], pa.DataType]]:
    """Yield path and type of each column that is no struct, in order; lists and maps count as one."""
    for field in schema:
        yield from _leaves((field.name,), field.type)


def _leaves(path: tuple[str, ...], kind: pa.DataType) -> Iterator[tuple[tuple[str, ...], pa.DataType]]:
    if not pa.types.is_struct(kind):
        yield path, kind
        return
    for field in kind:
        yield from _leaves((*path, field.name), field.type)


def id_of(field: pa.Field) -> int | None:
    """Return the id that a field of a Parquet file carries."""
    found = (field.metadata or {}).get(FIELD_ID)
    return None if found is None else int(found)


def nested_arrow(kind: pa.DataType) -> Sequence[pa.Field] | None:
    """Return the fields of a struct, a list's element, or a map's key and value, by the names that paths have; else None."""
    if pa.types.is_struct(kind):
        return list(kind)
    if pa.types.is_map(kind):
        return kind.key_field.with_name("key"), kind.item_field.with_name("value")
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return (kind.value_field.with_name("element"),)
    return None
