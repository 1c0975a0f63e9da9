"""Whether a batch's files are what a Delta table is made of now: others may have changed it since they were written. Pure."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from lakebound.errors import FilesOutdatedError, TableFeatureError, TableMismatchError
from lakebound.tables.delta.features import TableShape
from lakebound.tables.schemas import normalise_schema
from lakebound.tables.table import DataFile
from lakebound.tables.type_names import type_name


def check_partitioned(table: str, shape: TableShape, files: Iterable[DataFile]) -> None:
    """Check that files were written for the table's partitioning: else their partition columns would be null to readers.

    Raises:
        TableMismatchError: They were written for another one.
    """
    wanted = {*shape.partition_by}
    for file in files:
        if file.partition.keys() != wanted:
            before, now = (f"[{', '.join(names)}]" for names in (file.partition, shape.partition_by))
            raise TableMismatchError(
                table,
                f"it was partitioned by {before} when this batch was written, and is by {now} now; nothing was written. "
                f"Put the partitioning back, or land into a new table",
            )


def check_not_null(table: str, shape: TableShape, files: Iterable[DataFile]) -> None:
    """Check that columns that must not be null are not.

    Raises:
        TableFeatureError: One is, or it is not known.
    """
    for file in files:
        for name in shape.required:
            facts = file.facts.get((name,))
            if facts is None or facts.nulls:
                raise TableFeatureError(
                    table,
                    f"NOT NULL (column {name})",
                    f"a batch has rows in which {name} is null; drop NOT NULL, or have the transform give a value",
                )


def check_columns(table: str, shape: TableShape, files: Iterable[DataFile]) -> None:
    """Check that the table has the columns of files, of the same types; what a file lacks is null.

    Raises:
        FilesOutdatedError: It has not: the batch must be written again.
    """
    if shape.columns is None:
        return
    known = {field.name: field.type for field in shape.columns}
    for file in files:
        for one in normalise_schema(file.metadata.schema.to_arrow_schema()):
            now = known.get(one.name)
            if now is None or not _is_read_as(one.type, now):
                is_now = type_name(now) if now is not None else "gone"
                raise FilesOutdatedError(table, f"column {one.name} (it was {type_name(one.type)}, and is {is_now})")


def _is_read_as(written: pa.DataType, now: pa.DataType) -> bool:
    if pa.types.is_struct(written) and pa.types.is_struct(now):
        known = {field.name: field.type for field in now}
        return all(field.name in known and _is_read_as(field.type, known[field.name]) for field in written)
    if pa.types.is_map(written) and pa.types.is_map(now):
        return _is_read_as(written.key_type, now.key_type) and _is_read_as(written.item_type, now.item_type)
    if pa.types.is_list(written) and pa.types.is_list(now):
        return _is_read_as(written.value_type, now.value_type)
    return bool(written == now)
