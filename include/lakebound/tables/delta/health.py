"""What a Delta table's log says of its files: the live ones by ``deltalake``, the rest from the log folder. No data is read."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake.exceptions import TableNotFoundError

from lakebound.spec.table import TableSpec
from lakebound.storage.location import Location
from lakebound.storage.requests import ahead
from lakebound.tables.delta.history import DeltaHistory
from lakebound.tables.delta.log import commit_file
from lakebound.tables.delta.open import open_at
from lakebound.tables.health import FileFacts, MetadataFacts, PartitionFacts, TableFacts
from lakebound.tables.partition_values import delta_partition_texts
from lakebound.tables.places import Places
from lakebound.tables.table import open_table

_COMMIT = re.compile(r"(\d{20})\.json")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint(?:\.(\d{10})\.(\d{10})|\.[0-9a-f-]{36})?\.(?:parquet|json)")
_DELETION_VECTORS = "deletionVectors"
_PARTITION = "partition."


def read_facts(spec: TableSpec, places: Places, now_ms: int) -> TableFacts | None:
    """Return what the log says of the table's newest version; None where there is no table.

    Args:
        spec: The table.
        places: Where tables are.
        now_ms: Epoch milliseconds; noted as the time of the facts.
    """
    path = places.folder(spec)
    try:
        if not open_table(spec, places).exists():
            return None
        handle = open_at(path)
    except TableNotFoundError:
        return None
    # Not pa.table(): it imports pandas, which takes longer than all the rest.
    files = pa.RecordBatchReader.from_stream(handle.get_add_actions(flatten=True)).read_all()
    log = _list_log(path, handle.version())
    deleted = _paths_with_vectors(log) if _DELETION_VECTORS in (handle.protocol().reader_features or ()) else frozenset()
    return TableFacts(
        table=spec.id,
        at_ms=now_ms,
        version=str(handle.version()),
        rows=sum(rows or 0 for rows in files["num_records"].to_pylist()),
        properties={name: value for name, value in handle.metadata().configuration.items() if value is not None},
        partitions=_partitions(files, deleted),
        metadata=_metadata(path, log),
    )


@dataclass(frozen=True)
class _Log:
    """The log folder up to a version.

    Attributes:
        commits: Version to bytes of its JSON commit.
        folder: The table's.
        checkpoints: Version to the files of its log checkpoint, of those that are whole.
        sizes: Bytes of the checkpoints' files.
        files: All files in the folder.
    """

    folder: Location
    version: int
    commits: dict[int, int] = field(default_factory=dict)
    checkpoints: dict[int, list[Location]] = field(default_factory=dict)
    sizes: dict[Location, int] = field(default_factory=dict)
    files: int = 0

    @property
    def checkpoint(self) -> int:
        """Version of the newest log checkpoint; -1 without one."""
        return max(self.checkpoints, default=-1)

    @property
    def checkpoint_paths(self) -> Sequence[Location]:
        """Of the newest one."""
        return self.checkpoints.get(self.checkpoint, ())

    def tail(self) -> Iterator[bytes]:
        """Yield the text of each commit since the newest log checkpoint."""
        files = (commit_file(self.folder, version) for version in range(self.checkpoint + 1, self.version + 1))
        yield from map(Location.read, files) if self.folder.is_local else ahead(Location.read, files)

    def oldest(self) -> int:
        """Return the oldest version to which the log leads: the first, or a checkpoint after which no commit is missing."""
        version = self.version
        while version in self.commits:
            version -= 1
        if version < 0:
            return 0
        return min((number for number in self.checkpoints if number >= version), default=self.version)


def _sized(folder: Location) -> Iterator[tuple[Location, int]]:
    """Yield the files in a log, each with its size."""
    log = folder / "_delta_log"
    if not log.is_local:
        yield from ((file, found.size_bytes) for file, found in log.list() if file.parent == log)
        return
    for path in log.path.iterdir():
        with suppress(FileNotFoundError):  # cleaned up meanwhile
            yield log / path.name, path.stat().st_size


def _list_log(folder: Location, version: int) -> _Log:
    log, files = _Log(folder, version), 0
    parts: dict[int, dict[int, list[Location]]] = defaultdict(lambda: defaultdict(list))
    for path, size in _sized(folder):
        commit, checkpoint = _COMMIT.fullmatch(path.name), _CHECKPOINT.fullmatch(path.name)
        files += 1
        found = commit or checkpoint
        if found is None or int(found[1]) > version:
            continue
        if commit:
            log.commits[int(commit[1])] = size
        elif checkpoint:
            log.sizes[path] = size
            parts[int(checkpoint[1])][int(checkpoint[3] or 1)].append(path)
    for number, found_parts in parts.items():
        whole = [sorted(paths, key=str) for of, paths in found_parts.items() if len(paths) >= of]
        if whole:
            log.checkpoints[number] = whole[0]
    return _Log(folder, version, log.commits, log.checkpoints, log.sizes, files)


def _metadata(path: Location, log: _Log) -> MetadataFacts:
    oldest, newest_checkpoint, removed = log.oldest(), log.checkpoint, 0
    for text in log.tail():
        removed += sum(1 for line in text.splitlines() if b'"remove"' in line[:16])
    return MetadataFacts(
        metadata_bytes=sum(log.sizes[part] for part in log.checkpoint_paths)
        + sum(size for version, size in log.commits.items() if version > newest_checkpoint),
        log_tail_commits=log.version - newest_checkpoint,
        log_files=log.files,
        tombstones=removed + sum(_count_removed(part) for part in log.checkpoint_paths if part.name.endswith(".parquet")),
        snapshots=log.version - oldest + 1,
        oldest_version_at_ms=_committed_at_ms(path, oldest),
    )


def _opened(checkpoint: Location) -> pq.ParquetFile:
    return pq.ParquetFile(checkpoint.path if checkpoint.is_local else pa.BufferReader(checkpoint.read()))


def _count_removed(checkpoint: Location) -> int:
    """Return how many ``remove`` actions a log checkpoint holds, from the footer's null counts of ``remove.path``."""
    with _opened(checkpoint) as file:
        metadata, removed = file.metadata, 0
        columns = {file.schema.column(index).path: index for index in range(len(file.schema))}
        column = columns.get("remove.path")
        if column is None:
            return 0
        for group in range(metadata.num_row_groups):
            chunk = metadata.row_group(group).column(column)
            if chunk.statistics is None or not chunk.statistics.has_null_count:
                return sum(1 for row in file.read(["remove.path"])["remove"].to_pylist() if row and row["path"])
            removed += int(metadata.row_group(group).num_rows - chunk.statistics.null_count)
        return removed


def _committed_at_ms(path: Location, version: int) -> int | None:
    """Return when a version was committed; of one that only a log checkpoint keeps, when the next one was."""
    for number in (version, version + 1):
        found = next(DeltaHistory(path, number).commits(), None)
        if found is not None and found.committed_at_ms:
            return found.committed_at_ms
    return None


def _partitions(files: pa.Table, deleted: frozenset[str]) -> tuple[PartitionFacts, ...]:
    columns = [name for name in files.column_names if name.startswith(_PARTITION)]
    fields = [name.removeprefix(_PARTITION) for name in columns]
    values = [delta_partition_texts(files[name]) for name in columns]
    keys = list(zip(*values, strict=True)) if values else [()] * files.num_rows
    found: dict[tuple[str | None, ...], list[FileFacts]] = defaultdict(list)
    for key, size, at in zip(keys, files["size_bytes"].to_pylist(), files["modification_time"].to_pylist(), strict=True):
        found[key].append(FileFacts(size_bytes=size, added_at_ms=at))
    paths = files["path"].to_pylist() if deleted else []
    with_vectors = Counter(key for key, path in zip(keys, paths, strict=False) if path in deleted)
    return tuple(
        PartitionFacts(values=dict(zip(fields, key, strict=True)), files=tuple(group), delete_files=with_vectors[key])
        for key, group in found.items()
    )


def _paths_with_vectors(log: _Log) -> frozenset[str]:
    """Return the paths whose newest ``add`` names a deletion vector. deltalake would read the vectors themselves."""
    found: set[str] = set()
    for part in log.checkpoint_paths:
        if part.name.endswith(".parquet"):
            with _opened(part) as file:
                added = file.read(["add.path", "add.deletionVector.storageType"])["add"].to_pylist()
            found |= {row["path"] for row in added if row and (row.get("deletionVector") or {}).get("storageType")}
    for text in log.tail():
        actions: list[dict[str, Any]] = [json.loads(line) for line in text.splitlines() if line.strip()]
        # One commit may remove a file and add it with another vector, in any order.
        found -= {action["remove"]["path"] for action in actions if "remove" in action}
        for add in (action["add"] for action in actions if "add" in action):
            (found.add if add.get("deletionVector") else found.discard)(add["path"])
    return frozenset(found)
