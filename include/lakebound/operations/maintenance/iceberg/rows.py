"""The rows of an Iceberg table's data files in the table's columns, for a rewrite: not one value may become another.

The stream's own files name columns, and hold no field ids. They are read as they are: a column that came later is null, one
that was widened, as Iceberg widens columns, is cast. Files with other types are refused: a column was dropped, and another one
added under its name. Other files, and a table in which a column was renamed, are refused: PyIceberg (0.12), which knows
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
from lakebound.tables.schemas import normalise_type

_FIELD_ID = b"PARQUET:field_id"


class NotRewritableError(LakeboundError):
    """A table's files cannot be rewritten without Spark."""

    def __init__(self, table: str, reason: str) -> None:
        super().__init__(
            f"table {table} is not compacted: {reason}. Only Spark could compact it, but Lakebound's Spark reaches only the "
            f"embedded catalog. Compact it with another engine"
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
            NotRewritableError: Another engine has written it, or a column of it cannot become the table's.
            FileNotFoundError: It is not there.
        """
        file = self._places.file_at(one.path)
        source = file.path if file.is_local else pa.BufferReader(file.read())
        with pq.ParquetFile(source) as parquet:
            own = parquet.schema_arrow
            if _has_ids(own) or self._partitioned_by - {*own.names}:
                raise NotRewritableError(self._table, f"another engine has written {one.path.rpartition('/')[2]}")
            self._check_types(own, one)
            for number in range(parquet.num_row_groups):
                yield self._in_columns(parquet.read_row_group(number))

    def _check_types(self, own: pa.Schema, one: LiveFile) -> None:
        for name in {*own.names} & {*self._columns.names}:
            held, wanted = own.field(name).type, self._columns.field(name).type
            if not widens(held, wanted):
                file = one.path.rpartition("/")[2]
                raise NotRewritableError(
                    self._table, f"column {name} has type {held} in file {file}, but type {wanted} in the table"
                )

    def _in_columns(self, rows: pa.Table) -> pa.Table:
        held = set(rows.column_names)
        found = [
            rows[field.name].cast(field.type) if field.name in held else pa.nulls(rows.num_rows, field.type)
            for field in self._columns
        ]
        return pa.table(found, schema=self._columns)


def widens(held: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether values of a file's column are those of the table's, by Iceberg's rules for a change of a type. Pure.

    Rules: https://iceberg.apache.org/spec/#schema-evolution. Format 2 widens int, float and the precision of a decimal.

    Args:
        held: Type in the file.
        wanted: Type in the table, as ``lakebound.tables.schemas.normalise_type`` returns it.
    """
    held, types = normalise_type(held), pa.types
    if types.is_struct(held) and types.is_struct(wanted):
        names = {field.name for field in held} & {field.name for field in wanted}
        return all(widens(held.field(name).type, wanted.field(name).type) for name in names)
    if types.is_list(held) and types.is_list(wanted):
        return widens(held.value_type, wanted.value_type)
    if types.is_map(held) and types.is_map(wanted):
        return widens(held.key_type, wanted.key_type) and widens(held.item_type, wanted.item_type)
    if types.is_decimal(held) and types.is_decimal(wanted):
        return bool(held.scale == wanted.scale and held.precision <= wanted.precision)
    for is_kind in (types.is_signed_integer, types.is_floating):
        if is_kind(held) and is_kind(wanted):
            return bool(held.bit_width <= wanted.bit_width)
    return bool(held == wanted)


def _has_ids(schema: pa.Schema) -> bool:
    return any(field.metadata is not None and _FIELD_ID in field.metadata for field in schema)


def _has_second_names(fields: list[MappedField]) -> bool:
    return any(len(field.names) > 1 or _has_second_names(field.fields) for field in fields)
