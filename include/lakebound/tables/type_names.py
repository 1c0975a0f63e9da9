"""Types of columns as people write them in a pipeline: in Spark's DDL. Pure."""

from __future__ import annotations

import pyarrow as pa

_NAMES = {
    pa.string(): "STRING",
    pa.large_string(): "STRING",
    pa.string_view(): "STRING",
    pa.binary(): "BINARY",
    pa.large_binary(): "BINARY",
    pa.binary_view(): "BINARY",
    pa.int8(): "TINYINT",
    pa.int16(): "SMALLINT",
    pa.int32(): "INT",
    pa.int64(): "BIGINT",
    pa.float32(): "FLOAT",
    pa.float64(): "DOUBLE",
    pa.bool_(): "BOOLEAN",
    pa.date32(): "DATE",
}


def type_name(kind: pa.DataType) -> str:
    """Return a type as Spark's DDL writes it; Arrow's own name where no table has the type."""
    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision},{kind.scale})"
    if pa.types.is_struct(kind):
        return f"STRUCT<{', '.join(f'{one.name}: {type_name(one.type)}' for one in kind)}>"
    if pa.types.is_timestamp(kind):
        return "TIMESTAMP" if kind.tz else "TIMESTAMP_NTZ"
    if pa.types.is_dictionary(kind):
        return type_name(kind.value_type)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return f"ARRAY<{type_name(kind.value_type)}>"
    if pa.types.is_map(kind):
        return f"MAP<{type_name(kind.key_type)}, {type_name(kind.item_type)}>"
    return _NAMES.get(kind, str(kind))


def told_columns(schema: pa.Schema) -> str:
    """Return the columns of a table, one per line."""
    return "\n".join(f"{column.name}: {type_name(column.type)}" for column in schema)
