"""Earlier versions of a Delta table: what they held, whether their files are still there, and for how long."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from urllib.parse import unquote

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from lakebound.storage.location import Location
from lakebound.tables.delta.durations import DELETED_FILES, LOG, duration_ms
from lakebound.tables.delta.history import counting_entry
from lakebound.tables.delta.log import commit_lines
from lakebound.tables.delta.open import open_at
from lakebound.tables.delta.vectors import INLINE, vector_file
from lakebound.tables.outages import tells_nothing
from lakebound.tables.schemas import normalise_schema
from lakebound.tables.table import PastVersion, TableVersion, VersionGoneError


def look_back(folder: Location, version: str, table: str) -> PastVersion:
    """Return what a version held.

    Args:
        folder: The table's.
        version: Delta version.
        table: Id of the table, for messages.

    Raises:
        VersionGoneError: The log no longer leads to it.
        TableRestoredError: The table had been restored by hand.
    """
    handle = version_at(folder, version, table)
    files = pa.table(handle.get_add_actions(flatten=True))
    found = counting_entry(folder, int(version), table)
    return PastVersion(
        entry=found.entry if found else None,
        rows=sum(rows or 0 for rows in files["num_records"].to_pylist()),
        schema=normalise_schema(pa.schema(handle.schema().to_arrow())),
        missing_files=missing(folder, files["path"].to_pylist()),
    )


def version_at(folder: Location, version: str, table: str) -> DeltaTable:
    """Return the table as it was at a version.

    Args:
        folder: The table's.
        version: Delta version.
        table: Id of the table, for messages.

    Raises:
        VersionGoneError: The log no longer leads to it.
    """
    try:
        return open_at(folder, int(version))
    except (DeltaError, OSError, ValueError) as exc:
        if tells_nothing(exc):
            raise
        raise VersionGoneError(table, version, f"its log cannot be read ({exc})") from exc


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
    """Yield the files that a commit adds, and those with their deletion vectors, as the log names them."""
    for line in commit_lines(text):
        action = json.loads(line)
        if "add" in action:
            yield action["add"]["path"]
            vector = vector_file(action["add"].get("deletionVector") or INLINE)
            if vector is not None:
                yield vector


def missing(folder: Location, names: Iterable[str]) -> tuple[str, ...]:
    """Return which data files are not there, as the log names them: as URIs, which readers decode or leave as they are.

    Of a store they are listed at once.
    """
    if folder.is_local:
        path = folder.path
        return tuple(name for name in names if not (path / name).exists() and not (path / unquote(name)).exists())
    wanted = tuple(names)
    found = {one.relative_to(folder) for one, _ in folder.list()} if wanted else set()
    return tuple(name for name in wanted if name not in found and unquote(name) not in found)
