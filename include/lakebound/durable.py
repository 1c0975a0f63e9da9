"""Making files outlast a power cut: their content, and the names by which they are found.

A file that was written and closed may be empty after a power cut, and one that was created may have no name. So what a commit
names is synced before the commit is visible, and the commit itself before it is reported. Source: fsync(2), "Calling fsync()
does not necessarily ensure that the entry in the directory containing the file has also reached disk".
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path


def sync_file(path: Path) -> None:
    """Wait until a file's content is on the disk, whoever wrote it."""
    _sync(path, os.O_RDONLY)


def sync_folder(path: Path) -> None:
    """Wait until the names in a folder are on the disk: those that were made, and that others are gone."""
    _sync(path, os.O_RDONLY | os.O_DIRECTORY)


def sync_new(paths: Iterable[Path], below: Path) -> None:
    """Wait until files and their names are on the disk, and those of the folders that were made for them.

    Args:
        paths: Files in or below a folder.
        below: That folder, whose own name is on the disk.
    """
    folders: dict[Path, None] = {}
    for path in paths:
        sync_file(path)
        folders[path.parent] = None
        for folder in path.parents:
            if not folder.is_relative_to(below):
                break
            folders[folder] = None
    for folder in folders:
        sync_folder(folder)


def make_folder(path: Path, make: Callable[[Path], None] | None = None) -> None:
    """Make a folder and those above it, and wait until their names are on the disk, also of those that are there already.

    Somebody else may have made one of them a moment ago, and not synced it.

    Args:
        path: The folder.
        make: Makes it and those above it; by default with the modes that the umask gives.
    """
    path = path.absolute()
    made = [folder for folder in (path, *path.parents) if not folder.exists()]
    if make is None:
        path.mkdir(parents=True, exist_ok=True)
    else:
        make(path)
    needed = {folder.parent for folder in made}
    disk = path.stat().st_dev
    for folder in path.parents:
        if folder.stat().st_dev != disk:
            break
        try:
            sync_folder(folder)
        except PermissionError:
            if folder in needed:
                raise
            # Not ours to read: nothing was made in it.


def _sync(path: Path, flags: int) -> None:
    opened = os.open(path, flags)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
