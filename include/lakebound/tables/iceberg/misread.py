"""Which columns of an Iceberg table's files readers do not see as they were meant.

Readers find a file's columns by the ids that it carries. A file without ids, of an older version of Lakebound, is read by the
table's name mapping. Which column a name meant is said by the schema of the snapshot that added the file; after its expiry it
may be that of any of the table's schemas.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.manifest import ManifestContent, ManifestEntry
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.types import IcebergType

from lakebound.tables.footers import read_footers
from lakebound.tables.iceberg.field_ids import leaves_with_ids, mapped, nested_fields
from lakebound.tables.misread import MOST_FILES, Column, ColumnsLook, Compared, HeldColumn, Misreading, compare, merged
from lakebound.tables.places import Places
from lakebound.tables.schemas import id_of, nested_arrow


def misread_columns(handle: Table, places: Places, most_files: int = MOST_FILES) -> ColumnsLook:
    """Return what readers make of the columns of the current snapshot's files.

    Args:
        handle: The table, with all its snapshots and schemas.
        places: Where its files are.
        most_files: How many files are looked at, the newest ones.
    """
    entries = sorted(_live(handle), key=lambda one: one.sequence_number or 0, reverse=True)
    chosen = entries[:most_files]
    footers = read_footers([places.file_at(one.data_file.file_path) for one in chosen])
    meanings = _Meanings(handle.metadata)
    return merged(
        (
            (one.data_file.file_path, one.data_file.record_count, _compared(footer, one.snapshot_id, meanings))
            for one, footer in zip(chosen, footers, strict=True)
            if footer is not None
        ),
        len(entries),
    )


class _Meanings:
    """What names of columns meant when a file was written."""

    def __init__(self, metadata: TableMetadata) -> None:
        self.mapping = metadata.name_mapping()
        self.now = _columns(metadata.schema().as_struct())
        self._schemas = {schema.schema_id: _columns(schema.as_struct()) for schema in metadata.schemas}
        self._added_with = {one.snapshot_id: one.schema_id for one in metadata.snapshots}

    def of(self, snapshot_id: int | None) -> Sequence[tuple[Column, ...]]:
        """Return the columns of the snapshot that added a file; those of all schemas where that is not known."""
        schema_id = None if snapshot_id is None else self._added_with.get(snapshot_id)
        known = None if schema_id is None else self._schemas.get(schema_id)
        return [*self._schemas.values()] if known is None else [known]


def _live(handle: Table) -> Iterator[ManifestEntry]:
    snapshot = handle.current_snapshot()
    for manifest in snapshot.manifests(handle.io) if snapshot is not None else ():
        if manifest.content == ManifestContent.DATA:
            yield from manifest.fetch_manifest_entry(handle.io, discard_deleted=True)


def _compared(footer: pq.FileMetaData, snapshot_id: int | None, known: _Meanings) -> Compared:
    schema = footer.schema.to_arrow_schema()
    meanings = known.of(snapshot_id)
    if any(number is not None for _, number in leaves_with_ids(schema)):
        compared = compare(_held(schema), meanings, known.now)
        return Compared(compared.misread)  # an id is no doubt, whatever the names meant
    if known.mapping is not None:
        return compare(_held(mapped(schema, known.mapping)), meanings, known.now)
    # PyIceberg does not read such a file at all, and Spark goes by the places of the columns.
    names = {column.name for columns in meanings for column in columns}
    return Compared(tuple(Misreading(one.name, one.name, None) for one in schema if one.name in names))


def _columns(kind: IcebergType) -> tuple[Column, ...]:
    return tuple(Column(one.name, one.field_id, _columns(one.field_type)) for one in nested_fields(kind))


def _held(fields: Iterable[pa.Field]) -> tuple[HeldColumn, ...]:
    return tuple(HeldColumn(one.name, id_of(one), _held(nested_arrow(one.type) or ())) for one in fields)
