"""How a table's data files are laid out: where they go, and of what each of them holds one value."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from lakebound.errors import FilesOutdatedError
from lakebound.spec.table import PartitionField
from lakebound.storage.location import Location
from lakebound.tables.format_rules import rules_of
from lakebound.tables.schemas import check_partitioning


@dataclass(frozen=True)
class FileLayout:
    """The layout of one table, as the table itself says it; a pipeline's YAML only says what a new table gets.

    Attributes:
        table: The table's id.
        format: Its format, whose rules hold; of rows that wait for no table it is none.
        folder: The folder below which files must lie to be committed.
        fields: The partitioning; none of an unpartitioned table.
        columns: The table's columns with the ids that files carry; None where a format knows them by name.
        spec_id: Id of the partitioning; None where a format has none.
    """

    table: str
    format: str
    folder: Location
    fields: tuple[PartitionField, ...] = ()
    columns: pa.Schema | None = None
    spec_id: int | None = None

    @property
    def told_by_log(self) -> tuple[str, ...]:
        """Columns whose value of each file Delta keeps in its log.

        The files hold these columns, too: Polars reads a partition column from the file, or from a folder's name, never from
        the log.
        """
        if not self.fields or not rules_of(self.format).tells_partitions_in_log:
            return ()
        return tuple(field.column for field in self.fields)

    def of_files(self, schema: pa.Schema) -> pa.Schema:
        """Return the schema that a file of rows with this schema has: the same, with the table's ids.

        Raises:
            FilesOutdatedError: The rows were made for other columns than the table has now.
        """
        if self.columns is None:
            return schema
        told = {field.name: field for field in self.columns}
        for field in schema:
            if field.name not in told or field.type != told[field.name].type:
                raise FilesOutdatedError(self.table, f"the column {field.name}")
        return pa.schema([told[name] for name in schema.names])

    def check(self, schema: pa.Schema) -> None:
        """Check that rows of this schema can be laid out so.

        Raises:
            TableMismatchError: A partition column is missing, or its type does not go with the partitioning.
        """
        if self.fields:
            check_partitioning(self.table, self.format, self.fields, schema)
