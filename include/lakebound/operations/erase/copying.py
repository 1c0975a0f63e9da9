"""The data files that hold rows of a set, and copies of them without these rows."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from lakebound.errors import CommitRefusedError
from lakebound.ledger.erased import ErasedPart, ErasedRows
from lakebound.spec.pipeline import KAFKA_COLUMN
from lakebound.storage.location import Location, delete_all
from lakebound.tables.datafiles import wait_stored, write_copy
from lakebound.tables.erased import are_among
from lakebound.tables.erasing import COPY_PREFIX, ErasesRows, LiveDataFile, RowsNotInFilesError
from lakebound.tables.reconstruction import FileRange
from lakebound.tables.table import KAFKA_TYPE, DataFile

Goes = Callable[[pa.Table], npt.NDArray[np.bool_]]
"""Says of rows, by where they are from (``Table.scan_kafka``), which leave the table."""


@dataclass(frozen=True)
class Hit:
    """A data file with rows of the set.

    Attributes:
        file: The file.
        going: Where its rows are from that are in the set, as ``Table.scan_kafka`` gives it.
        stay: How many others it has.
    """

    file: LiveDataFile
    going: pa.Table
    stay: int


def find_hits(table: ErasesRows, rows: ErasedRows) -> list[Hit]:
    """Return the files of a table that hold rows of the set; statistics tell which need not be read.

    Raises:
        RowsNotInFilesError: One of them cannot be replaced.
    """
    return files_with(
        table, lambda held: any(_may_hold(held, part) for part in rows.parts), lambda kafka: are_among(kafka, rows)
    )


def files_with(table: ErasesRows, may_hold: Callable[[FileRange], bool], go: Goes, version: str | None = None) -> list[Hit]:
    """Return the files of a table that hold rows which are to go.

    Args:
        table: The table.
        may_hold: Says by its statistics whether a file may hold any; others are not read.
        go: Says which rows go.
        version: Of which version; None: as of its last ``read_ledger``.

    Raises:
        RowsNotInFilesError: One of them cannot be replaced.
    """
    found = []
    for file in table.live_data_files(version):
        if not may_hold(file.range):
            continue
        kafka = read_origins(file)
        going = kafka.filter(pa.array(go(kafka)))
        if going.num_rows:
            found.append(Hit(file, going, kafka.num_rows - going.num_rows))
    check_replaceable(table.spec.id, [hit.file for hit in found])
    return found


def read_origins(file: LiveDataFile | DataFile) -> pa.Table:
    """Return where the rows of a file are from, as ``Table.scan_kafka`` gives it."""
    with pq.ParquetFile(_opened(file.path)) as parquet:
        return _origins(parquet.read(columns=[KAFKA_COLUMN]))


def check_replaceable(table: str, files: Sequence[LiveDataFile]) -> None:
    """Check that copies of the files can be written.

    Args:
        table: Id of the table, for the message.
        files: Those that hold rows that are to go.

    Raises:
        RowsNotInFilesError: A copy of one of them cannot.
    """
    if foreign := sum(not file.is_replaceable for file in files):
        why = (
            f"{foreign:,} of the files that hold them are partitioned in a way that is not written, or by a column that is gone"
        )
        raise RowsNotInFilesError(table, why)


class Copies:
    """Copies of files without the rows of a set; nothing is committed.

    Attributes:
        files: The copies.
    """

    def __init__(self, table: ErasesRows) -> None:
        """Write nothing yet.

        Args:
            table: Whose files they are.
        """
        self._table = table
        self._layout = table.layout()
        self._name = f"{COPY_PREFIX}{uuid.uuid4().hex}"
        self.files: list[DataFile] = []

    def write(self, hits: Sequence[Hit], go: Goes) -> None:
        """Write the copy of each file of which any row stays; they are then where they belong.

        Args:
            hits: The files.
            go: Says of rows, by where they are from, which do not stay.

        Raises:
            CommitRefusedError: A file was removed meanwhile.
        """
        try:
            for number, hit in enumerate(hits):
                if hit.stay:
                    self.files.append(self._copy(hit.file, go, self._layout.folder / f"{self._name}-{number:05d}.parquet"))
            wait_stored(self.files)
        except FileNotFoundError as exc:
            raise CommitRefusedError(self._layout.table, f"a file was removed while it was copied ({exc})") from exc

    def discard(self) -> None:
        """Delete them: they were not committed, and never will be."""
        delete_all(file.path for file in self.files)
        self.files = []

    def _copy(self, file: LiveDataFile, go: Goes, to: Location) -> DataFile:
        parts = _staying(self._table.rows_of(file), go)
        first = next(parts)
        return write_copy(to, file.partition, first.schema, chain([first], parts), spec_id=file.spec_id)


def _staying(parts: Iterable[pa.Table], go: Goes) -> Iterator[pa.Table]:
    for part in parts:
        kept = part.filter(pa.array(~go(_origins(part))))
        if kept.num_rows:
            yield kept


def _origins(part: pa.Table) -> pa.Table:
    """Return ``_kafka`` of each row, flattened; nulls where a file, which is then somebody else's, does not have it so."""
    if KAFKA_COLUMN not in part.column_names or not pa.types.is_struct(part.schema.field(KAFKA_COLUMN).type):
        return pa.table({field.name: pa.nulls(part.num_rows, field.type) for field in KAFKA_TYPE})
    origin = part[KAFKA_COLUMN].combine_chunks()
    names = {field.name for field in origin.type}
    found = {
        field.name: origin.field(field.name).cast(field.type) if field.name in names else pa.nulls(part.num_rows, field.type)
        for field in KAFKA_TYPE
    }
    return pa.table(found)


def _may_hold(held: FileRange, part: ErasedPart) -> bool:
    return overlaps(held.partition, part.partition, part.partition) and overlaps(
        held.offset, part.offsets[0][0], part.offsets[-1][1] - 1
    )


def overlaps(bounds: tuple[int | None, int | None], first: int, last: int) -> bool:
    """Whether a file with these bounds of a column may hold a value from the first up to and with the last."""
    low, high = bounds
    return low is None or high is None or (low <= last and first <= high)


def _opened(path: Location) -> object:
    return path.path if path.is_local else pa.BufferReader(path.read())
