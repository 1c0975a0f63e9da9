"""The rows of an Iceberg table's data files in the table's columns, for a rewrite: not one value may become another.

The stream's own files name columns, and hold no field ids. They are read as they are: a column that came later is null, one
that was widened is cast. Other files, and those of a table in which a column was renamed, are read by PyIceberg, which knows
ids. What it changes (PyIceberg 0.12) is refused: of lists and maps with structs in them it makes empty ones of those that are
null, and it loses a field that was renamed two levels below.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.io.pyarrow import ArrowScan
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.table import FileScanTask, Table
from pyiceberg.table.name_mapping import MappedField, NameMapping
from pyiceberg.typedef import Record
from pyiceberg.types import FixedType, IcebergType, ListType, MapType, StructType

from lakebound.errors import LakeboundError
from lakebound.tables.iceberg.live_files import LiveFile
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
        handle: The table, as it is when the files are chosen.
        columns: Its columns, in their order.
        table: Id of the table, for messages.
        places: Where it is.

    Raises:
        NotRewritableError: It has a column that a new file could not hold, or that no name leads to.
    """

    def __init__(self, handle: Table, columns: pa.Schema, table: str, places: Places) -> None:
        self._handle = handle
        self._columns = columns
        self._table = table
        self._places = places
        schema, mapping = handle.schema(), handle.metadata.name_mapping()
        if any(isinstance(schema.find_type(number), FixedType) for number in schema.field_ids):
            raise NotRewritableError(table, "it has a column of the type fixed")
        lacking = set(schema.column_names) - _names(mapping) if mapping is not None else set()
        if lacking:
            raise NotRewritableError(table, f"its name mapping lacks {', '.join(sorted(lacking))}")
        self._is_renamed = mapping is not None and _has_second_names(mapping.root)
        self._is_changed_by_pyiceberg = any(_holds_structs_below(field.field_type) for field in schema.fields)

    def read(self, one: LiveFile) -> Iterator[pa.Table]:
        """Yield the rows of a file, a row group at a time where it is the stream's own.

        Raises:
            NotRewritableError: It cannot be read without changing a value.
            FileNotFoundError: It is not there.
        """
        file = self._places.file_at(one.path)
        source = file.path if file.is_local else pa.BufferReader(file.read())
        with pq.ParquetFile(source) as parquet:
            own = parquet.schema_arrow
            if not self._is_renamed and not _has_ids(own):
                for number in range(parquet.num_row_groups):
                    yield self._in_columns(parquet.read_row_group(number))
                return
        if self._is_changed_by_pyiceberg:
            raise NotRewritableError(
                self._table,
                "a column was renamed, or another engine has written files, while a list or map holds structs "
                f"({one.path.rpartition('/')[2]})",
            )
        scan = ArrowScan(self._handle.metadata, self._handle.io, self._handle.schema(), AlwaysTrue())
        yield scan.to_table([FileScanTask(_data_file(one))]).select(self._columns.names).cast(self._columns)

    def _in_columns(self, rows: pa.Table) -> pa.Table:
        held = set(rows.column_names)
        sources = {self._handle.schema().find_column_name(field.source_id) for field in self._handle.spec().fields}
        if sources - held:
            raise NotRewritableError(self._table, "files of another engine lack columns that it is partitioned by")
        found = [
            rows[field.name].cast(field.type) if field.name in held else pa.nulls(rows.num_rows, field.type)
            for field in self._columns
        ]
        return pa.table(found, schema=self._columns)


def _has_ids(schema: pa.Schema) -> bool:
    return any(field.metadata is not None and _FIELD_ID in field.metadata for field in schema)


def _names(mapping: NameMapping) -> set[str]:
    return set(mapping._field_by_name)


def _has_second_names(fields: list[MappedField]) -> bool:
    return any(len(field.names) > 1 or _has_second_names(field.fields) for field in fields)


def _holds_structs_below(kind: IcebergType) -> bool:
    """Whether a list or map in a type has structs somewhere in it."""
    if isinstance(kind, ListType):
        return _holds_structs(kind.element_type)
    if isinstance(kind, MapType):
        return _holds_structs(kind.key_type) or _holds_structs(kind.value_type)
    return isinstance(kind, StructType) and any(_holds_structs_below(field.field_type) for field in kind.fields)


def _holds_structs(kind: IcebergType) -> bool:
    return isinstance(kind, StructType) or _holds_structs_below(kind)


def _data_file(one: LiveFile) -> DataFile:
    return DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=one.path,
        file_format=FileFormat(one.format),
        partition=Record(),
        record_count=one.rows,
        file_size_in_bytes=one.size_bytes,
    )
