"""Stands between our Python code and the file system, the catalog and the libraries: an actor stops before each operation.

What Python itself does is seen by an audit hook, which cannot be taken away again, and does nothing outside of an actor's
thread. What that does not see (stat, fsync, the SQL catalog, an object store, calls into Arrow and
deltalake) is wrapped. What Rust and C++ do
inside one call cannot be paused.
"""

from __future__ import annotations

import errno
import fcntl
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyiceberg.io.pyarrow import PyArrowFile, PyArrowFileIO
from sqlalchemy.engine.default import DefaultDialect

from lakebound.control import local_file
from lakebound.storage.objects import ObjectStore
from lakebound.tables.iceberg import open as iceberg_catalog
from tests.support.pauses.interleaving import Actor, this_actor

_SEEN = frozenset(
    f"os.{name}"
    for name in ("link", "rename", "remove", "rmdir", "mkdir", "listdir", "scandir", "symlink", "truncate", "utime")
)
_WRITES = ("UPDATE", "INSERT", "DELETE", "CREATE")
_root = ""
_is_hooked = False


@contextmanager
def interposed(root: Path) -> Iterator[None]:
    """Have actors pass a gate before each operation on a file below a folder."""
    global _root, _is_hooked
    if not _is_hooked:
        sys.addaudithook(_hear)
        _is_hooked = True
    _root = f"{root}{os.sep}"
    patch = pytest.MonkeyPatch()
    try:
        _wrap_files(patch)
        _wrap_libraries(patch)
        _wrap_locks(patch)
        # Processes do not share it; actors are processes.
        patch.setattr(iceberg_catalog, "_making", nullcontext())
        patch.setattr(time, "sleep", _without_sleep(time.sleep))
        yield
    finally:
        patch.undo()
        _root = ""


def _hear(event: str, arguments: tuple[Any, ...]) -> None:
    if not _root or (event != "open" and event not in _SEEN):
        return
    actor = this_actor()
    if actor is not None and arguments and not isinstance(arguments[0], int):
        _pass(actor, event, arguments[0])


def _pass(actor: Actor, operation: str, path: object) -> None:
    """Names relative to an open folder are the log's; everything else lies below the root, or is Python's own."""
    name = os.fsdecode(path) if isinstance(path, str | bytes | os.PathLike) else str(path)
    name = name.removeprefix("file://")
    if not name.startswith("/") or name.startswith(_root):
        actor.pass_gate(f"{operation} {name.rpartition('/')[2]}")


def _gate(operation: str, path: object = "") -> None:
    actor = this_actor()
    if actor is not None:
        _pass(actor, operation, path)


def _before(patch: pytest.MonkeyPatch, owner: Any, name: str, operation: str, path: Callable[..., object]) -> None:
    """Pass a gate before each call of a function."""
    original = getattr(owner, name)

    def gated(*arguments: Any, **options: Any) -> Any:
        _gate(operation, path(*arguments))
        return original(*arguments, **options)

    patch.setattr(owner, name, gated)


def _wrap_files(patch: pytest.MonkeyPatch) -> None:
    for name in ("stat", "fsync"):
        _before(patch, os, name, name, lambda at, *_: "" if isinstance(at, int) else at)


def _wrap_libraries(patch: pytest.MonkeyPatch) -> None:
    _before(patch, DeltaTable, "__init__", "deltalake open", lambda self, at, *_: at)
    for name in ("update_incremental", "get_add_actions", "create_checkpoint", "vacuum"):
        _before(patch, DeltaTable, name, f"deltalake {name}", lambda *_: "")
    _before(patch, pq.ParquetWriter, "__init__", "parquet create", lambda self, at, *_: at)
    _before(patch, pq.ParquetWriter, "close", "parquet close", lambda *_: "")
    _before(patch, pq, "read_metadata", "parquet footer", lambda at, *_: at)
    for name in ("open", "create", "exists"):
        _before(patch, PyArrowFile, name, f"iceberg {name}", lambda self, *_: self.location)
    for name in ("open", "read_tagged", "describe", "list", "put", "put_new", "replace", "upload", "delete"):
        _before(patch, ObjectStore, name, f"store {name}", lambda self, key, *_: key)
    _before(patch, PyArrowFileIO, "delete", "iceberg delete", lambda self, at: getattr(at, "location", at))


def _wrap_locks(patch: pytest.MonkeyPatch) -> None:
    """An actor that needs a lock which another one holds is seen to wait, and tries again when it goes on."""
    flock, lock = fcntl.flock, local_file.lock

    def gated_flock(file: Any, operation: int) -> None:
        _gate("flock")
        flock(file, operation)

    def gated_lock(file: Any, deadline_seconds: float) -> None:
        actor = this_actor()
        if actor is None:
            return lock(file, deadline_seconds)
        _gate("flock")
        while True:
            try:
                return flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as exc:
                if exc.errno not in (errno.EAGAIN, errno.EACCES):
                    raise
                actor.wait_for_lock()

    patch.setattr(fcntl, "flock", gated_flock)
    patch.setattr(local_file, "lock", gated_lock)
    _wrap_catalog(patch)


def _wrap_catalog(patch: pytest.MonkeyPatch) -> None:
    """SQLite lets one transaction write at a time: from its first change to its end."""
    execute: Callable[..., Any] = DefaultDialect.do_execute
    writers: list[Actor] = []

    def gated_execute(self: Any, cursor: Any, statement: str, *arguments: Any, **options: Any) -> Any:
        actor = this_actor()
        _gate(f"sql {statement.split(None, 1)[0]}")
        if actor is not None and statement.lstrip().startswith(_WRITES):
            while any(writer is not actor and not writer.has_ended for writer in writers):
                actor.wait_for_lock()
            writers[:] = [actor]
        return execute(self, cursor, statement, *arguments, **options)

    def ending(name: str) -> Callable[[Any, Any], None]:
        end = getattr(DefaultDialect, name)

        def gated_end(self: Any, connection: Any) -> None:
            try:
                _gate(f"sql {name}")
            finally:
                end(self, connection)
                if this_actor() in writers:
                    writers.clear()

        return gated_end

    patch.setattr(DefaultDialect, "do_execute", gated_execute)
    patch.setattr(DefaultDialect, "do_commit", ending("do_commit"))
    patch.setattr(DefaultDialect, "do_rollback", ending("do_rollback"))


def _without_sleep(sleep: Callable[[float], None]) -> Callable[[float], None]:
    """Actors run one at a time: who waits for time to pass would wait for nobody."""

    def gated_sleep(seconds: float) -> None:
        if this_actor() is None:
            sleep(seconds)
        else:
            _gate("sleep")

    return gated_sleep
