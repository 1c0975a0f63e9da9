"""Opening a Delta table, with a clear word where its log cannot be read any more."""

from __future__ import annotations

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from lakebound.errors import TableUnreadableError
from lakebound.first_line import first_line
from lakebound.storage.location import Location
from lakebound.tables.delta.checkpoints import list_log
from lakebound.tables.outages import passes

_TRIES = 200


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
        TableUnreadableError: Its log is there, and cannot be read.
    """
    try:
        return open_at(folder)
    except TableNotFoundError:
        raise
    except (DeltaError, ValueError) as exc:
        if passes(exc):
            raise
        raise TableUnreadableError(table, first_line(exc), last_readable(folder)) from exc


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
