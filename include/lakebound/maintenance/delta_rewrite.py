"""Rewriting a Delta table's files, and the commit that replaces them: a compare-and-swap, as the stream's commits are.

``deltalake`` 1.6.6 rewrites well, but its ``optimize`` commits unsafely: it rebases onto any commit, also onto one that removed
the very files that it rewrote, and their rows are then there twice (two compactions at once are enough). So ``optimize`` works
on a scratch table here, which links to the files, and what it wrote is committed only while all of them are live.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, Transaction
from deltalake.exceptions import CommitFailedError
from deltalake.transaction import AddAction, RemoveAction, create_table_with_add_actions

from lakebound.ledger import Entry, encode
from lakebound.maintenance.engines import StepLostError
from lakebound.maintenance.steps import Compact
from lakebound.tables.datafiles import delta_partition_value
from lakebound.tables.delta_log import INDEXED_COLUMNS, STATS_COLUMNS

SCRATCH = "_compaction"
"""Folder in a table's: readers and VACUUM pass over names with an underscore."""

NO_HOOKS = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)
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
class Rewritten:
    """Files that were written anew, and those that they stand for; nothing is committed yet."""

    inputs: tuple[LiveFile, ...]
    outputs: tuple[AddAction, ...]


def live_files(handle: DeltaTable) -> list[LiveFile]:
    """Return the handle's live files, oldest first."""
    table = pa.RecordBatchReader.from_stream(handle.get_add_actions(flatten=True)).read_all()
    names = [name for name in table.column_names if name.startswith(_PARTITION)]
    wanted = table.select(["path", "size_bytes", "modification_time", "num_records", *names])
    files = [
        LiveFile(
            path=row["path"],
            size_bytes=row["size_bytes"],
            modified_ms=row["modification_time"],
            rows=row["num_records"] or 0,
            partition={name.removeprefix(_PARTITION): delta_partition_value(row[name]) for name in names},
        )
        for row in wanted.to_pylist()
    ]
    return sorted(files, key=lambda file: (file.modified_ms, file.path))


def rewrite(handle: DeltaTable, root: Path, files: Sequence[LiveFile], step: Compact) -> Rewritten:
    """Write the files anew, and return what stands for what.

    Files that cannot be joined with others are not among it.
    """
    with _scratch(root) as folder:
        linked = {f"{number}.parquet": file for number, file in enumerate(files)}
        for name, file in linked.items():
            _link(on_disk(root, file.path), folder / name)
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
        return _taken_over(root, folder, linked)


def replace(
    root: Path, table: str, rewritten: Rewritten, entry: Entry, *, on_conflict: Callable[[], None] = lambda: None
) -> tuple[int, int]:
    """Commit the replacement, and return its version and how often it was refused before.

    ``on_conflict`` is called after each attempt in which somebody else was faster.

    Raises:
        StepLostError: One of the files is not live any more, or others were faster each time; what was written is deleted.
    """
    handle = DeltaTable(str(root))
    for attempt in range(_COMMIT_ATTEMPTS):
        gone = {file.path for file in rewritten.inputs} - {file.path for file in live_files(handle)}
        if gone:
            _discard(root, rewritten)
            raise StepLostError(table, f"{len(gone)} of the rewritten files were removed by somebody else meanwhile", attempt)
        try:
            handle.create_write_transaction(
                [*rewritten.outputs, *(_removed(root, file) for file in rewritten.inputs)],
                "append",
                handle.schema(),
                list(handle.metadata().partition_columns),
                commit_properties=commit_properties(entry, max_commit_retries=0),
                post_commithook_properties=NO_HOOKS,
            )
        except CommitFailedError:
            on_conflict()
            time.sleep(random.uniform(0, min(0.01 * 2**attempt, _LONGEST_WAIT_SECONDS)))
            handle.update_incremental()
            if _is_committed(handle, rewritten):
                return handle.version(), attempt
            continue
        return handle.version(), attempt
    _discard(root, rewritten)
    raise StepLostError(table, f"its commit was refused {_COMMIT_ATTEMPTS} times", _COMMIT_ATTEMPTS)


def commit_properties(entry: Entry, *, max_commit_retries: int) -> CommitProperties:
    """Return the properties of a maintenance commit. It takes no ``txn``: that is the fence among writers of data."""
    transactions: list[Transaction] = []
    metadata = {"userMetadata": encode(entry)}
    return CommitProperties(custom_metadata=metadata, max_commit_retries=max_commit_retries, app_transactions=transactions)


def on_disk(root: Path, path: str) -> Path:
    """Return where a file lies that the log names as a URI; some writers name it as it is."""
    literal = root / path
    return literal if "%" not in path or literal.exists() else root / unquote(path)


def forget_scratch(root: Path, older_than_seconds: float) -> None:
    """Delete what killed rewrites left; one that still runs is younger."""
    for folder in (root / SCRATCH).glob("*"):
        with suppress(OSError):
            if time.time() - folder.stat().st_mtime > older_than_seconds:
                shutil.rmtree(folder, ignore_errors=True)
    with suppress(OSError):
        (root / SCRATCH).rmdir()


@contextmanager
def _scratch(root: Path) -> Iterator[Path]:
    folder = root / SCRATCH / uuid.uuid4().hex
    folder.mkdir(parents=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        with suppress(OSError):
            folder.parent.rmdir()


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)  # a file system without hard links


def _linked(name: str, file: LiveFile) -> AddAction:
    return AddAction(
        path=name,
        size=file.size_bytes,
        partition_values=dict(file.partition),
        modification_time=file.modified_ms,
        data_change=True,
        stats=json.dumps({"numRecords": file.rows}),
    )


def _taken_over(root: Path, folder: Path, linked: Mapping[str, LiveFile]) -> Rewritten:
    """Move what the scratch table's commits added into the table's folder."""
    now_ms, tag = int(time.time() * 1000), uuid.uuid4().hex
    inputs: list[LiveFile] = []
    outputs: list[AddAction] = []
    for action in _actions(folder):
        if "remove" in action:
            inputs.append(linked[action["remove"]["path"]])
        elif "add" in action:
            add, name = action["add"], f"compacted-{tag}-{len(outputs):05d}.parquet"
            os.replace(on_disk(folder, add["path"]), root / name)
            outputs.append(AddAction(name, add["size"], add["partitionValues"], now_ms, False, add["stats"]))
    return Rewritten(tuple(inputs), tuple(outputs))


def _actions(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield what was done to the scratch table after its making."""
    for path in sorted((folder / "_delta_log").glob("*.json"))[1:]:
        yield from (json.loads(line) for line in path.read_text().splitlines() if line)


def _removed(root: Path, file: LiveFile) -> RemoveAction:
    return RemoveAction(
        path=on_disk(root, file.path).relative_to(root).as_posix(),  # deltalake itself encodes it as a URI
        data_change=False,
        deletion_timestamp=int(time.time() * 1000),
        size=file.size_bytes,
        partition_values=dict(file.partition),
    )


def _is_committed(handle: DeltaTable, rewritten: Rewritten) -> bool:
    """Whether a commit that answered with an error took place all the same."""
    names = {file.path for file in live_files(handle)}
    return bool(rewritten.outputs) and all(output.path in names for output in rewritten.outputs)


def _discard(root: Path, rewritten: Rewritten) -> None:
    _unlink(root / output.path for output in rewritten.outputs)


def _unlink(paths: Iterable[Path]) -> None:
    for path in paths:
        path.unlink(missing_ok=True)
