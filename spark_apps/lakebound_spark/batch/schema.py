"""Schemas of tables: Spark's types as Arrow's."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from lakebound.formats.headers import HEADERS_TYPE
from lakebound.spec.pipeline import KAFKA_COLUMN
from lakebound.spec.table import TableSpec
from lakebound.tables.schemas import check_partitioning, normalise_schema
from lakebound.tables.table import KAFKA_TYPE

QUARANTINE_SCHEMA = pa.schema(
    [
        pa.field(KAFKA_COLUMN, KAFKA_TYPE),
        pa.field("reason", pa.string()),
        pa.field("error", pa.string()),
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("headers", HEADERS_TYPE),
    ]
)


def table_schema(output: StructType, spec: TableSpec) -> pa.Schema:
    """Return the schema of a table that takes ``output``: every column may be null, timestamps are UTC microseconds.

    Args:
        output: The transform's output.
        spec: The table.

    Raises:
        TableMismatchError: A partition column is not there.
    """
    schema = normalise_schema(to_arrow_schema(output))
    fields = [pa.field(KAFKA_COLUMN, KAFKA_TYPE) if field.name == KAFKA_COLUMN else field for field in schema]
    check_partitioning(spec.id, spec.format, spec.partition_fields(), pa.schema(fields))
    return pa.schema(fields)
