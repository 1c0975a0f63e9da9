"""The ids of an Iceberg table's columns, as its Parquet files carry them at each level, so that no reader goes by names.

Files of older versions have none: they are read by the table's name mapping, a property. Iceberg changes it with the columns:
once somebody adds a column of a name that another one had before, those files' values are read into the new column. So a name
must mean the column in it that it meant first; ``check_name_mapping`` refuses a table where it does not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.name_mapping import MappedField, NameMapping
from pyiceberg.types import IcebergType, ListType, MapType, NestedField, PrimitiveType, StructType

from lakebound.errors import NameMappingError
from lakebound.tables.column_facts import Leaf
from lakebound.tables.schemas import FIELD_ID, id_of, nested_arrow


def nested_fields(kind: IcebergType) -> Sequence[NestedField]:
    """Return the fields of a struct, a list's element, or a map's key and value; nothing of any other type."""
    if isinstance(kind, StructType):
        return kind.fields
    if isinstance(kind, ListType):
        return (kind.element_field,)
    if isinstance(kind, MapType):
        return (kind.key_field, kind.value_field)
    return ()


def with_ids(columns: pa.Schema, schema: Schema) -> pa.Schema:
    """Return the columns with their ids at every level.

    Args:
        columns: Those of the table, as ``lakebound.tables.schemas.normalise_schema`` returns them.
        schema: The table's.
    """
    return pa.schema([_field(own, theirs) for own, theirs in zip(columns, schema.fields, strict=True)])


def _field(own: pa.Field, theirs: NestedField) -> pa.Field:
    return pa.field(own.name, _type(own.type, theirs.field_type), own.nullable, {FIELD_ID: str(theirs.field_id)})


def _type(own: pa.DataType, theirs: IcebergType) -> pa.DataType:
    fields = nested_fields(theirs)
    if pa.types.is_struct(own):
        return pa.struct([_field(field, inside) for field, inside in zip(own, fields, strict=True)])
    if pa.types.is_list(own):
        return pa.list_(_field(own.value_field, fields[0]))
    if pa.types.is_map(own):
        return pa.map_(_field(own.key_field, fields[0]), _field(own.item_field, fields[1]))
    return own


def leaves_with_ids(fields: Iterable[pa.Field], path: Leaf = ()) -> Iterator[tuple[Leaf, int | None]]:
    """Yield path and id of each column of a Parquet file, in the order of ``parquet_leaves``.

    Args:
        fields: Of the file's schema.
        path: Of the column in which they are.
    """
    for field in fields:
        inside = nested_arrow(field.type)
        if inside is None:
            yield (*path, field.name), id_of(field)
        else:
            yield from leaves_with_ids(inside, (*path, field.name))


def has_ids_of(columns: pa.Schema, schema: Schema) -> bool:
    """Return whether each column of a file has the name and the place that its id has in a table.

    Args:
        columns: The file's.
        schema: The table's.
    """
    ids = dict(leaf_ids(schema.as_struct()))
    return all(number is not None and number == ids.get(leaf) for leaf, number in leaves_with_ids(columns))


def leaf_ids(kind: IcebergType, path: Leaf = ()) -> Iterator[tuple[Leaf, int]]:
    """Yield path and id of each column of a Parquet file of a table; in a path a name with a dot is one part.

    Args:
        kind: Of the table, or of a column.
        path: Of the column.
    """
    for field in nested_fields(kind):
        if isinstance(field.field_type, PrimitiveType):
            yield (*path, field.name), field.field_id
        else:
            yield from leaf_ids(field.field_type, (*path, field.name))


def by_id(fields: Sequence[pa.Field], wanted: pa.Field) -> int | None:
    """Find a field by its id (``lakebound.tables.fitting.Match``)."""
    number = id_of(wanted)
    return next((place for place, field in enumerate(fields) if id_of(field) == number), None)


def mapped(schema: pa.Schema, mapping: NameMapping) -> pa.Schema:
    """Return the schema of a file without ids with those by which readers look for its columns; the others have none.

    Args:
        schema: The file's.
        mapping: The table's.
    """
    return pa.schema(_mapped(schema, mapping.root))


def _mapped(fields: Iterable[pa.Field], told: Sequence[MappedField]) -> list[pa.Field]:
    owners = {name: one for one in told for name in one.names}
    found = []
    for field in fields:
        owner = owners.get(field.name)
        inside = nested_arrow(field.type)
        if owner is None:
            found.append(field.with_metadata({}))
            continue
        if inside is not None:
            field = field.with_type(_rebuilt(field.type, _mapped(inside, owner.fields)))
        found.append(field.with_metadata({} if owner.field_id is None else {FIELD_ID: str(owner.field_id)}))
    return found


def _rebuilt(kind: pa.DataType, inside: Sequence[pa.Field]) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct(inside)
    return pa.map_(*inside) if pa.types.is_map(kind) else pa.list_(inside[0])


def check_name_mapping(metadata: TableMetadata, table: str) -> None:
    """Check that files without field ids are read into the columns for which they were written.

    Args:
        metadata: Of the table, with all its schemas.
        table: Its name, for the message.

    Raises:
        NameMappingError: A name means another column than at first.
    """
    mapping = metadata.name_mapping()
    if mapping is None:
        return
    schemas = sorted(metadata.schemas, key=lambda one: one.schema_id)
    first = _first_meanings([schema.as_struct() for schema in schemas])
    column = _reassigned(mapping.root, first)
    if column is not None:
        raise NameMappingError(table, column, NameMapping(first).model_dump_json())


def _first_meanings(kinds: Sequence[IcebergType]) -> list[MappedField]:
    """Return the mapping in which each name means the column that it meant first.

    Args:
        kinds: What one column, or the table, has been, oldest first.
    """
    owners: dict[str, int] = {}
    versions: dict[int, list[IcebergType]] = {}
    for kind in kinds:
        for field in nested_fields(kind):
            owners.setdefault(field.name, field.field_id)
            versions.setdefault(field.field_id, []).append(field.field_type)
    names: dict[int, list[str]] = {number: [] for number in versions}
    for name, number in owners.items():
        names[number].append(name)
    return [
        MappedField.model_validate({"field-id": number, "names": told, "fields": _first_meanings(versions[number])})
        for number, told in names.items()
        if told
    ]


def _reassigned(mapped: Sequence[MappedField], first: Sequence[MappedField]) -> str | None:
    """Return the first name that means another column than at first."""
    owners = {name: one for one in first for name in one.names}
    for one in mapped:
        for name in one.names:
            owner = owners.get(name)
            if owner is None:
                continue
            if owner.field_id != one.field_id:
                return name
            inside = _reassigned(one.fields, owner.fields)
            if inside is not None:
                return f"{name}.{inside}"
    return None
