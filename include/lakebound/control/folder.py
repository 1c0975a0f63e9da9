"""The folder in which a pipeline's lease, desired state, progress and logs stand, and atomic JSON files in it."""

from __future__ import annotations

import fcntl
import json
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote

from lakebound.control.lock_holder import holder_of
from lakebound.control.private_files import make_private, make_private_folder, open_private
from lakebound.durable import make_folder, sync_folder
from lakebound.errors import LockHeldError

LOCK_DEADLINE_SECONDS = 30.0
"""Locks of files are held for milliseconds; a disk that is busy may need some seconds to sync."""

_LOOKS_EVERY_SECONDS = 0.005

_lasting: set[Path] = set()
"""Folders whose names this process knows to be on the disk."""


@dataclass(frozen=True)
class ControlFolder:
    """``<home>/pipelines/<pipeline>``; makes nothing by itself."""

    home: Path
    pipeline: str

    @property
    def folder(self) -> Path:
        """The folder itself."""
        return self.home / "pipelines" / self.pipeline

    @property
    def lease(self) -> Path:
        """Who may write (``lakebound.control.lease``)."""
        return self.folder / "lease.json"

    @property
    def desired(self) -> Path:
        """What a person or a DAG wants (``lakebound.control.desired``)."""
        return self.folder / "desired.json"

    @property
    def desired_sign(self) -> Path:
        """Is there once a desired state was written: where only this is left, that one is lost."""
        return self.folder / "desired.sign"

    @property
    def progress(self) -> Path:
        """What the application last did (``lakebound.control.progress``)."""
        return self.folder / "progress.json"

    @property
    def complete_hours(self) -> Path:
        """Which hours of the tables are complete (``lakebound.control.complete_hours``)."""
        return self.folder / "complete-hours.json"

    @property
    def submission(self) -> Path:
        """The backend's record of the application that it submitted last."""
        return self.folder / "submission.json"

    @property
    def incidents(self) -> Path:
        """What went wrong and what was done about it (``lakebound.control.incidents``), one file each."""
        return self.folder / "incidents"

    @property
    def findings(self) -> Path:
        """What is wrong at this moment (``lakebound.control.findings``), one file per source."""
        return self.folder / "findings"

    @property
    def crash_loop(self) -> Path:
        """Which ends in a row landed nothing (``lakebound.control.crash_loop``)."""
        return self.folder / "crash-loop.json"

    @property
    def health_history(self) -> Path:
        """How the tables' health was over time (``lakebound.operations.maintenance.health_history``), one line per reading."""
        return self.folder / "health.jsonl"

    @property
    def rollups(self) -> Path:
        """What the pipeline did over time (``lakebound.control.rollup_files``): a file per resolution, and one of totals."""
        return self.folder / "rollups"

    @property
    def recent_ledger(self) -> Path:
        """The newest batches, and what all tables hold (``lakebound.control.recent_ledger``)."""
        return self.folder / "recent-ledger.json"

    @property
    def maintenance_history(self) -> Path:
        """What maintenance runs did (``lakebound.operations.maintenance.past_reading``), one line per run."""
        return self.folder / "maintenance.jsonl"

    @property
    def repair(self) -> Path:
        """Locked while somebody repairs or rewinds the pipeline, and while a step of maintenance runs."""
        return self.folder / "repair"

    @property
    def maintenance(self) -> Path:
        """Locked while a maintenance run is under way."""
        return self.folder / "maintenance"

    def turn(self, table: str) -> Path:
        """While it is young, somebody asks the stream to hold its commits to a table back (``lakebound.control.turns``)."""
        return self.folder / "turns" / quote(table, safe="")

    def stop_marker(self, app_id: str) -> Path:
        """Its presence asks that one application to stop gracefully."""
        return self.folder / f"stop-{app_id}.json"

    def outcome(self, app_id: str) -> Path:
        """How that application ended (``lakebound.control.progress.Outcome``)."""
        return self.folder / "outcomes" / f"{app_id}.json"

    def log(self, app_id: str) -> Path:
        """That application's log."""
        return self.folder / "logs" / f"{app_id}.log"

    def trace(self, app_id: str) -> Path:
        """Where an application's milliseconds went, batch by batch."""
        return self.folder / "logs" / f"{app_id}.trace.jsonl"

    def checkpoint(self, app_id: str) -> Path:
        """That application's scratch checkpoint."""
        return self.folder / "checkpoints" / app_id


def write_json(path: Path, body: Any, *, durable: bool = False) -> None:
    """Replace the file in one step, so that a reader sees the old or the new one whole.

    Args:
        path: The file; its folder is made when it is not there.
        body: What ``json.dumps`` takes.
        durable: Also survive a power cut (fsync of file and folder); leases need it, progress does not.
    """
    write_text(path, json.dumps(body), durable=durable)


def write_text(path: Path, text: str, *, durable: bool = False) -> None:
    """Replace the file in one step, as ``write_json`` does.

    Args:
        path: The file to replace; missing folders above it are made.
        text: The file's whole new content.
        durable: Whether the file must also survive a power cut (fsync of file and folder).
    """
    if durable:
        _make_lasting(path.parent)
    make_private_folder(path.parent)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "w") as file:
            make_private(file.fileno())
            file.write(text)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    if durable:
        sync_folder(path.parent)


def _make_lasting(folder: Path) -> None:
    """Have a folder's own name on the disk, too: it may be there since a moment ago, made for a lock or a log."""
    if folder not in _lasting or not folder.exists():
        make_folder(folder, make_private_folder)
        _lasting.add(folder)


def read_json(path: Path) -> Any | None:
    """Return the file's JSON, or None when there is no file.

    Raises:
        ValueError: The file is not JSON.
    """
    try:
        text = path.read_text()
    except FileNotFoundError:
        return None
    return json.loads(text)


@contextmanager
def locked(path: Path, deadline_seconds: float = LOCK_DEADLINE_SECONDS) -> Iterator[None]:
    """Hold an exclusive lock on ``<path>.lock``, among the processes of this machine.

    Raises:
        LockHeldError: Somebody else holds it for longer than the deadline.
    """
    with _lock_file(path) as file:
        _lock(file, deadline_seconds)
        yield


@contextmanager
def locked_if_free(path: Path) -> Iterator[bool]:
    """Hold the lock of ``locked`` inside the block, unless somebody else does: then yield False at once."""
    with _lock_file(path) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True


def _lock_file(path: Path) -> IO[str]:
    make_private_folder(path.parent)
    return open_private(path.with_name(path.name + ".lock"), "a")


def _lock(file: IO[str], deadline_seconds: float) -> None:
    ends = time.monotonic() + deadline_seconds
    while True:
        try:
            return fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > ends:
                raise LockHeldError(Path(file.name), holder_of(file.fileno()), deadline_seconds) from None
            time.sleep(_LOOKS_EVERY_SECONDS)
