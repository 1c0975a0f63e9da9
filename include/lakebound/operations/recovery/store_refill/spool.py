"""Rows of a table on their way to a store: files of this machine by which they come into the order of their source positions.

Memory holds what was read at once, and later one bucket: rows of one partition whose offsets are near to each other.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakebound.control.private_files import make_private_folder, open_private
from lakebound.operations.recovery.store_refill.facts import Incarnation
from lakebound.spec.pipeline import KAFKA_COLUMN

OFFSETS_OF_A_BUCKET = 100_000
_POSITION = ("topic", "topic_id", "partition", "offset", "ordinal")
_ORDER = [("offset", "ascending"), ("ordinal", "ascending")]


class _Bucket(NamedTuple):
    """Sorted as the rows go into the store: an earlier incarnation of a topic before a later one."""

    topic: str
    rank: int
    partition: int
    number: int


class RowSpool:
    """A folder of rows. They are added in any order, looked at as a whole, and taken out in order."""

    def __init__(
        self,
        folder: Path,
        incarnations: Mapping[tuple[str, str], Incarnation],
        *,
        offsets_of_a_bucket: int = OFFSETS_OF_A_BUCKET,
    ) -> None:
        """Make the folder anew.

        Args:
            folder: Is used by this spool alone; what an earlier one has left there is removed.
            incarnations: What the table covers, by topic and topic id.
            offsets_of_a_bucket: How many offsets a bucket spans.
        """
        self._folder = folder
        self._incarnations = incarnations
        self._span = offsets_of_a_bucket
        self._buckets: dict[_Bucket, list[Path]] = {}
        self._files = 0
        self.rows = 0
        self.without_origin = 0
        self.remove()
        make_private_folder(folder)

    def add(self, rows: pa.Table) -> None:
        """Write rows to their buckets; those that do not say from which record they are only count.

        Args:
            rows: Columns as ``store_rows.staged_schema`` says.
        """
        kafka = rows[KAFKA_COLUMN].combine_chunks()
        places = pa.table({name: kafka.field(name) for name in _POSITION})
        known = places.append_column("row", pa.array(range(rows.num_rows), pa.int64())).drop_null()
        self.rows += rows.num_rows
        self.without_origin += rows.num_rows - known.num_rows
        known = known.append_column("bucket", pc.divide(known["offset"], self._span))
        grouped = known.group_by(["topic", "topic_id", "partition", "bucket"]).aggregate([("row", "list")])
        for place in range(grouped.num_rows):
            topic, topic_id, partition, number = (grouped[name][place].as_py() for name in grouped.column_names[:4])
            incarnation = self._incarnations.get((topic, topic_id))
            if incarnation is None:
                self.without_origin += len(grouped["row_list"][place])
                continue
            bucket = _Bucket(topic, incarnation.rank, partition, number)
            self._write(bucket, rows.take(grouped["row_list"][place].values))

    def problems(self) -> list[str]:
        """Return why the rows are not what the pipeline has landed, a sentence for each reason; reads where they are from."""
        found = []
        if self.without_origin:
            found.append(f"{self.without_origin:,} rows do not say from which record of a topic of the pipeline they are")
        doubled = beyond = 0
        for bucket in self._buckets:
            kafka = self._positions(bucket)
            again, outside = self._judged(bucket, kafka)
            doubled, beyond = doubled + again, beyond + outside
        if doubled:
            found.append(f"{doubled:,} rows have the same source position as another one; lakebound prove --deep says more")
        if beyond:
            found.append(f"{beyond:,} rows are of offsets that its ledger does not cover; lakebound prove --deep says more")
        return found

    def pieces(self, most_rows: int) -> Iterator[pa.Table]:
        """Yield the rows in the order of their source positions.

        Args:
            most_rows: Of a piece.
        """
        for bucket in sorted(self._buckets):
            rows = pa.concat_tables(_read(path) for path in self._buckets[bucket])
            kafka = rows[KAFKA_COLUMN].combine_chunks()
            order = pc.sort_indices(pa.table({name: kafka.field(name) for name, _ in _ORDER}), sort_keys=_ORDER)
            for start in range(0, rows.num_rows, most_rows):
                yield rows.take(order.slice(start, most_rows))

    def remove(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _write(self, bucket: _Bucket, rows: pa.Table) -> None:
        path = self._folder / f"{self._files}.arrow"
        self._files += 1
        options = pa.ipc.IpcWriteOptions(compression="lz4")
        with open_private(path, "wb") as file, pa.ipc.new_file(file, rows.schema, options=options) as writer:
            writer.write_table(rows)
        self._buckets.setdefault(bucket, []).append(path)

    def _positions(self, bucket: _Bucket) -> pa.Table:
        parts = []
        for path in self._buckets[bucket]:
            kafka = _read(path, KAFKA_COLUMN)[KAFKA_COLUMN].combine_chunks()
            parts.append(pa.table({name: kafka.field(name) for name, _ in _ORDER}))
        return pa.concat_tables(parts).sort_by(_ORDER)

    def _judged(self, bucket: _Bucket, kafka: pa.Table) -> tuple[int, int]:
        """Return how many rows of a bucket are there again, and how many lie outside of the coverage."""
        offsets: npt.NDArray[np.int64] = kafka["offset"].to_numpy()
        ordinals: npt.NDArray[np.int32] = kafka["ordinal"].to_numpy()
        doubled = int(((offsets[1:] == offsets[:-1]) & (ordinals[1:] == ordinals[:-1])).sum())
        [incarnation] = [
            one for (topic, _), one in self._incarnations.items() if (topic, one.rank) == (bucket.topic, bucket.rank)
        ]
        covered = np.zeros(len(offsets), dtype=np.bool_)
        for start, end in incarnation.partitions.get(bucket.partition, ()):
            covered |= (offsets >= start) & (offsets < end)
        return doubled, int((~covered).sum())


def _read(path: Path, *columns: str) -> pa.Table:
    with pa.OSFile(str(path)) as file:
        schema = pa.ipc.open_file(file).schema
        included = [schema.get_field_index(name) for name in columns] or None
        return pa.ipc.open_file(file, options=pa.ipc.IpcReadOptions(included_fields=included)).read_all()
