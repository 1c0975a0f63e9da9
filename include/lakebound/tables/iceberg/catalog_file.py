"""The file of a SQLite catalog: which files belong to it, and who holds its lock when it is locked."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote

from sqlalchemy import Engine, event
from sqlalchemy.engine import ExceptionContext

from lakebound.control.lock_holder import holders_of_writes
from lakebound.errors import CatalogLockedError

_SQLITE = "sqlite:///"


def sqlite_file(uri: str) -> Path | None:
    """Return the file of a SQLite catalog, from its SQLAlchemy address; None of another database."""
    if not uri.startswith(_SQLITE):
        return None
    path = uri.removeprefix(_SQLITE).partition("?")[0]
    return Path(unquote(path.removeprefix("file:")) if path.startswith("file:") else path)


def open_existing(path: Path, mode: str, timeout: float) -> sqlite3.Connection:
    """Open a SQLite file that is there, whatever characters its path has.

    Args:
        path: The file.
        mode: ``ro`` to look at it, ``rw`` to write to it.
        timeout: Seconds to wait for a lock.
    """
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode={mode}", uri=True, timeout=timeout)


def files_of(path: Path) -> list[Path]:
    """Return a SQLite file and those beside it: what is committed and not yet in it, and the locks of its users."""
    return [path, *(path.with_name(f"{path.name}{ending}") for ending in ("-wal", "-shm"))]


def say_who_locks(engine: Engine, path: Path) -> None:
    """From now on, have the engine's errors of a lock say who holds it."""

    def explain(context: ExceptionContext) -> None:
        with explained(path):
            raise context.original_exception

    event.listen(engine, "handle_error", lambda context: explain(context) if _is_locked(context.original_exception) else None)


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Inside the block, an error of SQLite's that its file is locked says who holds the lock.

    Raises:
        CatalogLockedError: In place of SQLite's error.
    """
    try:
        yield
    except sqlite3.OperationalError as exc:
        if not _is_locked(exc):
            raise
        raise CatalogLockedError(path, holders_of_writes(files_of(path))) from exc


def _is_locked(error: BaseException) -> bool:
    return isinstance(error, sqlite3.OperationalError) and "is locked" in str(error)
