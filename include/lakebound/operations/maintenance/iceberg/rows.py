"""The rows of an Iceberg table's data files in the table's columns, for a rewrite: not one value may become another.

The stream's own files name columns, and hold no field ids. They are read as they are: a column that came later is null, one
that was widened is cast. Other files, and a table in which a column was renamed, are refused: PyIceberg (0.12), which knows
ids, makes empty lists and maps of those that are null where they hold structs.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.table import Table
from pyiceberg.table.name_mapping import MappedField
from pyiceberg.types import FixedType

from lakebound.errors import LakeboundError
from lakebound.tables.iceberg.live_files import LiveFile
from lakebound.tables.iceberg.schema import arrow_columns
from lakebound.tables.places import Places

_FIELD_ID = b"PARQUET:field_id"


class NotRewritableError(LakeboundError):
    """A table's files cannot be rewritten without Spark."""

    def __init__(self, table: str, reason: str) -> None:
        super().__init__(
            f"table {table} is not compacted: {reason}, and Spark, which could, is given the embedded catalog alone; rewrite "
            f"its files with your own engine"
        )


class RowReader:
    """Reads data files of one table.

    Args:
        handle: The table, as it is when the files are chosen: its columns and its name mapping are of one reading.
        table: Id of the table, for messages.
        places: Where it is.

    Raises:
        NotRewritableError: It has a column that a new file could not hold, or that its name alone does not tell.
    """

    def __init__(self, handle: Table, table: str, places: Places) -> None:
        self._columns = arrow_columns(handle.schema())
        self._table = table
        self._places = places
        schema, mapping = handle.schema(), handle.metadata.name_mapping()
        self._partitioned_by = {schema.find_column_name(field.source_id) for field in handle.spec().fields}
        if any(isinstance(schema.find_type(number), FixedType) for number in schema.field_ids):
            raise NotRewritableError(table, "it has a column of the type fixed")
        if mapping is None:
            return
        lacking = set(schema.column_names) - set(mapping._field_by_name)
        if lacking:
            raise NotRewritableError(table, f"its name mapping lacks {', '.join(sorted(lacking))}")
        if _has_second_names(mapping.root):
            raise NotRewritableError(table, "a column of it was renamed")

    def read(self, one: LiveFile) -> Iterator[pa.Table]:
        """Yield the rows of a file, a row group at a time.

        Raises:
            NotRewritableError: Another engine has written it.
            FileNotFoundError: It is not there.
        """
        file = self._places.file_at(one.path)
        source = file.path if file.is_local else pa.BufferReader(file.read())
        with pq.ParquetFile(source) as parquet:
            own = parquet.schema_arrow
            if _has_ids(own) or self._partitioned_by - {*own.names}:
                raise NotRewritableError(self._table, f"another engine has written {one.path.rpartition('/')[2]}")
            for number in range(parquet.num_row_groups):
                yield self._in_columns(parquet.read_row_group(number))

    def _in_columns(self, rows: pa.Table) -> pa.Table:
        held = set(rows.column_names)
        found = [
            rows[field.name].cast(field.type) if field.name in held else pa.nulls(rows.num_rows, field.type)
            for field in self._columns
        ]
        return pa.table(found, schema=self._columns)


def _has_ids(schema: pa.Schema) -> bool:
    return any(field.metadata is not None and _FIELD_ID in field.metadata for field in schema)


def _has_second_names(fields: list[MappedField]) -> bool:
    return any(len(field.names) > 1 or _has_second_names(field.fields) for field in fields)
