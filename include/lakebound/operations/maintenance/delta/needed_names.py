"""Where a Delta table lies, and the names of all files that its versions need."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable

from lakebound.errors import LakeboundError
from lakebound.operations.maintenance.engines import TableGoneError
from lakebound.spec.table import TableSpec
from lakebound.storage.location import Location
from lakebound.storage.requests import ahead
from lakebound.tables.delta.checkpoints import DeltaLogFile, log_names, parse, whole_checkpoints
from lakebound.tables.delta.features import check_may
from lakebound.tables.delta.log import commit_lines
from lakebound.tables.delta.open import open_delta, read_shape
from lakebound.tables.places import Places


class UnknownCheckpointError(LakeboundError):
    """The log has checkpoints of a kind that is not read here."""

    def __init__(self, table: str, name: str) -> None:
        super().__init__(
            f"table {table}: log checkpoint {name} is of a kind that Lakebound does not read, and it may name files that the "
            f"log does not; no orphans are moved. Set the table property delta.checkpointPolicy to classic"
        )


def place_of(table: TableSpec, places: Places) -> Location:
    """Return the folder below which all files of the table lie.

    Args:
        table: The table.
        places: Where it is.

    Raises:
        TableGoneError: There is no such table.
        TableFeatureError: It has a feature under which it is not known which files are needed.
        UnknownCheckpointError: Likewise, by its log.
    """
    folder = places.folder(table)
    if not DeltaTable.is_deltatable(folder.address, folder.delta_options):
        raise TableGoneError(table.id)
    _log_files(folder, table.id)  # says more of an unknown checkpoint than who cannot open the table
    check_may(table.id, read_shape(open_delta(folder, table.id)), "vacuum")
    return folder


def needed_names(table: TableSpec, places: Places, root: Location) -> Iterator[str]:
    """Yield what the log names: in its commits and in all its whole checkpoints, as it stands there and decoded.

    Args:
        table: The table.
        places: Where it is.
        root: Its folder.
    """
    log, files = root / "_delta_log", _log_files(root, table.id)
    commits = (log / file.name for file in files if file.is_commit)
    for content in map(Location.read, commits) if root.is_local else ahead(Location.read, commits):
        for line in commit_lines(content.decode()):
            if '"path"' in line:
                yield from _both(_action_paths(json.loads(line)))
    for names in whole_checkpoints(files).values():
        for name in names:
            yield from _both(_checkpoint_paths(log / name))


def _log_files(root: Location, table: str) -> list[DeltaLogFile]:
    """Return the files of a log, all of which are of a kind that is read here."""
    there = log_names(root)
    files = [file for file in map(parse, there) if file is not None]
    known = {file.name for file in files}
    for name in there:
        if ".checkpoint." in name and name not in known:
            raise UnknownCheckpointError(table, name)
    return files


def _action_paths(action: dict[str, Any]) -> Iterator[str]:
    for kind in ("add", "remove", "cdc"):
        if kind in action:
            yield action[kind]["path"]


def _checkpoint_paths(file: Location) -> Iterator[str]:
    with pq.ParquetFile(file.path if file.is_local else pa.BufferReader(file.read())) as checkpoint:
        rows = checkpoint.read(["add.path", "remove.path"]).to_pylist()
    for row in rows:
        for action in row.values():
            if action and action["path"]:
                yield action["path"]


def _both(names: Iterator[str]) -> Iterator[str]:
    for name in names:
        yield name
        if "%" in name:
            yield unquote(name)
