"""Where the rows of a Delta table come from: ``_kafka`` of every row, whatever features others have given the table.

deltalake 1.6.6 has two readers. The one of PyArrow is the faster one, refuses most features and knows nothing of column
mapping: where the protocol is older than the features (reader version 2), it does not refuse it, and reads by the wrong names.
The one of queries knows column mapping and deletion vectors, and refuses others. Where a feature that neither knows leaves a
file's rows and names as they are, the table is read file by file.
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable, QueryBuilder
from deltalake.exceptions import DeltaError
from deltalake.table import SUPPORTED_READER_FEATURES

from lakebound.errors import RowsNotReadError
from lakebound.first_line import first_line
from lakebound.spec.pipeline import KAFKA_COLUMN
from lakebound.storage.location import Location
from lakebound.storage.requests import ahead
from lakebound.tables.delta.column_mapping import is_mapped
from lakebound.tables.delta.open import check_inside, on_disk, open_delta
from lakebound.tables.outages import tells_nothing
from lakebound.tables.table import KAFKA_TYPE

_BY_QUERY = frozenset(("columnMapping", "deletionVectors"))
"""Features with which a file holds other rows, or other names, than the table."""


def scan_kafka(folder: Location, table: str) -> pa.Table:
    """Return ``_kafka`` of every row of the newest version, flattened.

    Args:
        folder: The table's.
        table: Its id, for the message.

    Raises:
        RowsNotReadError: No reader here reads a table with its features, or its files.
    """
    handle = open_delta(folder, table)
    check_inside(table, pa.table(handle.get_add_actions())["path"].to_pylist())
    features = frozenset(handle.protocol().reader_features or ())
    if features & _BY_QUERY or is_mapped(handle.metadata().configuration):
        return _by_query(handle, features, table)
    return _by_files(handle, folder) if features - SUPPORTED_READER_FEATURES else _by_arrow(handle)


def _by_arrow(handle: DeltaTable) -> pa.Table:
    columns = {field.name: pc.field(KAFKA_COLUMN, field.name).cast(field.type) for field in KAFKA_TYPE}
    # Partition columns as text: deltalake 1.6.6 writes -0.5 of a DECIMAL as "0.-5", which is no decimal to PyArrow.
    told = handle.metadata().partition_columns
    fields = [pa.field(one.name, pa.string()) if one.name in told else one for one in pa.schema(handle.schema().to_arrow())]
    return handle.to_pyarrow_dataset(schema=pa.schema(fields)).to_table(columns=columns)


def _by_query(handle: DeltaTable, features: Iterable[str], table: str) -> pa.Table:
    columns = ", ".join(f"{KAFKA_COLUMN}['{field.name}'] AS \"{field.name}\"" for field in KAFKA_TYPE)
    try:
        found = QueryBuilder().register("landed", handle).execute(f"SELECT {columns} FROM landed").read_all()
    except DeltaError as exc:
        if tells_nothing(exc):
            raise
        why = f"it has the features {', '.join(sorted(features))} ({first_line(exc)})"
        raise RowsNotReadError(table, why, "Spark reads them; the runbook table-feature says how to remove a feature") from exc
    return pa.table(found).cast(pa.schema(list(KAFKA_TYPE)))


def _by_files(handle: DeltaTable, folder: Location) -> pa.Table:
    files = [on_disk(folder, path) for path in pa.table(handle.get_add_actions())["path"].to_pylist()]
    read = map(_origins, files) if folder.is_local else ahead(_origins, files)
    return pa.concat_tables([pa.schema(list(KAFKA_TYPE)).empty_table(), *read])


def _origins(file: Location) -> pa.Table:
    with file.open() as opened, pq.ParquetFile(opened) as parquet:
        kafka = parquet.read(columns=[KAFKA_COLUMN])
        rows = parquet.metadata.num_rows
    held = kafka[KAFKA_COLUMN].combine_chunks() if KAFKA_COLUMN in kafka.column_names else None
    columns = [
        pa.nulls(rows, field.type)
        if held is None or held.type.get_field_index(field.name) < 0
        else pc.struct_field(held, [field.name]).cast(field.type)
        for field in KAFKA_TYPE
    ]
    return pa.table(columns, schema=pa.schema(list(KAFKA_TYPE)))
