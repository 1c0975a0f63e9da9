"""Opening a Delta table, with a clear word where its log cannot be read any more."""

from __future__ import annotations

from pathlib import Path

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from lakebound.errors import TableUnreadableError
from lakebound.first_line import first_line
from lakebound.tables.outages import passes

_TRIES = 200


def open_delta(path: Path, table: str) -> DeltaTable:
    """Return a table at its newest version.

    Args:
        path: Its folder.
        table: Its id, for the message.

    Raises:
        TableUnreadableError: Its log is there, and cannot be read.
    """
    try:
        return DeltaTable(str(path))
    except TableNotFoundError:
        raise
    except (DeltaError, ValueError) as exc:
        if passes(exc):
            raise
        raise TableUnreadableError(table, first_line(exc), last_readable(path)) from exc


def last_readable(path: Path) -> int | None:
    """Return the newest version that can be read, among the newest of the log; None without any."""
    log = path / "_delta_log"
    versions = sorted((int(file.stem) for file in log.glob("*.json") if file.stem.isdigit()), reverse=True)
    for version in versions[:_TRIES]:
        try:
            DeltaTable(str(path), version=version).get_add_actions()
        except (DeltaError, ValueError):
            continue
        return version
    return None
