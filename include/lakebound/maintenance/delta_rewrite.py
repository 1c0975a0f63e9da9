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
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.transaction import AddAction, create_table_with_add_actions

from lakebound.durable import sync_new
from lakebound.errors import CommitRefusedError
from lakebound.ledger import Entry, encode
from lakebound.maintenance.engines import StepLostError
from lakebound.maintenance.steps import Compact
from lakebound.tables.column_facts import file_facts
from lakebound.tables.delta_actions import Action, CommitInfo, add, commit_text, remove
from lakebound.tables.delta_draft import NO_HOOKS, link, scratch_folder
from lakebound.tables.delta_log import INDEXED_COLUMNS, STATS_COLUMNS, statistics_columns
from lakebound.tables.delta_put import put, read_tip
from lakebound.tables.partition_values import delta_partition_texts
from lakebound.tables.schemas import normalise_schema
from lakebound.tables.statistics import columns_described, delta_statistics

_COMMIT_ATTEMPTS = 60
_LONGEST_WAIT_SECONDS = 0.5
_PARTITION = "partition."
_KEPT_PROPERTIES = (INDEXED_COLUMNS, STATS_COLUMNS)


@dataclass(frozen=True)
class LiveFile:
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
class NewFile:
    """A data file that was written anew.

    Attributes:
        name: In the table's folder.
        stats: Its statistics, as the log has them.
    """

    name: str
    size_bytes: int
    partition: Mapping[str, str | None]
    stats: str


@dataclass(frozen=True)
class Rewritten:
    """Files that were written anew, and those that they stand for; nothing is committed yet."""

    inputs: tuple[LiveFile, ...]
    outputs: tuple[NewFile, ...]


def live_files(handle: DeltaTable) -> list[LiveFile]:
    """Return the handle's live files, oldest first."""
    table = pa.RecordBatchReader.from_stream(handle.get_add_actions(flatten=True)).read_all()
    names = [name for name in table.column_names if name.startswith(_PARTITION)]
    wanted = table.select(["path", "size_bytes", "modification_time", "num_records"])
    partitions = {name.removeprefix(_PARTITION): delta_partition_texts(table[name]) for name in names}
    files = [
        LiveFile(
            path=row["path"],
            size_bytes=row["size_bytes"],
            modified_ms=row["modification_time"],
            rows=row["num_records"] or 0,
            partition={name: texts[number] for name, texts in partitions.items()},
        )
        for number, row in enumerate(wanted.to_pylist())
    ]
    return sorted(files, key=lambda file: (file.modified_ms, file.path))


def rewrite(handle: DeltaTable, root: Path, files: Sequence[LiveFile], step: Compact) -> Rewritten:
    """Write the files anew, and return what stands for what.

    Files that cannot be joined with others are not among it.
    """
    with scratch_folder(root) as folder:
        linked = {f"{number}.parquet": file for number, file in enumerate(files)}
        for name, file in linked.items():
            link(on_disk(root, file.path), folder / name)
        create_table_with_add_actions(
            str(folder),
            handle.schema(),
            [_linked(name, file) for name, file in linked.items()],
            partition_by=list(handle.metadata().partition_columns),
            configuration={key: value for key, value in handle.metadata().configuration.items() if key in _KEPT_PROPERTIES},
            post_commithook_properties=NO_HOOKS,
        )
        optimize = DeltaTable(str(folder)).optimize
        options: dict[str, Any] = {
            "target_size": step.target_file_bytes,
            "max_concurrent_tasks": 1,
            "post_commithook_properties": NO_HOOKS,
        }
        if step.order_by:
            optimize.z_order(list(step.order_by), **options)
        else:
            optimize.compact(**options)
        return _taken_over(handle, root, folder, linked)


def replace(
    root: Path, table: str, rewritten: Rewritten, entry: Entry, *, on_conflict: Callable[[], None] = lambda: None
) -> tuple[int, int]:
    """Commit the replacement, and return its version and how often it was refused before.

    ``on_conflict`` is called after each attempt in which somebody else was faster.

    Raises:
        StepLostError: One of the files is not live any more, or others were faster each time; what was written is deleted.
    """
    handle = DeltaTable(str(root))
    sync_new((root / output.name for output in rewritten.outputs), root)
    for attempt in range(_COMMIT_ATTEMPTS):
        gone = {file.path for file in rewritten.inputs} - {file.path for file in live_files(handle)}
        if gone:
            _discard(root, rewritten)
            raise StepLostError(table, f"{len(gone)} of the rewritten files were removed by somebody else meanwhile", attempt)
        try:
            tip = read_tip(root, handle.version(), table)
            return put(root, tip, _replacement(rewritten, entry), table).version, attempt
        except CommitRefusedError:
            on_conflict()
            time.sleep(random.uniform(0, min(0.01 * 2**attempt, _LONGEST_WAIT_SECONDS)))
            handle = DeltaTable(str(root))
            if _is_committed(handle, rewritten):
                return handle.version(), attempt
    _discard(root, rewritten)
    raise StepLostError(table, f"its commit was refused {_COMMIT_ATTEMPTS} times", _COMMIT_ATTEMPTS)


def on_disk(root: Path, path: str) -> Path:
    """Return where a file lies that the log names as a URI; some writers name it as it is."""
    literal = root / path
    return literal if "%" not in path or literal.exists() else root / unquote(path)


def _replacement(rewritten: Rewritten, entry: Entry) -> str:
    now_ms = int(time.time() * 1000)
    info = CommitInfo(
        "OPTIMIZE",
        now_ms,
        encode(entry),
        metrics={"numFilesAdded": len(rewritten.outputs), "numFilesRemoved": len(rewritten.inputs)},
    )
    added: list[Action] = [
        add(output.name, output.size_bytes, output.partition, output.stats, now_ms, is_new_data=False)
        for output in rewritten.outputs
    ]
    removed = [remove(file.path, file.size_bytes, file.partition, now_ms) for file in rewritten.inputs]
    return commit_text([info.action(), *added, *removed])


def _linked(name: str, file: LiveFile) -> AddAction:
    return AddAction(
        path=name,
        size=file.size_bytes,
        partition_values=dict(file.partition),
        modification_time=file.modified_ms,
        data_change=True,
        stats=json.dumps({"numRecords": file.rows}),
    )


def _taken_over(handle: DeltaTable, root: Path, folder: Path, linked: Mapping[str, LiveFile]) -> Rewritten:
    """Move what the scratch table's commits added into the table's folder."""
    schema, tag = normalise_schema(pa.schema(handle.schema().to_arrow())), uuid.uuid4().hex
    columns = columns_described(schema, statistics_columns(schema, handle.metadata().configuration))
    inputs: list[LiveFile] = []
    outputs: list[NewFile] = []
    for action in _actions(folder):
        if "remove" in action:
            inputs.append(linked[action["remove"]["path"]])
        elif "add" in action:
            written, path = action["add"], root / f"compacted-{tag}-{len(outputs):05d}.parquet"
            os.replace(on_disk(folder, written["path"]), path)
            footer = pq.read_metadata(path)
            stats = delta_statistics(footer.num_rows, file_facts(path, footer), columns)
            outputs.append(NewFile(path.name, written["size"], written["partitionValues"], stats))
    return Rewritten(tuple(inputs), tuple(outputs))


def _actions(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield what was done to the scratch table after its making."""
    for path in sorted((folder / "_delta_log").glob("*.json"))[1:]:
        yield from (json.loads(line) for line in path.read_text().splitlines() if line)


def _is_committed(handle: DeltaTable, rewritten: Rewritten) -> bool:
    """Whether a commit that answered with an error took place all the same."""
    names = {file.path for file in live_files(handle)}
    return bool(rewritten.outputs) and all(output.name in names for output in rewritten.outputs)


def _discard(root: Path, rewritten: Rewritten) -> None:
    _unlink(root / output.name for output in rewritten.outputs)


def _unlink(paths: Iterable[Path]) -> None:
    for path in paths:
        path.unlink(missing_ok=True)
