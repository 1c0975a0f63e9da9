"""The commit that appends files to a Delta log, made for a table that gets one every half second.

deltalake lists the log's folder at each commit, which costs 5 ms of CPU per 1,000 commits that the log keeps. Who knows the
newest version needs no listing: the commit is the same JSON, put where no file is yet, as the protocol asks
(https://github.com/delta-io/delta/blob/master/PROTOCOL.md, "Writer Version Requirements"). A table that asks more of its
writers than the first protocol does is left to deltalake.
"""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version as installed
from pathlib import Path
from typing import Any
from urllib.parse import quote

from deltalake import DeltaTable

from lakebound.errors import CommitRefusedError
from lakebound.tables import DataFile
from lakebound.tables.delta_log import commit_file
from lakebound.tables.statistics import delta_statistics

_PLAIN_READER, _PLAIN_WRITER = 1, 2
_UNQUOTED = "!$&'()+,:;=@/"
"""What deltalake, too, leaves as it is in a path; readers decode the rest."""


@dataclass(frozen=True)
class Append:
    """What one commit adds to the log.

    Attributes:
        partition_by: The table's partition columns.
        files: Perhaps none.
        columns: Paths of the columns whose statistics are kept.
        user_metadata: The entry.
        app_id: Of the ``txn`` action.
        app_version: Of the ``txn`` action.
    """

    partition_by: Sequence[str]
    files: Sequence[DataFile]
    columns: frozenset[tuple[str, ...]]
    user_metadata: str
    app_id: str
    app_version: int


def is_plain(handle: DeltaTable) -> bool:
    """Whether the table asks nothing of its writers that ``put`` does not do."""
    protocol = handle.protocol()
    return bool(protocol.min_reader_version <= _PLAIN_READER and protocol.min_writer_version <= _PLAIN_WRITER)


def is_committed(table: Path, version: int) -> bool:
    """Whether the table's log has a version."""
    return commit_file(table, version).exists()


def put(folder: Path, version: int, append: Append, table: str) -> None:
    """Commit as exactly this version: one step that fails where another commit is.

    Args:
        folder: The table's.
        version: The newest one plus one.
        append: What is committed.
        table: Its name, for the message.

    Raises:
        CommitRefusedError: The version is taken.
    """
    committed = commit_file(folder, version)
    draft = committed.parent / f"_commit_{uuid.uuid4()}.json.tmp"
    try:
        draft.write_text("".join(json.dumps(action, separators=(",", ":")) + "\n" for action in _actions(folder, append)))
        os.link(draft, committed)
    except FileExistsError as exc:
        raise CommitRefusedError(table, f"version {version} is another commit's") from exc
    finally:
        draft.unlink(missing_ok=True)


def _actions(folder: Path, append: Append) -> list[dict[str, Any]]:
    now_ms = time.time_ns() // 1_000_000
    engine = f"lakebound-{installed('lakebound')}"
    info = {
        "timestamp": now_ms,
        "operation": "WRITE",
        "operationParameters": {"mode": "Append", "partitionBy": json.dumps(list(append.partition_by))},
        "isBlindAppend": True,
        "engineInfo": engine,
        "userMetadata": append.user_metadata,
    }
    added = [
        {
            "path": quote(file.path.relative_to(folder).as_posix(), safe=_UNQUOTED),
            "partitionValues": dict(file.partition),
            "size": file.size_bytes,
            "modificationTime": now_ms,
            "dataChange": True,
            "stats": delta_statistics(file.metadata, append.columns),
        }
        for file in append.files
    ]
    transaction = {"appId": append.app_id, "version": append.app_version}
    return [{"commitInfo": info}, *({"add": add} for add in added), {"txn": transaction}]
