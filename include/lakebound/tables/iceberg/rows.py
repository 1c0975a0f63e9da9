"""The rows of an Iceberg table's data files in the table's columns, for a rewrite: not one value may become another.

Columns are found by their ids, at every level: those that the file carries, or, in a file of an older version, those that
the table's name mapping gives its names. A column that came later is null, one that was widened, as Iceberg widens columns,
is cast. Files with other types are refused. PyIceberg (0.12) is not asked for the rows: it makes empty lists and maps of those
that are null where they hold structs.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.table import Table
from pyiceberg.types import FixedType

from lakebound.errors import LakeboundError
from lakebound.tables.fitting import fit_rows
from lakebound.tables.iceberg.field_ids import by_id, leaves_with_ids, mapped, with_ids
from lakebound.tables.iceberg.schema import arrow_columns
from lakebound.tables.places import Places
from lakebound.tables.schemas import id_of, normalise_type
from lakebound.tables.type_names import type_name


class NotRewritableError(LakeboundError):
    """A table's files cannot be rewritten without Spark."""

    def __init__(self, table: str, reason: str) -> None:
        super().__init__(
            f"files of table {table} are not rewritten: {reason}. Only Spark could rewrite them, but Lakebound's Spark reaches "
            f"only the embedded catalog. Rewrite them with another engine"
        )


class RowReader:
    """Reads data files of one table.

    Attributes:
        columns: Of the table, with their ids.

    Args:
        handle: The table, as it is when the files are chosen: its columns and its name mapping are of one reading.
        table: Id of the table, for messages.
        places: Where it is.
        spec_id: Id of the partitioning of its files; None: of the table's own.

    Raises:
        NotRewritableError: It has a column that a new file could not hold.
    """

    def __init__(self, handle: Table, table: str, places: Places, spec_id: int | None = None) -> None:
        self._columns = arrow_columns(handle.schema())
        self._table = table
        self._places = places
        schema = handle.schema()
        self.columns = with_ids(self._columns, schema)
        self._mapping = handle.metadata.name_mapping()
        spec = handle.spec() if spec_id is None else handle.specs()[spec_id]
        self._partitioned_by = {field.source_id for field in spec.fields}
        if any(isinstance(schema.find_type(number), FixedType) for number in schema.field_ids):
            raise NotRewritableError(table, "it has a column of the type fixed")

    def read(self, path: str) -> Iterator[pa.Table]:
        """Yield the rows of a file, a row group at a time.

        Args:
            path: Of the file, as its manifest names it.

        Raises:
            NotRewritableError: Another engine has written it, or a column of it cannot become the table's.
            FileNotFoundError: It is not there.
        """
        file, name = self._places.file_at(path), path.rpartition("/")[2]
        source = file.path if file.is_local else pa.BufferReader(file.read())
        with pq.ParquetFile(source) as parquet:
            own = self._ids_of(parquet.schema_arrow, name)
            if self._partitioned_by - {id_of(field) for field in own}:
                raise NotRewritableError(self._table, f"another engine has written {name}")
            self._check_types(own, name)
            for number in range(parquet.num_row_groups):
                found = fit_rows(parquet.read_row_group(number), self.columns, by_id, own)
                yield pa.Table.from_arrays(found.columns, schema=self._columns)

    def _ids_of(self, own: pa.Schema, file: str) -> pa.Schema:
        if any(number is not None for _, number in leaves_with_ids(own)):
            return own
        if self._mapping is None:
            raise NotRewritableError(self._table, f"file {file} has no field ids, and the table has no name mapping")
        return mapped(own, self._mapping)

    def _check_types(self, own: pa.Schema, file: str) -> None:
        fields = list(own)
        for wanted in self.columns:
            place = by_id(fields, wanted)
            if place is not None and not widens(fields[place].type, wanted.type):
                held = type_name(normalise_type(fields[place].type))
                raise NotRewritableError(
                    self._table,
                    f"column {wanted.name} has type {held} in file {file}, but type "
                    f"{type_name(normalise_type(wanted.type))} in the table",
                )


def widens(held: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether values of a file's column are those of the table's, by Iceberg's rules for a change of a type. Pure.

    Rules: https://iceberg.apache.org/spec/#schema-evolution. Format 2 widens int, float and the precision of a decimal.

    Args:
        held: Type in the file, with its fields' ids.
        wanted: Type in the table, with its fields' ids.
    """
    types = pa.types
    if types.is_struct(held) and types.is_struct(wanted):
        fields = list(held)
        places = [(by_id(fields, field), field.type) for field in wanted]
        return all(place is None or widens(fields[place].type, kind) for place, kind in places)
    if types.is_list(held) and types.is_list(wanted):
        return widens(held.value_type, wanted.value_type)
    if types.is_map(held) and types.is_map(wanted):
        return widens(held.key_type, wanted.key_type) and widens(held.item_type, wanted.item_type)
    if types.is_decimal(held) and types.is_decimal(wanted):
        return bool(held.scale == wanted.scale and held.precision <= wanted.precision)
    held = normalise_type(held)
    for is_kind in (types.is_signed_integer, types.is_floating):
        if is_kind(held) and is_kind(wanted):
            return bool(held.bit_width <= wanted.bit_width)
    return bool(held == wanted)
