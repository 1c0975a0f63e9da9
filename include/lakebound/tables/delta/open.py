"""Opening a Delta table, with a clear word where its log cannot be read any more."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from urllib.parse import unquote

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from lakebound.errors import RowsNotReadError, TableUnreadableError
from lakebound.first_line import first_line
from lakebound.storage.location import Location
from lakebound.tables.delta.checkpoints import list_log
from lakebound.tables.delta.features import TableShape, check_known, shape_of
from lakebound.tables.delta.log import commit_file, commit_lines
from lakebound.tables.outages import passes

_TRIES = 200
_WHOLE = re.compile(r"/|[a-zA-Z][a-zA-Z0-9+.-]*:")
"""How a path begins that is not relative to the table's folder."""


class FilesOutsideError(RowsNotReadError):
    """The log names files outside of the table's folder: somebody put a shallow clone of another table in its place."""

    def __init__(self, table: str, path: str) -> None:
        super().__init__(
            table,
            f"its log names {path}, which is not in its folder, as after SHALLOW CLONE",
            "Spark reads it. To give it files of its own, run in Spark: INSERT OVERWRITE T SELECT * FROM T",
        )


def open_at(folder: Location, version: int | None = None) -> DeltaTable:
    """Return a table at a version, by default the newest; deltalake's own errors are let through.

    Args:
        folder: The table's.
        version: Which.
    """
    return DeltaTable(folder.address, version=version, storage_options=folder.delta_options)


def open_delta(folder: Location, table: str) -> DeltaTable:
    """Return a table at its newest version.

    Args:
        folder: Its folder.
        table: Its id, for the message.

    Raises:
        TableFeatureError: It has a feature under which not even its log can be read.
        TableUnreadableError: Its log is there, and cannot be read.
    """
    try:
        return open_at(folder)
    except TableNotFoundError:
        raise
    except (DeltaError, ValueError) as exc:
        if passes(exc):
            raise
        check_known(table, newest_features(folder))
        raise TableUnreadableError(table, first_line(exc), last_readable(folder)) from exc


def read_shape(handle: DeltaTable) -> TableShape:
    """Return what the version of a handle asks of its writers; nothing is read but the handle."""
    protocol, metadata, schema = handle.protocol(), handle.metadata(), handle.schema()
    try:
        columns = pa.schema(schema.to_arrow())
    except (DeltaError, ValueError, pa.ArrowException):
        columns = None
    features = {*(protocol.reader_features or ()), *(protocol.writer_features or ())}
    return shape_of(features, metadata.configuration, metadata.partition_columns, schema.to_json(), columns)


def newest_features(folder: Location) -> frozenset[str]:
    """Return the features that the newest protocol among a log's JSON commits names; none where there is no such commit."""
    for version in sorted((file.version for file in list_log(folder) if file.is_commit), reverse=True):
        try:
            text = commit_file(folder, version).read().decode()
        except FileNotFoundError:
            break  # cleaned up meanwhile
        for line in commit_lines(text) if '"protocol"' in text else ():
            protocol = json.loads(line).get("protocol")
            if protocol is not None:
                return frozenset((*(protocol.get("readerFeatures") or ()), *(protocol.get("writerFeatures") or ())))
    return frozenset()


def last_readable(folder: Location) -> int | None:
    """Return the newest version that can be read, among the newest of the log; None without any."""
    versions = sorted((file.version for file in list_log(folder) if file.is_commit), reverse=True)
    for version in versions[:_TRIES]:
        try:
            open_at(folder, version).get_add_actions()
        except (DeltaError, ValueError):
            continue
        return version
    return None


def check_inside(table: str, paths: Iterable[str]) -> None:
    """Check that a log names no file outside of its table's folder: those are not read here, whoever wrote the log.

    Args:
        table: Id of the table, for the message.
        paths: As the log names them.

    Raises:
        FilesOutsideError: It does.
    """
    for path in paths:
        if _WHOLE.match(path):
            raise FilesOutsideError(table, path)


def on_disk(root: Location, path: str) -> Location:
    """Return where a file lies that the log names as a URI; some writers name it as it is."""
    literal = root / path
    return literal if "%" not in path or literal.exists() else root / unquote(path)
