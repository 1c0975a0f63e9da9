"""JSON files that must be kept even while the disk of the state takes none: until it does, a RAM disk keeps them.

For what tells people that something is wrong: findings, and what was said of them. A RAM disk is private to its machine, and
empty after a restart. Of two copies of a file the one that was written later counts, so nothing has to be carried back.
A file in an object store has no such copy: while the store is away, nobody can look at a pipeline anyway.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from lakebound.control.folder import MOST_BYTES, StateFile, locked, locked_if_free, read_json, write_json

_UNWRITABLE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO})


def cannot_write(error: BaseException) -> bool:
    """Return whether an error says that a disk takes no file: full, read-only, broken, or no longer this user's."""
    return isinstance(error, OSError) and error.errno in _UNWRITABLE


def ram_disks() -> list[Path]:
    """Return the file systems in memory of this machine, the first one first; there may be none."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    found = [Path("/dev/shm"), *([Path(runtime)] if runtime else [])]
    return [folder for folder in found if folder.is_dir()]


def ram_folder(folder: StateFile) -> Path | None:
    """Return this user's folder on a RAM disk that goes with a folder of the state; None where this machine has none."""
    found = (_own_folder(disk, folder, make=True) for disk in ram_disks())
    return next((one for one in found if one is not None), None)


def write_json_anyway(path: StateFile, body: Any, *, durable: bool = False) -> OSError | None:
    """Replace a file, on a RAM disk if its own disk takes none.

    Args:
        path: The file.
        body: What ``json.dumps`` takes.
        durable: Also survive a power cut, where its own disk takes it.

    Returns:
        Why its own disk did not take it; None where it did.

    Raises:
        OSError: No disk takes it.
    """
    if not isinstance(path, Path):
        write_json(path, body, durable=durable)
        return None
    try:
        write_json(path, body, durable=durable)
    except OSError as exc:
        if not cannot_write(exc) or not any(_is_written(path, body, disk) for disk in ram_disks()):
            raise
        return exc
    for copy in _copies(path):
        with suppress(OSError):
            copy.unlink()
    return None


def read_newest_json(path: StateFile, most_bytes: int | None = MOST_BYTES) -> Any | None:
    """Return the JSON of the copy of the file that was written last, or None when there is none.

    Args:
        path: The file.
        most_bytes: As of ``read_json``.

    Raises:
        ValueError: It is not JSON, or is larger.
    """
    return read_json(newest_copy(path) if isinstance(path, Path) else path, most_bytes)


def newest_copy(path: Path) -> Path:
    """Return the copy of the file that was written last; the file itself where there is no other."""
    copies = [*_copies(path)]
    return max((path, *copies), key=_written_at_ns) if copies else path


def names_of_copies(folder: StateFile) -> set[str]:
    """Return the names of the files of a folder of which there are copies on a RAM disk."""
    if not isinstance(folder, Path):
        return set()
    return {file.name for disk in ram_disks() if (own := _own_folder(disk, folder)) for file in own.glob("*.json")}


@contextmanager
def locked_anyway(path: Path) -> Iterator[None]:
    """Hold the lock of ``locked`` inside the block, that of the copy if the disk takes no lock file.

    Where no disk takes one nothing is locked: what is written then is remembered by one process alone.

    Raises:
        LockHeldError: Somebody else holds it for too long.
    """
    with ExitStack() as stack:
        for lockable in _lockable(path):
            try:
                stack.enter_context(locked(lockable))
                break
            except OSError as exc:
                if not cannot_write(exc):
                    raise
        yield


@contextmanager
def locked_anyway_if_free(path: Path) -> Iterator[bool]:
    """Hold the lock of ``locked_anyway`` inside the block, unless somebody else does: then yield False at once."""
    with ExitStack() as stack:
        is_mine = True
        for lockable in _lockable(path):
            try:
                is_mine = stack.enter_context(locked_if_free(lockable))
                break
            except OSError as exc:
                if not cannot_write(exc):
                    raise
        yield is_mine


def _lockable(path: Path) -> Iterator[Path]:
    yield path
    for disk in ram_disks():
        if (own := _own_folder(disk, path.parent, make=True)) is not None:
            yield own / path.name


def _is_written(path: Path, body: Any, disk: Path) -> bool:
    own = _own_folder(disk, path.parent, make=True)
    if own is None:
        return False
    older = max(_written_at_ns(one) for one in (path, *_copies(path)))
    try:
        write_json(own / path.name, body)
        # A clock that was set back must not make this one the older copy.
        if _written_at_ns(own / path.name) <= older:
            os.utime(own / path.name, ns=(older + 1, older + 1))
    except OSError:
        return False
    return True


def _copies(path: Path) -> Iterator[Path]:
    for disk in ram_disks():
        own = _own_folder(disk, path.parent)
        if own is not None and (own / path.name).exists():
            yield own / path.name


def _own_folder(disk: Path, folder: StateFile, *, make: bool = False) -> Path | None:
    """Return this user's folder on a RAM disk for the copies of a folder; None where there is none, or others may write it."""
    top = disk / f"lakebound-{os.geteuid()}"
    name = os.fsencode(folder.absolute()) if isinstance(folder, Path) else str(folder).encode()
    own = top / hashlib.sha256(name).hexdigest()[:20]
    try:
        if make:
            for one in (top, own):
                one.mkdir(mode=0o700, exist_ok=True)
        return own if _is_private(top) and own.is_dir() else None
    except OSError:
        return None


def _is_private(folder: Path) -> bool:
    """Everybody may make a folder of this name on a RAM disk: it counts only if it is this user's, and closed to others."""
    found = folder.lstat()
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not stat.S_IMODE(found.st_mode) & 0o077


def _written_at_ns(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0
