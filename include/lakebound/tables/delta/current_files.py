"""The files of a Delta table's newest version."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable

from lakebound.spec.table import TableSpec
from lakebound.tables.current_files import TIMESTAMP, DeletesInTableError
from lakebound.tables.delta.history import file_named
from lakebound.tables.delta.open import open_at
from lakebound.tables.history import CommittedFile
from lakebound.tables.partition_values import delta_partition_texts
from lakebound.tables.places import Places


def current_files(spec: TableSpec, places: Places, since_ms: int | None) -> Iterator[CommittedFile]:
    """Yield the table's files; arguments and errors are those of ``lakebound.tables.current_files``."""
    folder = places.folder(spec)
    if not DeltaTable.is_deltatable(folder.address, folder.delta_options):
        return
    table = open_at(folder)
    if "deletionVectors" in (table.protocol().reader_features or []):
        raise DeletesInTableError(spec.id)
    actions = pa.table(table.get_add_actions(flatten=True))
    texts = {n.partition(".")[2]: delta_partition_texts(actions[n]) for n in actions.column_names if n.startswith("partition.")}
    for number, row in enumerate(actions.to_pylist()):
        if since_ms is not None and _is_older(row.get(f"max.{TIMESTAMP}"), since_ms):
            continue
        partition = {name: each[number] for name, each in texts.items()}
        yield CommittedFile(file_named(folder, row["path"]), row.get("num_records"), partition)


def _is_older(newest: Any, since_ms: int) -> bool:
    return isinstance(newest, datetime) and newest.astimezone(UTC).timestamp() * 1000 < since_ms
