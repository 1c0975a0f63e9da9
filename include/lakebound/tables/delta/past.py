"""Earlier versions of a Delta table: what they held, whether their files are still there, and for how long."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from lakebound.tables.delta.durations import DELETED_FILES, LOG, duration_ms
from lakebound.tables.delta.log import commit_lines, counting_entry
from lakebound.tables.schemas import normalise_schema
from lakebound.tables.table import PastVersion, TableVersion, VersionGoneError


def look_back(path: Path, version: str, table: str) -> PastVersion:
    """Return what a version held.

    Args:
        path: The table's folder.
        version: Delta version.
        table: Id of the table, for messages.

    Raises:
        VersionGoneError: The log no longer leads to it.
        TableRestoredError: The table had been restored by hand.
    """
    try:
        handle = DeltaTable(str(path), version=int(version))
        files = pa.table(handle.get_add_actions(flatten=True))
    except (DeltaError, OSError, ValueError) as exc:
        raise VersionGoneError(table, version, f"its log cannot be read ({exc})") from exc
    found = counting_entry(path, int(version), table)
    return PastVersion(
        entry=found.entry if found else None,
        rows=sum(rows or 0 for rows in files["num_records"].to_pylist()),
        schema=normalise_schema(pa.schema(handle.schema().to_arrow())),
        missing_files=tuple(name for name in files["path"].to_pylist() if not is_there(path, name)),
    )


def kept_until_ms(handle: DeltaTable, version: TableVersion, left_at_ms: int) -> int:
    """Return until when vacuum and log clean-up, by the table's settings, keep a version that is left at a time.

    Args:
        handle: The table, opened; its properties are used.
        version: The version.
        left_at_ms: Epoch milliseconds at which another version becomes the newest.
    """
    settings = handle.metadata().configuration
    return min(left_at_ms + duration_ms(settings, DELETED_FILES), version.committed_at_ms + duration_ms(settings, LOG))


def files_of_commit(text: str) -> Iterator[str]:
    """Yield the files that a commit adds, as the log names them."""
    for line in commit_lines(text):
        action = json.loads(line)
        if "add" in action:
            yield action["add"]["path"]


def is_there(path: Path, name: str) -> bool:
    """Whether a data file is there; a log holds its name as a URI, which readers decode or leave as it is."""
    return (path / name).exists() or (path / unquote(name)).exists()
