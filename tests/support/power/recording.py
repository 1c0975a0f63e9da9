"""Records what real work does to a folder, as events for ``tests.support.power.disk``.

Python's own operations on names and its fsync are seen one by one, since they pass through here. What Rust, Arrow and SQLite do
in between is seen by what it changed in the folder, and counts as never synced. SQLite is the exception: it syncs its own files
before a transaction is over (``test_power_cuts.py`` looks whether it is told to), so a catalog's file is on the disk once seen.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.power.disk import ROOT, Event, Key, Named, Reached, Synced, Wrote

_CATALOG = ("catalog.db", "catalog.db-wal", "catalog.db-journal")
_NO_FILE_OF_ITS_OWN = "catalog.db-shm"
_NAMES = ("rename", "replace", "link", "unlink", "remove", "mkdir", "rmdir", "symlink")
_SYNCS = ("fsync", "fdatasync")


class Recording:
    """The events of what is done below a folder while it is recorded.

    Attributes:
        events: All so far.
        syncs: How many fsyncs they were.
    """

    def __init__(self, root: Path) -> None:
        self.events: list[Event] = []
        self.syncs = 0
        self._root = root
        self._names: dict[Key, int] = {}
        self._nodes: dict[int, int] = {}
        self._held: list[int] = []
        self._stamps: dict[int, tuple[int, int]] = {}
        self._contents: dict[int, bytes] = {}
        self._lock = threading.RLock()

    def reached(self, mark: str) -> None:
        """Say where the work is."""
        with self._lock:
            self._look()
            self.events.append(Reached(mark))

    @contextmanager
    def running(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        """Record, beginning with what is there already, which counts as on the disk."""
        self._node(os.stat(self._root), self._root)
        self._look()
        for folder in {ROOT, *self._nodes.values()}:
            self.events.append(Synced(folder))
        with monkeypatch.context() as patched:
            for name in _NAMES:
                patched.setattr(os, name, self._changing(getattr(os, name)))
            for name in _SYNCS:
                patched.setattr(os, name, self._syncing(getattr(os, name)))
            try:
                yield
            finally:
                self._look()
        for opened in self._held:
            os.close(opened)

    def _changing(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            with self._lock:
                self._look()
                try:
                    return real(*args, **options)
                finally:
                    self._look(is_one_step=True)

        return call

    def _syncing(self, real: Callable[[int], None]) -> Callable[[int], None]:
        def call(opened: int) -> None:
            with self._lock:
                real(opened)
                self._look()
                node = self._nodes.get(os.fstat(opened).st_ino)
                if node is not None:
                    self.syncs += 1
                    self.events.append(Synced(node))

        return call

    def _look(self, *, is_one_step: bool = False) -> None:
        """Add what has changed since the last look."""
        found: dict[Key, int] = {}
        folders = [(ROOT, self._root)]
        while folders:
            folder, path = folders.pop()
            try:
                entries = list(os.scandir(path))
            except FileNotFoundError:
                continue
            for entry in entries:
                if entry.name.endswith(_NO_FILE_OF_ITS_OWN):
                    continue
                try:
                    node = self._node(entry.stat(follow_symlinks=False), Path(entry.path))
                except FileNotFoundError:
                    continue
                found[folder, entry.name] = node
                if entry.is_dir(follow_symlinks=False):
                    folders.append((node, Path(entry.path)))
                else:
                    self._read(node, entry)
        self._add_names(found, is_one_step=is_one_step)

    def _add_names(self, found: dict[Key, int], *, is_one_step: bool) -> None:
        changed = {key: found.get(key) for key in {**self._names, **found} if found.get(key) != self._names.get(key)}
        gone = {self._names[key]: key for key, node in changed.items() if node is None}
        self._names, before = found, self._names
        if is_one_step and changed:
            self.events.append(Named(tuple(changed.items())))
            return
        for key, node in changed.items():
            if node is not None:
                old = gone.pop(node, None)
                self.events.append(Named(((key, node),) if old is None else ((key, node), (old, None))))
        self.events += [Named(((key, None),)) for key in gone.values()]
        del before
        for folder in {key[0] for key in changed if key[1] in _CATALOG}:
            self.events.append(Synced(folder))

    def _node(self, status: os.stat_result, path: Path) -> int:
        """Return a file's or folder's number. It is kept open, so that no other one ever gets the same inode."""
        if status.st_ino not in self._nodes:
            self._held.append(os.open(path, os.O_PATH | os.O_NOFOLLOW))
            self._nodes[status.st_ino] = len(self._nodes)
        return self._nodes[status.st_ino]

    def _read(self, node: int, entry: os.DirEntry[str]) -> None:
        status = entry.stat(follow_symlinks=False)
        stamp = (status.st_size, status.st_mtime_ns)
        if self._stamps.get(node) == stamp:
            return
        is_link = entry.is_symlink()
        content = os.readlink(entry.path).encode() if is_link else Path(entry.path).read_bytes()
        self._stamps[node] = stamp
        self._contents[node] = content
        self.events.append(Wrote(node, content, status.st_mtime_ns, is_link))
        if is_link or entry.name in _CATALOG:
            self.events.append(Synced(node))
