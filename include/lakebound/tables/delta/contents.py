"""What a Delta table holds now: by deltalake, PyArrow's dataset and Polars."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from deltalake import DeltaTable

from lakebound.ledger.entry import ENTRY_KEY
from lakebound.spec.pipeline import KAFKA_COLUMN
from lakebound.tables.contents import TIMESTAMP, DeletesInTableError, Selection, TableContents, TableSize, store_options
from lakebound.tables.delta.history import file_named
from lakebound.tables.delta.open import open_at, open_delta
from lakebound.tables.fence import epoch_of
from lakebound.tables.history import CommittedFile
from lakebound.tables.partition_values import delta_partition_texts

if TYPE_CHECKING:
    import polars as pl


class Contents(TableContents):
    """One Delta table."""

    def size(self) -> TableSize:
        """Return what the newest version holds, by its log."""
        files = pa.table(open_delta(self.places.folder(self.spec), self.spec.id).get_add_actions(flatten=True))
        rows, sizes = files["num_records"].to_pylist(), files["size_bytes"].to_pylist()
        return TableSize(sum(count or 0 for count in rows), len(sizes), sum(sizes))

    def files(self, since_ms: int | None = None) -> Iterator[CommittedFile]:
        """Yield the files of the newest version."""
        folder = self.places.folder(self.spec)
        if not DeltaTable.is_deltatable(folder.address, folder.delta_options):
            return
        table = open_at(folder)
        if "deletionVectors" in (table.protocol().reader_features or []):
            raise DeletesInTableError(self.spec.id)
        actions = pa.table(table.get_add_actions(flatten=True))
        names = [name for name in actions.column_names if name.startswith("partition.")]
        texts = {name.partition(".")[2]: delta_partition_texts(actions[name]) for name in names}
        for number, row in enumerate(actions.to_pylist()):
            if since_ms is not None and _is_older(row.get(f"max.{TIMESTAMP}"), since_ms):
                continue
            partition = {name: each[number] for name, each in texts.items()}
            yield CommittedFile(file_named(folder, row["path"]), row.get("num_records"), partition)

    def rows(self, selection: Selection) -> Iterator[pa.RecordBatch]:
        """Yield some rows, by PyArrow's dataset."""
        conditions = [pc.field(name).isin(list(values)) for name, values in selection.among.items()]
        if selection.offsets is not None:
            offset, (first, last) = pc.field(KAFKA_COLUMN, "offset"), selection.offsets
            conditions += [offset >= first, offset <= last]
        where = reduce(and_, conditions) if conditions else None
        projected = {name: pc.field(KAFKA_COLUMN, name) for name in selection.kafka}
        dataset = _dataset(open_at(self.places.folder(self.spec)), selection.offsets)
        projected |= {name: pc.field(name) for name in selection.columns if name in dataset.schema.names}
        yield from dataset.to_batches(columns=projected, filter=where)

    def frame(self, version: int | None = None) -> pl.LazyFrame:
        """Return the table as Polars reads it."""
        import polars as pl

        folder = self.places.folder(self.spec)
        return pl.scan_delta(folder.address, version=version, storage_options=store_options(folder))

    def remembered_epoch(self) -> int | None:
        """Return the epoch in the log's ``txn``, which no log clean-up removes."""
        version = open_at(self.places.folder(self.spec)).transaction_version(ENTRY_KEY)
        return None if version is None else epoch_of(version)


def _dataset(table: DeltaTable, offsets: tuple[int, int] | None) -> ds.Dataset:
    """Return the files that may have rows of some offsets. PyArrow alone leaves out none by what the log says of ``_kafka``."""
    dataset = table.to_pyarrow_dataset()
    if offsets is None:
        return dataset
    actions = pa.table(table.get_add_actions(flatten=True))
    low, high = (f"{bound}.{KAFKA_COLUMN}.offset" for bound in ("min", "max"))
    fragments = {unquote(one.path): one for one in dataset.get_fragments()}
    paths = [unquote(path) for path in actions["path"].to_pylist()]
    if not {low, high} <= {*actions.column_names} or {*paths} != {*fragments}:
        return dataset
    first, last = offsets
    bounds = zip(paths, actions[low].to_pylist(), actions[high].to_pylist(), strict=True)
    kept = [
        fragments[path] for path, least, most in bounds if least is None or most is None or (least <= last and most >= first)
    ]
    return ds.FileSystemDataset(kept, dataset.schema, dataset.format, dataset.filesystem)


def _is_older(newest: Any, since_ms: int) -> bool:
    return isinstance(newest, datetime) and newest.astimezone(UTC).timestamp() * 1000 < since_ms
