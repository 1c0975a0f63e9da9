"""From the errors by which a full disk shows, to the one that names the disk."""

from __future__ import annotations

from pathlib import Path

from lakebound.control.disks import disk_of
from lakebound.errors import DiskFullError
from lakebound.tables.outages import causes, is_full_disk


def full_disk_error(error: BaseException, what: str, *folders: Path) -> DiskFullError | None:
    """Return the error that names the full disk; None for an error that is about something else.

    Args:
        error: What went wrong.
        what: What was to be written, such as a table's id.
        folders: Where it may have been written to, for an error that names no file: the fullest of their disks is named.
    """
    if isinstance(error, DiskFullError):
        return error
    if not is_full_disk(error):
        return None
    files = [Path(one.filename) for one in causes(error) if isinstance(one, OSError) and isinstance(one.filename, str)]
    disks = [disk for folder in (files or folders) if (disk := disk_of(folder)) is not None]
    fullest = min(disks, key=lambda disk: min(disk.free_share, disk.free_files_share), default=None)
    return DiskFullError(what, str(fullest) if fullest is not None else "that it is written to")
