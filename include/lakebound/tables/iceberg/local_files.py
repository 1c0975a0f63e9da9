"""Files of an Iceberg table on this machine's disk: their paths, and that what a commit names outlasts a power cut.

What lies in an object store is passed over.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from lakebound.durable import sync_file, sync_folder, sync_new


def local_path(location: str) -> Path:
    """Return the path of a location; writers give it as a path, as ``file:/…`` or as ``file:///…``."""
    return Path("/" + location.removeprefix("file:").lstrip("/")) if location.startswith("file:") else Path(location)


def is_local(location: str) -> bool:
    """Whether a location is on this machine. What an object store has put outlasts a power cut by itself."""
    return location.startswith(("/", "file:"))


def sync_contents(locations: Iterable[str]) -> None:
    """Wait until the contents of files are on the disk; their names are so once the folder of each is synced."""
    for location in filter(is_local, locations):
        sync_file(local_path(location))


def sync_metadata(location: str) -> None:
    """Wait until a metadata file is on the disk, and every name in its folder, which was there before."""
    if not is_local(location):
        return
    sync_contents([location])
    sync_folder(local_path(location).parent)


def sync_locations(locations: Iterable[str], table: str) -> None:
    """Wait until files and their names are on the disk.

    Args:
        locations: Of the files.
        table: The table's location.
    """
    if is_local(table):
        sync_new((local_path(location) for location in locations), local_path(table))
