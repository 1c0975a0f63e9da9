"""Files of a pipeline's state, in a folder or in an object store: read, replaced in one step, changed, locked."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lakebound.control import local_file
from lakebound.control.shared_file import SharedFile, SharedFileBusyError
from lakebound.control.shared_lock import shared_lock
from lakebound.control.state_text import parsed_json
from lakebound.errors import LockHeldError

StateFile = Path | SharedFile
"""A file of the state, or a folder of such files."""

LOCK_DEADLINE_SECONDS = 30.0
"""Locks of files are held for milliseconds; a disk that is busy may need some seconds to sync."""

MOST_BYTES = 8 * 1024 * 1024
"""Of a file that is read whole, unless its reader says another bound. Ours are much smaller: a larger one is not ours."""


class StateFileTooLargeError(ValueError):
    """A file of the state is larger than any that Lakebound writes there."""

    def __init__(self, path: StateFile, most_bytes: int) -> None:
        super().__init__(f"{path} has more than {most_bytes:,} bytes, and so is not Lakebound's: move it away")


def write_json(path: StateFile, body: Any, *, durable: bool = False) -> None:
    """Replace the file in one step, so that a reader sees the old or the new one whole.

    Args:
        path: The file; its folder is made when it is not there.
        body: What ``json.dumps`` takes.
        durable: Also survive a power cut (fsync of file and folder); leases need it, progress does not.
    """
    write_text(path, json.dumps(body), durable=durable)


def write_text(path: StateFile, text: str, *, durable: bool = False) -> None:
    """Replace the file in one step, as ``write_json`` does.

    Args:
        path: The file to replace; missing folders above it are made.
        text: The file's whole new content.
        durable: Whether the file must also survive a power cut (fsync of file and folder); one in a store always does.
    """
    if not isinstance(path, Path):
        return path.write_text(text)
    local_file.replace_text(path, text, durable=durable)


def change_text(
    path: StateFile,
    decide: Callable[[str | None], str | None],
    *,
    durable: bool = False,
    deadline_seconds: float = LOCK_DEADLINE_SECONDS,
) -> None:
    """Replace the file's text by what is decided on the text that is there, so that no other change is lost.

    In a folder a lock keeps others out meanwhile. In a store the new text is put on the condition that the file is still the
    one that was read; else it is decided anew.

    Args:
        path: The file.
        decide: Gets the text, None where there is no file, and returns the new one; None: it stays as it is.
        durable: As of ``write_text``.
        deadline_seconds: How long to wait for others.

    Raises:
        LockHeldError: Others hold the file for longer than the deadline.
    """
    if not isinstance(path, Path):
        try:
            return path.change(decide, deadline_seconds)
        except SharedFileBusyError as exc:
            raise LockHeldError(str(path), "other machines", deadline_seconds) from exc
    with locked(path, deadline_seconds):
        text = decide(read_text(path, errors="replace"))
        if text is not None:
            write_text(path, text, durable=durable)


def read_text(path: StateFile, errors: str = "strict", most_bytes: int | None = None) -> str | None:
    """Return the file's text, or None when there is no file.

    Args:
        path: The file.
        errors: What is done about bytes that are no UTF-8, as of ``bytes.decode``.
        most_bytes: How large it may be; None: of any size.

    Raises:
        StateFileTooLargeError: It is larger.
    """
    try:
        return path.read_text(errors=errors) if most_bytes is None else read_bytes(path, most_bytes).decode(errors=errors)
    except FileNotFoundError:
        return None


def read_bytes(path: StateFile, most_bytes: int = MOST_BYTES) -> bytes:
    """Return the file's content. Of one on a disk no more is read than it may have; one in a store is measured when it is here.

    Raises:
        FileNotFoundError: There is none.
        StateFileTooLargeError: It has more bytes.
    """
    if isinstance(path, Path):
        with path.open("rb") as file:
            content = file.read(most_bytes + 1)
    else:
        content = path.read_bytes()
    if len(content) > most_bytes:
        raise StateFileTooLargeError(path, most_bytes)
    return content


def read_end(path: StateFile, most_bytes: int) -> bytes:
    """Return the last lines of a file, as far as so many bytes hold them; empty when there is no file.

    Args:
        path: The file.
        most_bytes: How much is read. A line of which this holds only the end is left out.
    """
    try:
        if not isinstance(path, Path):
            content = path.read_bytes()
            size, content = len(content), content[-most_bytes:]
        else:
            with path.open("rb") as file:
                size = file.seek(0, os.SEEK_END)
                file.seek(max(0, size - most_bytes))
                content = file.read(most_bytes)
    except FileNotFoundError:
        return b""
    return content if size <= most_bytes else content.partition(b"\n")[2]


def read_json(path: StateFile, most_bytes: int | None = MOST_BYTES) -> Any | None:
    """Return the file's JSON, or None when there is no file.

    Args:
        path: The file.
        most_bytes: How large it may be; None, for what may be large: of any size.

    Raises:
        ValueError: The file is not JSON, or is larger.
    """
    text = read_text(path, most_bytes=most_bytes)
    return None if text is None else parsed_json(text)


def files_in(folder: StateFile, pattern: str) -> list[StateFile]:
    """Return the files directly in a folder whose names match, by name."""
    return sorted(folder.glob(pattern), key=lambda file: file.name)


def modified_at(path: StateFile) -> float:
    """Return when the file was written, in epoch seconds: of this machine's clock, or of the store's.

    Raises:
        FileNotFoundError: There is none.
    """
    return path.stat().st_mtime if isinstance(path, Path) else path.modified_at()


@contextmanager
def locked(path: StateFile, deadline_seconds: float = LOCK_DEADLINE_SECONDS) -> Iterator[None]:
    """Hold an exclusive lock on ``<path>.lock``, among the processes of this machine, or among all where state is shared.

    Raises:
        LockHeldError: Somebody else holds it for longer than the deadline.
    """
    if isinstance(path, Path):
        with local_file.open_lock(path) as file:
            local_file.lock(file, deadline_seconds)
            yield
        return
    with shared_lock(path, deadline_seconds) as refused:
        if refused is not None:
            raise LockHeldError(f"{path}.lock", refused.holder, deadline_seconds)
        yield


@contextmanager
def locked_if_free(path: StateFile) -> Iterator[bool]:
    """Hold the lock of ``locked`` inside the block, unless somebody else does: then yield False at once.

    Where state is shared that is known when its holder gives the next sign of life, or has given none for a while.
    """
    if not isinstance(path, Path):
        with shared_lock(path, None) as refused:
            yield refused is None
        return
    with local_file.open_lock(path) as file:
        yield local_file.is_locked_now(file)
