"""Looking for orphans in a table's folder, moving them aside with a record, bringing them back, and deleting them at last."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from lakebound.control.folder import read_json, write_json
from lakebound.errors import LakeboundError
from lakebound.operations.maintenance.engines import told
from lakebound.operations.maintenance.orphans import QUARANTINE, ListedFile, orphans, relative_path
from lakebound.operations.maintenance.refusals import ORPHANS_STAY
from lakebound.operations.maintenance.steps import RemoveOrphans, StepEffect
from lakebound.spec.table import TableSpec
from lakebound.storage.location import Location
from lakebound.tables.formats import PerFormat
from lakebound.tables.places import Places

RECORD = "moved.json"
_NEVER = ("deletion_vector_", "version-hint")
"""Starts of names that versions refer to in other ways than by the file's path."""

_PLACES: PerFormat[Callable[[TableSpec, Places], Location]] = PerFormat(
    "lakebound.operations.maintenance", "needed_names:place_of"
)
_NAMES: PerFormat[Callable[[TableSpec, Places, Location], Iterator[str]]] = PerFormat(
    "lakebound.operations.maintenance", "needed_names:needed_names"
)


class LinkedQuarantineError(LakeboundError):
    """The quarantine is a link to somewhere else."""

    def __init__(self, table: str, path: Path) -> None:
        super().__init__(
            f"table {table}: {path} is a symbolic link, so files would leave the table's folder; no orphans were moved"
        )


class OrphansInStoreError(LakeboundError):
    """Orphans of a table in an object store were to be moved aside."""

    def __init__(self, table: str) -> None:
        super().__init__(f"table {table}: {ORPHANS_STAY}")


def remove_orphans(table: TableSpec, step: RemoveOrphans, places: Places, run_id: str, staged_before_ms: int) -> StepEffect:
    """Find the table's orphans; in the mode ``quarantine`` move them aside, and delete what lay there long.

    Args:
        table: The table.
        step: What is asked for.
        places: Where the table is.
        run_id: Names the folder into which they are moved.
        staged_before_ms: A running writer may still commit what it wrote after this.

    Raises:
        TableGoneError: There is no such table.
        TableFeatureError: It has a feature under which it is not known which files are needed.
        LakeboundError: It cannot be told which files are needed: nothing is moved then.
    """
    place = _PLACES.of(table.format)(table, places)
    if not place.is_local:
        return _look_in_store(table, step, place, places, min(step.older_than_ms, staged_before_ms))
    root = place.path
    # Listed first: what is committed while the versions are read is then known to be needed.
    listed = list(list_files(root))
    if (root / QUARANTINE).is_symlink():
        raise LinkedQuarantineError(table.id, root / QUARANTINE)
    needed_paths = referenced(table, places, root)
    bound = min(step.older_than_ms, staged_before_ms)
    found = orphans(listed, needed_paths, bound, table=table.id, folder=str(root))
    size = sum(file.size_bytes for file in found)
    if step.mode == "dry_run":
        note = f"{len(found)} orphans, {size} bytes; nothing was moved" if found else ""
        return StepEffect(removed=told([file.path for file in found]), note=note)
    deleted, deleted_bytes = delete_quarantined(root, step.delete_quarantined_before_ms)
    if found:
        move_aside(root, run_id, found)
    note = f"moved {len(found)} orphans to {QUARANTINE}/{run_id}, deleted {deleted} moved earlier" if found or deleted else ""
    return StepEffect(
        files_before=len(found), bytes_removed=deleted_bytes, removed=told([file.path for file in found]), note=note
    )


def _look_in_store(table: TableSpec, step: RemoveOrphans, root: Location, places: Places, bound_ms: int) -> StepEffect:
    """Tell a stored table's orphans, by their age on the store's clock."""
    if step.mode != "dry_run":
        raise OrphansInStoreError(table.id)
    listed = [
        ListedFile(file.relative_to(root), found.size_bytes, found.modified_ms)
        for file, found in root.list()
        if not file.name.startswith(_NEVER)
    ]
    names = _NAMES.of(table.format)(table, places, root)
    known = frozenset(path for name in names if (path := _path_in_store(name, root, places, table.id)) is not None)
    found = orphans(listed, known, bound_ms, table=table.id, folder=root.address)
    note = f"{len(found)} orphans, {sum(file.size_bytes for file in found)} bytes; nothing was moved" if found else ""
    return StepEffect(removed=told([file.path for file in found]), note=note)


def _path_in_store(name: str, root: Location, places: Places, table: str) -> str | None:
    """Return a name that a version has for a file relative to the table's place; None where it is elsewhere."""
    if "://" not in name:
        return relative_path(name, (root.address,), table)
    file = places.file_at(name)
    return file.relative_to(root) if file.address.startswith(f"{root.address}/") else None


def list_files(root: Path) -> Iterator[ListedFile]:
    """Yield the regular files below a folder; links are neither followed nor yielded."""
    folders = [root]
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(Path(entry.path))
                elif entry.is_file(follow_symlinks=False) and not entry.name.startswith(_NEVER):
                    try:
                        status = entry.stat(follow_symlinks=False)
                    except FileNotFoundError:
                        continue  # moved or deleted meanwhile
                    path = Path(entry.path).relative_to(root).as_posix()
                    yield ListedFile(path, status.st_size, int(status.st_mtime * 1000))


def referenced(table: TableSpec, places: Places, root: Path) -> frozenset[str]:
    """Return everything below the folder that any version names, relative to it."""
    folders = (str(root), str(root.resolve()))
    names = _NAMES.of(table.format)(table, places, Location(str(root)))
    return frozenset(path for path in (relative_path(name, folders, table.id) for name in names) if path is not None)


def move_aside(root: Path, run_id: str, files: tuple[ListedFile, ...]) -> None:
    """Move files into the quarantine; the record of it is written first, so that a move that was cut short can be undone."""
    folder = root / QUARANTINE / run_id
    body = {"at_ms": int(time.time() * 1000), "files": [vars(file) for file in files]}
    write_json(folder / RECORD, body, durable=True)
    for file in files:
        target = folder / file.path
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.rename(root / file.path, target)
        except FileNotFoundError:
            continue
        _remove_empty((root / file.path).parent, root)


def put_back(root: Path, run_id: str) -> int:
    """Undo ``move_aside`` and return how many files came back; a file that is there again is left as it is."""
    folder, back = root / QUARANTINE / run_id, 0
    for file in _recorded(folder):
        source, target = folder / file["path"], root / file["path"]
        if source.exists() and not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            os.rename(source, target)
            back += 1
    _forget(folder)
    return back


def delete_quarantined(root: Path, before_ms: int) -> tuple[int, int]:
    """Delete what was moved aside before a time; return how many files and bytes."""
    files = size = 0
    for record in sorted((root / QUARANTINE).glob(f"*/{RECORD}")):
        body: Any = read_json(record, None)
        if body is None or body["at_ms"] >= before_ms:
            continue
        for file in body["files"]:
            path = record.parent / file["path"]
            if ".." not in path.parts and path.is_file():
                path.unlink()
                files, size = files + 1, size + int(file["size_bytes"])
        _forget(record.parent)
    return files, size


def _recorded(folder: Path) -> list[dict[str, Any]]:
    body: Any = read_json(folder / RECORD, None)
    return list(body["files"]) if body else []


def _forget(folder: Path) -> None:
    """Remove a quarantine folder with its record, unless a file is in it still."""
    for path, _, _ in os.walk(folder, topdown=False):
        if Path(path) != folder:
            _remove_empty(Path(path), folder)
    if {path.name for path in folder.iterdir()} <= {RECORD}:
        (folder / RECORD).unlink(missing_ok=True)
        _remove_empty(folder, folder.parent.parent)


def _remove_empty(folder: Path, below: Path) -> None:
    """Remove a folder, and those above it, as long as they are empty and below another one."""
    while folder != below and folder.is_relative_to(below):
        try:
            folder.rmdir()
        except OSError:
            return
        folder = folder.parent
