"""The files of an Iceberg table's current snapshot."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from pyiceberg.expressions import AlwaysTrue, BooleanExpression

from lakebound.spec.table import TableSpec
from lakebound.tables.current_files import TIMESTAMP, DeletesInTableError
from lakebound.tables.history import CommittedFile
from lakebound.tables.iceberg.open import open_catalog
from lakebound.tables.places import Places


def current_files(spec: TableSpec, places: Places, since_ms: int | None) -> Iterator[CommittedFile]:
    """Yield the table's files; arguments and errors are those of ``lakebound.tables.current_files``."""
    catalog = open_catalog(places)
    if not catalog.table_exists((spec.namespace, spec.short_name)):
        return
    table = catalog.load_table((spec.namespace, spec.short_name))
    wanted: str | BooleanExpression = AlwaysTrue()
    if since_ms is not None:
        wanted = f"{TIMESTAMP} >= '{datetime.fromtimestamp(since_ms / 1000, UTC).isoformat()}'"
    for task in table.scan(row_filter=wanted).plan_files():
        if task.delete_files:
            raise DeletesInTableError(spec.id)
        yield CommittedFile(places.file_at(task.file.file_path), task.file.record_count)
