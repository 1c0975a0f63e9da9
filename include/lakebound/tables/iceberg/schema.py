"""Columns of an Iceberg table are added and widened: a change of its metadata, which makes no snapshot."""

from __future__ import annotations

import pyarrow as pa
from pyiceberg.exceptions import CommitFailedException, ValidationError
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.types import IcebergType, PrimitiveType

from lakebound.errors import CommitRefusedError, TableMismatchError
from lakebound.tables.schema_change import SchemaPlan
from lakebound.tables.schemas import normalise_schema


def arrow_columns(schema: Schema) -> pa.Schema:
    """Return a table's columns as Arrow has them, without Iceberg's ids."""
    return normalise_schema(schema_to_pyarrow(schema, include_field_ids=False))


def check_column_ids(metadata: TableMetadata, table: str) -> None:
    """Check that data files are read into the columns as which they were written: they name columns, and no ids.

    The mapping of names to ids is a property that was written when the table was made. A catalog that then gives the columns
    ids of its own leaves it as it is, and a reader would look for one column's values in another.

    Args:
        metadata: Of the table.
        table: Its name, for the message.

    Raises:
        TableMismatchError: The mapping names a column by an id that is another one's.
    """
    mapping = metadata.name_mapping()
    if mapping is None:
        return
    for name, field_id in metadata.schema()._name_to_id.items():
        mapped = mapping._field_by_name.get(name)
        if mapped is not None and mapped.field_id != field_id:
            raise TableMismatchError(
                table,
                f"the id of its column {name} is {field_id}, and by its name mapping {mapped.field_id}: the catalog has given "
                "the columns ids of its own, so that values would be read into other columns. Use another catalog",
            )


def change(handle: Table, plan: SchemaPlan, table: str) -> None:
    """Commit the plan's additions and widenings; the name mapping by which data files are read follows.

    Args:
        handle: The table as it was compared.
        plan: What it lacks.
        table: Its name, for the message.

    Raises:
        CommitRefusedError: Somebody else changed its columns at the same time.
        TableMismatchError: Iceberg does not allow the change.
    """
    try:
        with handle.update_schema() as update:
            for addition in plan.additions:
                update.add_column(addition.path, _type(handle, addition.type))
            for widening in plan.widenings:
                wanted = _type(handle, widening.wanted)
                assert isinstance(wanted, PrimitiveType)
                update.update_column(widening.path, wanted)
    except CommitFailedException as exc:
        raise CommitRefusedError(table, str(exc)) from exc
    except (ValueError, ValidationError) as exc:
        raise TableMismatchError(table, f"its columns cannot be changed: {exc}") from exc


def _type(handle: Table, kind: pa.DataType) -> IcebergType:
    converted: Schema = handle.catalog._convert_schema_if_needed(pa.schema([pa.field("added", kind)]))
    return converted.fields[0].field_type
