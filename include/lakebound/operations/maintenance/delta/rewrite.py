"""Rewriting a Delta table's files, and the commit that replaces them: a compare-and-swap, as the stream's commits are.

``deltalake`` 1.6.6 rewrites well, but its ``optimize`` commits unsafely: it rebases onto any commit, also onto one that removed
the very files that it rewrote, and their rows are then there twice (two compactions at once are enough). Its statistics are
narrower than the values: decimals become floats, and NaN is left out. So ``optimize`` works on a scratch table here, which
links to the files, and what it wrote is committed only while all of them are live, with statistics as an append has them.
"""

from __future__ import annotations

import json
import os
import random
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import ColumnProperties, DeltaTable, Schema, WriterProperties
from deltalake.transaction import AddAction, create_table_with_add_actions

from lakebound.control.handover import Hands
from lakebound.durable import sync_new
from lakebound.errors import CommitRefusedError, LakeboundError
from lakebound.ledger.entry import Entry
from lakebound.operations.maintenance.engines import StepLostError, UnknownLedgerError
from lakebound.operations.maintenance.steps import Compact
from lakebound.storage.location import Location, delete_all
from lakebound.storage.requests import each
from lakebound.tables.column_facts import file_facts, float_columns
from lakebound.tables.datafiles import HELPER_COLUMN
from lakebound.tables.delta.draft import NO_HOOKS, link, scratch_folder
from lakebound.tables.delta.features import TableShape
from lakebound.tables.delta.history import carried_at
from lakebound.tables.delta.log import INDEXED_COLUMNS, commit_lines, statistics_columns
from lakebound.tables.delta.open import on_disk, open_delta, read_shape
from lakebound.tables.delta.put import put
from lakebound.tables.delta.replace import replacement_text
from lakebound.tables.delta.statistics import columns_described, delta_statistics
from lakebound.tables.delta.tip import Tip, read_tip
from lakebound.tables.partition_values import delta_partition_texts
from lakebound.tables.prepared import AddedFile, DeltaReplacement, RemovedFile, to_text
from lakebound.tables.schemas import normalise_schema

_COMMIT_ATTEMPTS = 60
_LONGEST_WAIT_SECONDS = 0.5
_PARTITION = "partition."
_ZSTD_LEVEL = 4
"""deltalake's default."""
_GROUP = f"{HELPER_COLUMN}_group"
"""The scratch table's only partition column. As folders' names the values of the table's own may be too long."""


@dataclass(frozen=True)
class LiveDeltaFile:
    """A data file of the newest version.

    Attributes:
        path: As the log names it: relative to the table, as a URI.
    """

    path: str
    size_bytes: int
    modified_ms: int
    rows: int
    partition: Mapping[str, str | None]


@dataclass(frozen=True)
class Rewritten:
    """New files, and the files that they replace; nothing is committed yet.

    Attributes:
        since_ms: Epoch milliseconds before which none of the new files was written.
        shape: What the table asked of its writers when the files were read.
    """

    inputs: tuple[LiveDeltaFile, ...]
    outputs: tuple[AddedFile, ...]
    since_ms: int
    shape: TableShape


def live_files(handle: DeltaTable) -> list[LiveDeltaFile]:
    """Return the handle's live files, oldest first."""
    table = pa.RecordBatchReader.from_stream(handle.get_add_actions(flatten=True)).read_all()
    names = [name for name in table.column_names if name.startswith(_PARTITION)]
    wanted = table.select(["path", "size_bytes", "modification_time", "num_records"])
    partitions = {name.removeprefix(_PARTITION): delta_partition_texts(table[name]) for name in names}
    files = [
        LiveDeltaFile(
            path=row["path"],
            size_bytes=row["size_bytes"],
            modified_ms=row["modification_time"],
            rows=row["num_records"] or 0,
            partition={name: texts[number] for name, texts in partitions.items()},
        )
        for number, row in enumerate(wanted.to_pylist())
    ]
    return sorted(files, key=lambda file: (file.modified_ms, file.path))


def rewrite(handle: DeltaTable, root: Location, files: Sequence[LiveDeltaFile], step: Compact) -> Rewritten:
    """Rewrite the files, and return the new and the replaced ones.

    Files that cannot be joined with others are not among it.

    Args:
        handle: The table, opened; its schema is used.
        root: The table's folder.
        files: Live files to replace.
        step: Size of the new files in bytes, and the columns to Z-order by, if any.
    """
    since_ms = int(time.time() * 1000)
    with scratch_folder(root) as folder:
        scratch = _Scratch.of(files)
        if root.is_local:
            for name, file in scratch.files.items():
                link(on_disk(root, file.path).path, folder / name)
        else:
            each(lambda named: _download(on_disk(root, named[1].path), folder / named[0]), scratch.files.items())
        _grow_maps([folder / name for name in scratch.files], normalise_schema(pa.schema(handle.schema().to_arrow())))
        create_table_with_add_actions(
            str(folder),
            Schema.from_arrow(_scratch_schema(handle, [folder / name for name in scratch.files])),
            [_linked(folder / name, file, scratch) for name, file in scratch.files.items()],
            partition_by=[_GROUP],
            configuration={INDEXED_COLUMNS: "0"},
            post_commithook_properties=NO_HOOKS,
        )
        optimize = DeltaTable(str(folder)).optimize
        options: dict[str, Any] = {
            "writer_properties": _writing(pa.schema(handle.schema().to_arrow())),
            "target_size": step.target_file_bytes,
            "max_concurrent_tasks": 1,
            "post_commithook_properties": NO_HOOKS,
        }
        if step.order_by:
            optimize.z_order(list(step.order_by), **options)
        else:
            optimize.compact(**options)
        return _taken_over(handle, root, folder, scratch, since_ms)


def replace(
    root: Location,
    table: str,
    rewritten: Rewritten,
    *,
    on_conflict: Callable[[], None] = lambda: None,
    hand_over: Hands = lambda body, since_ms: None,
) -> tuple[int, int]:
    """Commit the replacement, and return its version and how often it was refused before.

    The commit carries on the entry that counts at the version which it follows: whoever commits after that reading refuses it.

    Args:
        root: The table's folder.
        table: Id of the table, for messages.
        rewritten: The new files, already in the folder, and those that they replace.
        on_conflict: Called after each attempt in which somebody else was faster.
        hand_over: Has the stream commit it (``lakebound.control.handover``); None: there is none that does.

    Raises:
        StepLostError: One of the files is not live any more, or others were faster each time; what was written is deleted,
            unless the stream may still commit it.
        LakeboundError: The ledger cannot be read any more, or is in doubt; what was written is deleted.
    """
    handle = open_delta(root, table)
    if root.is_local:
        sync_new((root.path / output.name for output in rewritten.outputs), root.path)
    for attempt in range(_COMMIT_ATTEMPTS):
        problem = _outdated(handle, rewritten)
        if problem is not None:
            _discard(root, rewritten)
            raise StepLostError(table, problem, attempt)
        try:
            tip = read_tip(root, handle.version(), table)
            prepared = _prepared(rewritten, tip)
            answer = hand_over(to_text(prepared), rewritten.since_ms)
            if answer is None:
                entry = _carried_at(root, tip, table, rewritten)
                return put(root, tip, replacement_text(prepared, entry), table).version, attempt
            if answer.outcome == "committed":
                return int(answer.version), attempt
        except CommitRefusedError:
            answer = None
        if answer is None:
            on_conflict()
            time.sleep(random.uniform(0, min(0.01 * 2**attempt, _LONGEST_WAIT_SECONDS)))
        handle = open_delta(root, table)
        if _is_committed(handle, rewritten):
            return handle.version(), attempt
        if answer is not None and answer.outcome == "unknown":
            raise StepLostError(table, f"its commit was handed to the stream: {answer.reason}", attempt)
    _discard(root, rewritten)
    raise StepLostError(table, f"its commit was refused {_COMMIT_ATTEMPTS} times", _COMMIT_ATTEMPTS)


def _carried_at(root: Location, tip: Tip, table: str, rewritten: Rewritten) -> Entry:
    try:
        found = carried_at(root, tip.version, table)
        if found is None:
            raise UnknownLedgerError(table)
    except LakeboundError:
        _discard(root, rewritten)
        raise
    return found


def _outdated(handle: DeltaTable, rewritten: Rewritten) -> str | None:
    """Return why new files do not stand for the old ones any more; None where they do.

    A path alone does not say which rows a file has: a deletion vector takes rows out of one that stays, and the first vector
    of a table changes what it asks of its writers.
    """
    if read_shape(handle) != rewritten.shape:
        return "the table's columns, properties or features were changed by somebody else meanwhile"
    gone = {file.path for file in rewritten.inputs} - {file.path for file in live_files(handle)}
    return f"{len(gone)} of the rewritten files were removed by somebody else meanwhile" if gone else None


def _download(file: Location, to: Path) -> None:
    to.write_bytes(file.read())


def _prepared(rewritten: Rewritten, tip: Tip) -> DeltaReplacement:
    inputs = rewritten.inputs
    return DeltaReplacement(
        version=tip.version,
        digest=tip.digest.hex(),
        metrics={"numFilesAdded": len(rewritten.outputs), "numFilesRemoved": len(inputs)},
        removed=tuple(RemovedFile(path=one.path, size_bytes=one.size_bytes, partition=one.partition) for one in inputs),
        added=rewritten.outputs,
    )


_Partition = tuple[tuple[str, str | None], ...]
"""Columns and their values, in the table's order."""


@dataclass(frozen=True)
class _Scratch:
    """The scratch table's files by their names in it, and its partitions: numbers for the table's own."""

    files: Mapping[str, LiveDeltaFile]
    numbers: Mapping[_Partition, int]

    @classmethod
    def of(cls, files: Sequence[LiveDeltaFile]) -> _Scratch:
        found = dict.fromkeys(_partition(file) for file in files)
        return cls(
            {f"{number}.parquet": file for number, file in enumerate(files)},
            {partition: number for number, partition in enumerate(found)},
        )


def _partition(file: LiveDeltaFile) -> _Partition:
    return tuple(file.partition.items())


def _scratch_schema(handle: DeltaTable, files: Iterable[Path]) -> pa.Schema:
    """Return the columns to rewrite: a partition column where all files hold it; others than Lakebound do not write it."""
    partition_by, schema = handle.metadata().partition_columns, pa.schema(handle.schema().to_arrow())
    held = set(partition_by)
    for path in files if partition_by else ():
        held &= {*pq.read_schema(path).names}
    return pa.schema([*(one for one in schema if one.name not in partition_by or one.name in held), (_GROUP, pa.string())])


def _grow_maps(files: Iterable[Path], schema: pa.Schema) -> None:
    """Write files again whose maps have other types than the table's: deltalake reads no map whose values got a field since."""
    with_maps = {field.name: field.type for field in schema if _has_map(field.type)}
    for path in files if with_maps else ():
        found = normalise_schema(pq.read_schema(path))
        old = [name for name, kind in with_maps.items() if name in found.names and found.field(name).type != kind]
        if not old:
            continue
        rows, grown = pq.read_table(path), path.with_suffix(".grown")
        for name in old:
            field = pa.field(name, with_maps[name])
            rows = rows.set_column(rows.schema.get_field_index(name), field, rows[name].cast(field.type))
        pq.write_table(rows, grown, compression="zstd", store_schema=False)
        os.replace(grown, path)  # the table's own file may be the same one, under another name


def _has_map(kind: pa.DataType) -> bool:
    if pa.types.is_map(kind):
        return True
    if pa.types.is_struct(kind):
        return any(_has_map(field.type) for field in kind)
    return pa.types.is_list(kind) and _has_map(kind.value_type)


def _writing(schema: pa.Schema) -> WriterProperties:
    """Return how files are written: without bounds of floating-point numbers, as an append writes them.

    deltalake does not find a field of a struct by its name: where one is a floating-point number, fields have no bounds at all.
    """
    with_bounds, without = ColumnProperties(statistics_enabled="PAGE"), ColumnProperties(statistics_enabled="NONE")
    floats = float_columns(schema)
    return WriterProperties(
        compression="ZSTD",
        compression_level=_ZSTD_LEVEL,
        default_column_properties=without if any(name not in schema.names for name in floats) else with_bounds,
        column_properties={field.name: without if field.name in floats else with_bounds for field in schema},
    )


def _linked(made: Path, file: LiveDeltaFile, scratch: _Scratch) -> AddAction:
    return AddAction(
        path=made.name,
        size=made.stat().st_size,  # of a file that was written again not what the log says
        partition_values={_GROUP: str(scratch.numbers[_partition(file)])},
        modification_time=file.modified_ms,
        data_change=True,
        stats=json.dumps({"numRecords": file.rows}),
    )


def _taken_over(handle: DeltaTable, root: Location, folder: Path, scratch: _Scratch, since_ms: int) -> Rewritten:
    """Move what the scratch table's commits added into the table's folder."""
    schema, tag = normalise_schema(pa.schema(handle.schema().to_arrow())), uuid.uuid4().hex
    metadata = handle.metadata()
    columns = columns_described(schema, statistics_columns(schema, metadata.configuration, metadata.partition_columns))
    partitions = list(scratch.numbers)
    inputs: list[LiveDeltaFile] = []
    outputs: list[AddedFile] = []
    for action in _actions(folder):
        if "remove" in action:
            inputs.append(scratch.files[action["remove"]["path"]])
        elif "add" in action:
            written, path = action["add"], root / f"compacted-{tag}-{len(outputs):05d}.parquet"
            made = on_disk(Location(str(folder)), written["path"]).path
            footer = pq.read_metadata(made)
            stats = delta_statistics(footer.num_rows, file_facts(made, footer), columns)
            if path.is_local:
                os.replace(made, path.path)
            else:
                path.upload(made)
            partition = partitions[int(written["partitionValues"][_GROUP])]
            outputs.append(AddedFile(name=path.name, size_bytes=written["size"], partition=dict(partition), stats=stats))
    return Rewritten(tuple(inputs), tuple(outputs), since_ms, read_shape(handle))


def _actions(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield what was done to the scratch table after its making."""
    for path in sorted((folder / "_delta_log").glob("*.json"))[1:]:
        yield from (json.loads(line) for line in commit_lines(path.read_text(encoding="utf-8")))


def _is_committed(handle: DeltaTable, rewritten: Rewritten) -> bool:
    """Whether a commit that answered with an error was made after all."""
    names = {file.path for file in live_files(handle)}
    return bool(rewritten.outputs) and all(output.name in names for output in rewritten.outputs)


def _discard(root: Location, rewritten: Rewritten) -> None:
    delete_all(root / output.name for output in rewritten.outputs)
