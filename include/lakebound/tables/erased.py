"""The files that say which rows were erased from a table, in a hidden folder of the table's: every later entry names one.

A file never changes. Nothing deletes it: VACUUM, ``remove_orphan_files`` and the search for orphans skip hidden folders.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakebound.errors import LakeboundError
from lakebound.ledger.entry import Entry, Offsets, TopicOffsets
from lakebound.ledger.erased import MAX_BYTES, ErasedFile, ErasedRows, decode_erased, digest_of
from lakebound.ledger.intervals import Intervals, merge, subtract
from lakebound.ledger.topics import TopicIdPartition
from lakebound.spec.table import TableSpec
from lakebound.storage.location import Location
from lakebound.tables.layout import FileLayout
from lakebound.tables.table import KAFKA_TYPE

_FOLDER = "_lakebound"
_POSITION = ("topic", "topic_id", "partition", "offset", "ordinal")


class ErasedUnknownError(LakeboundError, is_refusal=True):
    """An entry names a list of erased rows that cannot be read."""

    def __init__(self, table: str, file: str, reason: str) -> None:
        super().__init__(
            f"table {table}: its ledger says that rows were erased by decision, but the list of them, {file}, cannot be used: "
            f"{reason}. Without it these rows could be landed again. Restore the file from a backup, or from another table of "
            f"the pipeline"
        )


class TooManyErasedError(LakeboundError):
    """The list of a table's erased rows would become too large."""

    def __init__(self, name: str, rows: int, size_bytes: int) -> None:
        super().__init__(
            f"{name}: the list of {rows:,} erased rows would have {size_bytes:,} bytes, more than {MAX_BYTES:,}; "
            f"nothing was erased. Give a narrower condition; where most rows are to go, land into a new table instead"
        )


class Erasable(Protocol):
    """A table as far as the files beside its data are concerned."""

    @property
    def spec(self) -> TableSpec:
        """What the pipeline says of it."""

    def layout(self) -> FileLayout:
        """Where its data files go."""


def read_erased(table: Erasable, entry: Entry | None) -> ErasedRows:
    """Return the rows that were erased from a table; reads nothing where its entry names none.

    Args:
        table: The table, opened.
        entry: The entry that counts.

    Raises:
        ErasedUnknownError: The list cannot be read.
    """
    if entry is None or entry.erased is None:
        return ErasedRows()
    file = _file(table.layout().folder, entry.erased)
    try:
        content = file.read()
        if digest_of(content) != entry.erased.digest:
            raise ValueError("its content is another one than the ledger names")
        return decode_erased(content)
    except (FileNotFoundError, ValueError) as exc:
        reason = "it is gone" if isinstance(exc, FileNotFoundError) else str(exc)
        raise ErasedUnknownError(table.spec.id, file.address, reason) from exc


def lacking(rows: ErasedRows, coverage: Offsets) -> dict[TopicIdPartition, Intervals]:
    """Return the offsets of erased rows that a coverage does not hold: a start or a replay would land them again."""
    held = {
        (topic, offsets.topic_id, partition): intervals
        for topic, offsets in coverage.items()
        for partition, intervals in offsets.partitions.items()
    }
    rests = {key: subtract(intervals, held.get(key, ())) for key, intervals in rows.records.items()}
    return {key: rest for key, rest in rests.items() if rest}


def erased_among(wanted: Offsets, erased: Mapping[TopicIdPartition, Intervals]) -> Offsets:
    """Return those of the offsets that are erased; topics without any are left out."""
    found: Offsets = {}
    for topic, offsets in wanted.items():
        parts = {
            partition: merge(
                (max(start, first), min(end, last))
                for start, end in intervals
                for first, last in erased.get((topic, offsets.topic_id, partition), ())
                if first < end and start < last
            )
            for partition, intervals in offsets.partitions.items()
        }
        parts = {partition: intervals for partition, intervals in parts.items() if intervals}
        if parts:
            found[topic] = TopicOffsets(topic_id=offsets.topic_id, partitions=parts)
    return found


def write_erased(table: Erasable, rows: ErasedRows) -> ErasedFile:
    """Write the list, before an entry names it; it is then on the disk, or in the store.

    Raises:
        TooManyErasedError: It is too long.
    """
    content, named = check_size(f"table {table.spec.id}", rows), rows.file
    with suppress(FileExistsError):  # of the same content, as its name says
        _file(table.layout().folder, named).put_new(content)
    return named


def check_size(name: str, rows: ErasedRows) -> bytes:
    """Return the content of a list.

    Args:
        name: Whose, for the message.
        rows: The list.

    Raises:
        TooManyErasedError: It is too long.
    """
    content = rows.encode()
    if len(content) > MAX_BYTES:
        raise TooManyErasedError(name, rows.rows, len(content))
    return content


def erased_rows(kafka: pa.Table) -> ErasedRows:
    """Return the set of some rows.

    Args:
        kafka: As ``Table.scan_kafka`` gives it, none of the position null.
    """
    found: dict[tuple[str, str, int, int], list[tuple[int, int]]] = {}
    keys = [name for name in _POSITION if name != "offset"]
    for group in kafka.group_by(keys).aggregate([("offset", "distinct")]).to_pylist() if kafka.num_rows else ():
        offsets = np.sort(np.array(group["offset_distinct"], dtype=np.int64))
        last = np.flatnonzero(np.diff(offsets) != 1)
        starts, ends = offsets[np.append(0, last + 1)], offsets[np.append(last, len(offsets) - 1)] + 1
        key = (group["topic"], group["topic_id"], group["partition"], group["ordinal"])
        found[key] = list(zip(starts.tolist(), ends.tolist(), strict=True))
    return ErasedRows.of(found)


def as_kafka_rows(rows: ErasedRows) -> pa.Table:
    """Return erased rows as ``Table.scan_kafka`` gives those that are there; their timestamps are not known."""
    columns: dict[str, list[npt.NDArray[np.generic]]] = {name: [] for name in _POSITION}
    for part in rows.parts:
        offsets = np.concatenate([np.arange(start, end, dtype=np.int64) for start, end in part.offsets])
        for name in _POSITION:
            values = offsets if name == "offset" else np.full(len(offsets), getattr(part, name))
            columns[name].append(values)
    count = rows.rows
    found = {
        field.name: pa.array(np.concatenate(columns[field.name]), field.type)
        if columns.get(field.name)
        else pa.nulls(count, field.type)
        for field in KAFKA_TYPE
    }
    return pa.table(found)


def are_among(kafka: pa.Table, rows: ErasedRows) -> npt.NDArray[np.bool_]:
    """Return which rows are among erased ones.

    Args:
        kafka: As ``Table.scan_kafka`` gives it.
        rows: The erased ones.
    """
    found = np.zeros(kafka.num_rows, dtype=np.bool_)
    if not kafka.num_rows:
        return found
    offsets = kafka["offset"].combine_chunks().fill_null(-1).to_numpy()
    first, last = int(offsets.min()), int(offsets.max())
    for part in rows.parts:
        if part.offsets[0][0] > last or part.offsets[-1][1] <= first:
            continue
        same = [pc.equal(kafka[name], getattr(part, name)) for name in _POSITION if name != "offset"]
        is_part = same[0]
        for one in same[1:]:
            is_part = pc.and_(is_part, one)
        starts, ends = np.array(part.offsets, dtype=np.int64).T
        at = np.searchsorted(starts, offsets, side="right") - 1
        inside = (at >= 0) & (offsets < ends[np.maximum(at, 0)])
        found |= inside & is_part.combine_chunks().fill_null(False).to_numpy(zero_copy_only=False)
    return found


def _file(folder: Location, named: ErasedFile) -> Location:
    return folder / _FOLDER / f"erased-{named.digest}.json"
