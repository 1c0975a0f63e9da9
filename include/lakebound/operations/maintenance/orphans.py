"""Orphans: files in a table's folder that no version names. They are found, moved aside, and deleted much later.

The decision is pure; ``lakebound.operations.maintenance.orphan_files`` lists, moves and deletes.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import urlparse

from lakebound.errors import LakeboundError

QUARANTINE = "_orphans"
"""Folder in a table's, into which orphans are moved: readers, VACUUM and this search skip it."""

_LOCAL_SCHEMES = ("", "file")


@dataclass(frozen=True)
class ListedFile:
    """A file below a table's folder.

    Attributes:
        path: Relative to the table's folder, with slashes.
        modified_ms: When it was last written.
    """

    path: str
    size_bytes: int
    modified_ms: int


class StrangeReferenceError(LakeboundError):
    """A version names files by another address than they are listed by: then every file would look like an orphan."""

    def __init__(self, table: str, location: str, folder: str) -> None:
        super().__init__(
            f"table {table}: a version refers to {location}, which is not in this machine's folder {folder}; no orphans are "
            f"moved, because it is unknown which files the table needs"
        )


class NothingRecognisedError(LakeboundError):
    """None of the files that the versions name is in the folder."""

    def __init__(self, table: str, referenced: int, folder: str) -> None:
        super().__init__(
            f"table {table}: none of the {referenced} files that its versions refer to is in {folder}; no orphans are moved. "
            f"Check whether the folder was moved, or has another path"
        )


def relative_path(location: str, folders: Iterable[str], table: str) -> str | None:
    """Return a location relative to the table's folder; None where it lies elsewhere on this machine.

    Args:
        location: As a version names it: a path, relative or not, or a URI.
        folders: Names of the table's folder: as configured, and with links resolved.
        table: For the message.

    Raises:
        StrangeReferenceError: It is no path of this machine.
    """
    names = [posixpath.normpath(folder) for folder in folders]
    scheme = urlparse(location).scheme
    if scheme not in _LOCAL_SCHEMES:
        raise StrangeReferenceError(table, location, names[0])
    path = location[len("file:") :] if scheme else location
    path = posixpath.normpath("/" + path.lstrip("/") if path.startswith("/") else path)
    if not path.startswith("/"):
        return None if path.startswith("..") else path
    for name in names:
        if path.startswith(f"{name}/"):
            return path[len(name) + 1 :]
    return None


def is_scanned(path: str) -> bool:
    """Whether a file may be an orphan at all: hidden folders and files are somebody's own, a log, or the quarantine.

    A name such as ``_day=2026-11-20`` is a partition's folder.
    """
    return all("=" in part or part[:1] not in ("_", ".") for part in path.split("/"))


def orphans(
    listed: Iterable[ListedFile], referenced: frozenset[str], older_than_ms: int, *, table: str, folder: str
) -> tuple[ListedFile, ...]:
    """Return the files that no version names and that were last written before ``older_than_ms``, oldest first.

    Args:
        listed: Files below the table's folder.
        referenced: What any version names, relative to that folder.
        older_than_ms: Younger ones may be a running batch's.
        table: For the message.
        folder: For the message.

    Raises:
        NothingRecognisedError: The versions name files, and none of them is listed.
    """
    files = [file for file in listed if is_scanned(file.path)]
    if files and referenced and not any(file.path in referenced for file in files):
        raise NothingRecognisedError(table, len(referenced), folder)
    found = (file for file in files if file.path not in referenced and file.modified_ms < older_than_ms)
    return tuple(sorted(found, key=lambda file: (file.modified_ms, file.path)))
