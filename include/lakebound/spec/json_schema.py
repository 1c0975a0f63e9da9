"""A JSON Schema of records as columns in Spark's DDL. Pure; imports no Spark."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from lakebound.formats.json_schema.documents import Documents
from lakebound.formats.json_schema.mapping import columns_of_record
from lakebound.formats.schemas import UnreadableSchemaError
from lakebound.spec.ddl import quoted

_NAMES = {
    pa.string(): "STRING",
    pa.timestamp("us", tz="UTC"): "TIMESTAMP",
    pa.date32(): "DATE",
    pa.binary(): "BINARY",
    pa.int64(): "BIGINT",
    pa.int32(): "INT",
    pa.float64(): "DOUBLE",
    pa.float32(): "FLOAT",
    pa.bool_(): "BOOLEAN",
}


class UnmappedSchemaError(ValueError):
    """A JSON Schema, or a part of it, has no column type."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"json_schema: {path or 'the record'}: {reason}")


def to_ddl(schema: Mapping[str, Any]) -> str:
    """Return the columns of records that the schema describes; a required property that may not be null is NOT NULL.

    Raises:
        UnmappedSchemaError: A part of it cannot be a column; it is named.
    """
    try:
        columns = columns_of_record(Documents(schema))
    except UnreadableSchemaError as exc:
        raise UnmappedSchemaError(exc.path, exc.reason) from exc
    return ", ".join(f"{quoted(one.name)} {_type(one.type)}{'' if one.nullable else ' NOT NULL'}" for one in columns)


def _type(kind: pa.DataType) -> str:
    if pa.types.is_struct(kind):
        return f"STRUCT<{', '.join(f'{quoted(one.name)}: {_type(one.type)}' for one in kind)}>"
    if pa.types.is_map(kind):
        return f"MAP<STRING, {_type(kind.item_type)}>"
    if pa.types.is_list(kind):
        return f"ARRAY<{_type(kind.value_type)}>"
    return f"DECIMAL({kind.precision}, {kind.scale})" if pa.types.is_decimal(kind) else _NAMES[kind]
