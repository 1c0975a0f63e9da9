"""Files of an Iceberg table on this machine's disk: their paths, and that what a commit names outlasts a power cut."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from lakebound.durable import sync_file, sync_folder, sync_new


def local_path(location: str) -> Path:
    """Return the path of a location; writers give it as a path, as ``file:/…`` or as ``file:///…``."""
    return Path("/" + location.removeprefix("file:").lstrip("/")) if location.startswith("file:") else Path(location)


def sync_contents(locations: Iterable[str]) -> None:
    """Wait until the contents of files are on the disk; their names are so once the folder of each is synced."""
    for location in locations:
        sync_file(local_path(location))


def sync_metadata(location: str) -> None:
    """Wait until a metadata file is on the disk, and every name in its folder, which was there before."""
    sync_contents([location])
    sync_folder(local_path(location).parent)


def sync_locations(locations: Iterable[str], table: str) -> None:
    """Wait until files and their names are on the disk.

    Args:
        locations: Of the files.
        table: The table's location.
    """
    sync_new((local_path(location) for location in locations), local_path(table))
