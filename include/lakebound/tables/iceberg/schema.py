"""Columns of an Iceberg table are added and widened: a change of its metadata, which makes no snapshot."""

from __future__ import annotations

import pyarrow as pa
from pyiceberg.exceptions import CommitFailedException, ValidationError
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.types import IcebergType, PrimitiveType

from lakebound.errors import CommitRefusedError, TableMismatchError
from lakebound.tables.schema_change import SchemaPlan
from lakebound.tables.schemas import normalise_schema


def arrow_columns(schema: Schema) -> pa.Schema:
    """Return a table's columns as Arrow has them, without Iceberg's ids."""
    return normalise_schema(schema_to_pyarrow(schema, include_field_ids=False))


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
        _check_new_names(handle, plan, table)
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


def _check_new_names(handle: Table, plan: SchemaPlan, table: str) -> None:
    """Check that no new column gets the values that files without field ids hold for another one, by the name mapping."""
    mapping = handle.metadata.name_mapping()
    taken = {} if mapping is None else mapping._field_by_name
    for addition in plan.additions:
        name = ".".join(addition.path)
        if name in taken:
            raise TableMismatchError(
                table,
                f"a column {name} was renamed or dropped by somebody else, and files of an older version of Lakebound hold its "
                f"values under that name: a new column {name} would get them. Compact the whole table, and remove its property "
                "schema.name-mapping.default; or give the new column another name. The runbook schema-changed shows how",
            )


def _type(handle: Table, kind: pa.DataType) -> IcebergType:
    converted: Schema = handle.catalog._convert_schema_if_needed(pa.schema([pa.field("added", kind)]))
    return converted.fields[0].field_type
