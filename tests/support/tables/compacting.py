"""Puts the rows of a table into other files, as maintenance does."""

from __future__ import annotations

import pyarrow as pa

from lakebound.ledger.entry import carried
from lakebound.spec.table import TableSpec
from lakebound.tables.datafiles import write_data_files
from lakebound.tables.iceberg.live_files import KnownManifests
from lakebound.tables.iceberg.table import IcebergTable
from lakebound.tables.places import Places
from lakebound.tables.table import open_table
from tests.support.tables.maintenance import compact_delta


def compact(at: Places, table: TableSpec) -> None:
    """Put all rows of a table into new files."""
    if table.format == "delta":
        compact_delta(table, at)
        return
    opened = open_table(table, at)
    entry = opened.read_ledger().entry
    assert isinstance(opened, IcebergTable) and entry is not None
    live = opened.live_data_files()
    every = pa.concat_tables(part for file in live for part in opened.rows_of(file))
    files = write_data_files(every, opened.layout(), f"compacted-{entry.commit}")
    opened.replace_files([file.name for file in live], files, carried(entry), KnownManifests())
