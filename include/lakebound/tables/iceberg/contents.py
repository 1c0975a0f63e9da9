"""What an Iceberg table holds now: by PyIceberg's scan and Polars."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pyarrow as pa
from pyiceberg.expressions import AlwaysTrue, And, BooleanExpression, GreaterThanOrEqual, In, LessThanOrEqual, Reference
from pyiceberg.expressions.literals import literal
from pyiceberg.table import Table

from lakebound.spec.pipeline import KAFKA_COLUMN
from lakebound.tables.contents import TIMESTAMP, DeletesInTableError, Selection, TableContents, TableSize, store_options
from lakebound.tables.history import CommittedFile
from lakebound.tables.iceberg.open import open_catalog

if TYPE_CHECKING:
    import polars as pl


class Contents(TableContents):
    """One Iceberg table."""

    def size(self) -> TableSize:
        """Return what the current snapshot holds, by its summary."""
        snapshot = self._loaded().current_snapshot()
        if snapshot is None or snapshot.summary is None:
            return TableSize(0, 0, 0)
        said = snapshot.summary
        rows, files, size_bytes = (int(said[name] or 0) for name in ("total-records", "total-data-files", "total-files-size"))
        return TableSize(rows, files, size_bytes)

    def files(self, since_ms: int | None = None) -> Iterator[CommittedFile]:
        """Yield the files of the current snapshot."""
        if not open_catalog(self.places).table_exists((self.spec.namespace, self.spec.short_name)):
            return
        wanted: str | BooleanExpression = AlwaysTrue()
        if since_ms is not None:
            wanted = f"{TIMESTAMP} >= '{datetime.fromtimestamp(since_ms / 1000, UTC).isoformat()}'"
        for task in self._loaded().scan(row_filter=wanted).plan_files():
            if task.delete_files:
                raise DeletesInTableError(self.spec.id)
            yield CommittedFile(self.places.file_at(task.file.file_path), task.file.record_count)

    def rows(self, selection: Selection) -> Iterator[pa.RecordBatch]:
        """Yield some rows, by PyIceberg's scan."""
        where: BooleanExpression = AlwaysTrue()
        for name, values in selection.among.items():
            where = And(where, In(term=Reference(name), values={literal(value) for value in values}))
        if selection.offsets is not None:
            first, last = (literal(offset) for offset in selection.offsets)
            offset = Reference(f"{KAFKA_COLUMN}.offset")
            where = And(where, And(GreaterThanOrEqual(term=offset, value=first), LessThanOrEqual(term=offset, value=last)))
        loaded = self._loaded()
        known = {field.name for field in loaded.schema().fields}
        columns = [name for name in selection.columns if name in known]
        wanted = (*(f"{KAFKA_COLUMN}.{name}" for name in selection.kafka), *columns)
        for batch in loaded.scan(row_filter=where, selected_fields=wanted).to_arrow_batch_reader():
            origin = batch.column(KAFKA_COLUMN)
            flat = {name: origin.field(name) for name in selection.kafka}
            yield pa.RecordBatch.from_pydict(flat | {name: batch.column(name) for name in columns})

    def frame(self, version: int | None = None) -> pl.LazyFrame:
        """Return the table as Polars reads it."""
        import polars as pl

        return pl.scan_iceberg(self._loaded(), snapshot_id=version, storage_options=store_options(self.places.root))

    def _loaded(self) -> Table:
        return open_catalog(self.places).load_table((self.spec.namespace, self.spec.short_name))
