"""Reads what a table's newest commits landed: counts from their entries, nulls and frequent values from a few of their files.

It runs beside the stream, in the process of the doctor's look, and reads a bounded number of commits, files and rows.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lakebound.control.code_samples import (
    MOST_COLUMNS,
    MOST_VALUES,
    OTHER_VALUES,
    ColumnCounts,
    Slice,
    Values,
    VersionSamples,
)
from lakebound.ledger.entry import Entry
from lakebound.storage.location import Location
from lakebound.tables.history import History, TableCommit

MOST_COMMITS = 32
"""Of one look; the newest."""
ENOUGH_RECORDS = 20_000
MOST_FILES, MOST_FILES_WITH_VALUES = 16, 8
MOST_ROWS = 4_000
"""Of one file, whose values are read."""
KAFKA_COLUMN = "_kafka"
_SIGN_BYTES = 6


@dataclass(frozen=True)
class Sampled:
    """What was seen.

    Attributes:
        version: The table's newest.
        code: The version of the code that landed it, without samples.
        seen: Counts.
        values: Of columns with few values.
    """

    version: str
    code: VersionSamples
    seen: Slice
    values: dict[str, Values]


def sample(history: History, columns: Collection[str], seen_version: str | None, now: float) -> Sampled | None:
    """Return what the newest version of the code landed since the last look; None where that is nothing.

    Args:
        history: The table's.
        columns: Names of its columns; a column of a file that has none of these names is left out.
        seen_version: The table's version at the last look; None before the first.
        now: Epoch seconds.

    Raises:
        BadEntryError: An entry cannot be read.
        OSError: A file cannot be read.
    """
    landed = _newest(history, seen_version)
    if not landed:
        return None
    files = [file.path for commit, _ in landed for file in islice(history.added(commit.version), MOST_FILES)][:MOST_FILES]
    counts, values = _read(files, columns)
    entries = [entry for _, entry in landed]
    newest = entries[0].sources[-1]
    seen = Slice(
        until=now,
        read=sum(one.read for one in entries),
        filtered=sum(one.filtered for one in entries),
        quarantined=sum(one.quarantined for one in entries),
        landed=sum(one.landed for one in entries),
        rows=sum(one.rows for one in entries),
        columns=counts,
    )
    is_known = any(one.hash == newest.hash for one in entries[0].sources[:-1])
    code = VersionSamples(hash=newest.hash, revision=newest.revision, since_ms=newest.since_ms, is_known=is_known)
    return Sampled(history.current or landed[0][0].version, code, seen, values)


def _newest(history: History, seen_version: str | None) -> list[tuple[TableCommit, Entry]]:
    """Return the newest commits that landed records by the code of the newest one, newest first."""
    found: list[tuple[TableCommit, Entry]] = []
    for commit in islice(history.ancestry(), 4 * MOST_COMMITS):
        if commit.version == seen_version:
            break
        entry = commit.entry if commit.kind == "land" else None
        if entry is None:
            continue
        if not entry.sources or (found and _sign_of(entry) != _sign_of(found[0][1])):
            break
        found.append((commit, entry))
        if len(found) >= MOST_COMMITS or sum(one.read for _, one in found) >= ENOUGH_RECORDS:
            break
    return found


def _sign_of(entry: Entry) -> tuple[str, int]:
    return entry.sources[-1].hash, entry.sources[-1].since_ms


def _read(files: Iterable[Location], columns: Collection[str]) -> tuple[dict[str, ColumnCounts], dict[str, Values]]:
    """Return nulls and values of some files; one that is gone is left out."""
    counts: dict[str, ColumnCounts] = {}
    values: dict[str, Counter[str]] = {}
    for number, path in enumerate(files):
        try:
            with path.open() as opened, pq.ParquetFile(opened) as file:
                for name, one in _nulls(file.metadata, columns):
                    if name in counts or len(counts) < MOST_COLUMNS:
                        counts[name] = counts.get(name, ColumnCounts()).plus(one)
                if number < MOST_FILES_WITH_VALUES:
                    for name, seen in _values(file, columns):
                        values.setdefault(name, Counter()).update(seen)
        except FileNotFoundError:
            continue
    few = {name: one for name, one in values.items() if OTHER_VALUES not in one and len(one) <= MOST_VALUES}
    many = {name: Counter({OTHER_VALUES: one.total()}) for name, one in values.items() if name not in few}
    return counts, {name: dict(one) for name, one in islice((few | many).items(), MOST_COLUMNS)}


def _nulls(footer: pq.FileMetaData, columns: Collection[str]) -> Iterator[tuple[str, ColumnCounts]]:
    """Yield values and nulls of each column outside of lists and maps; what lies in a null struct is null."""
    for at in range(footer.num_columns):
        column = footer.schema.column(at)
        name = str(column.path)
        top = name.split(".", 1)[0] if name not in columns else name
        if top not in columns or top == KAFKA_COLUMN or column.max_repetition_level > 0:
            continue
        groups = [footer.row_group(group).column(at).statistics for group in range(footer.num_row_groups)]
        if groups and all(one is not None and one.has_null_count for one in groups):
            yield name, ColumnCounts(values=footer.num_rows, nulls=sum(one.null_count for one in groups))


def _values(file: pq.ParquetFile, columns: Collection[str]) -> Iterator[tuple[str, Counter[str]]]:
    """Yield how often each value is in the first rows, by column with few; of others that there are others."""
    names = [field.name for field in file.schema_arrow if field.name in columns and _may_have_few(field.type)]
    batch = next(file.iter_batches(MOST_ROWS, columns=names[:MOST_COLUMNS]), None) if names else None
    if batch is None:
        return
    for name in names[:MOST_COLUMNS]:
        found = pc.value_counts(batch.column(name).drop_null())
        if len(found) > MOST_VALUES:
            yield name, Counter({OTHER_VALUES: len(batch)})
        else:
            yield name, Counter({_sign(one["values"]): int(one["counts"]) for one in found.to_pylist()})


def _may_have_few(kind: pa.DataType) -> bool:
    return any(one(kind) for one in (pa.types.is_string, pa.types.is_large_string, pa.types.is_boolean, pa.types.is_integer))


def _sign(value: object) -> str:
    """Return a short hash: a record of the state holds no value of a table."""
    return hashlib.blake2b(repr(value).encode(errors="surrogatepass"), digest_size=_SIGN_BYTES).hexdigest()
