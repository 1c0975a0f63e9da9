"""A folder of this machine as a storage. Keys are absolute paths."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import BinaryIO

from lakebound.durable import make_folder, sync_file, sync_folder
from lakebound.storage.store import FileChangedError, StoredFile, Tagged

_DRAFT = ".lakebound-draft-"
_LOCK = ".lakebound-lock"


class LocalStore:
    """Files of this machine; each write is synced, and its name, too."""

    def read(self, key: str) -> bytes:
        """Return the content of a file."""
        return Path(key).read_bytes()

    def open(self, key: str) -> BinaryIO:
        """Return a file to read part by part."""
        return open(key, "rb")

    def read_tagged(self, key: str) -> Tagged:
        """Return the content of a file, and its digest."""
        content = self.read(key)
        return Tagged(content, _digest(content))

    def describe(self, key: str) -> StoredFile | None:
        """Return what is known of a file."""
        try:
            found = Path(key).stat()
        except (FileNotFoundError, NotADirectoryError):
            return None
        return StoredFile(key, found.st_size, found.st_mtime_ns // 1_000_000)

    def list(self, prefix: str, *, after: str = "") -> Iterator[StoredFile]:
        """Yield the files in and below a folder; drafts are none yet."""
        for key in sorted(_files_below(Path(prefix))):
            if key > after and (found := self.describe(key)):
                yield found

    def put(self, key: str, content: bytes) -> None:
        """Write a file, or replace it."""
        with _draft(Path(key)) as draft:
            draft.write_bytes(content)
            sync_file(draft)
            os.replace(draft, key)
        sync_folder(Path(key).parent)

    def put_new(self, key: str, content: bytes) -> None:
        """Write a file where none is, by a link."""
        with _draft(Path(key)) as draft:
            draft.write_bytes(content)
            sync_file(draft)
            os.link(draft, key)
        sync_folder(Path(key).parent)

    def replace(self, key: str, content: bytes, tag: str) -> str:
        """Replace a file that is still the one of the tag, under a lock beside it."""
        path = Path(key)
        if not path.parent.exists():
            raise FileChangedError(f"{key} is gone")
        with _locked(path):
            try:
                found = _digest(path.read_bytes())
            except FileNotFoundError:
                raise FileChangedError(f"{key} is gone") from None
            if found != tag:
                raise FileChangedError(f"{key} has changed")
            self.put(key, content)
        return _digest(content)

    def upload(self, key: str, source: Path | BinaryIO) -> None:
        """Copy a file."""
        with _draft(Path(key)) as draft:
            with (
                open(draft, "wb") as target,
                nullcontext(source) if not isinstance(source, Path) else source.open("rb") as file,
            ):
                shutil.copyfileobj(file, target)
            sync_file(draft)
            os.replace(draft, key)
        sync_folder(Path(key).parent)

    def delete(self, keys: Iterable[str]) -> None:
        """Delete files."""
        for key in keys:
            Path(key).unlink(missing_ok=True)


def _files_below(folder: Path) -> Iterator[str]:
    for root, _, names in os.walk(folder):
        for name in names:
            if not name.startswith(_DRAFT) and not name.endswith(_LOCK):
                yield os.path.join(root, name)


@contextmanager
def _draft(path: Path) -> Iterator[Path]:
    if not path.parent.exists():
        make_folder(path.parent)
    draft = path.with_name(f"{_DRAFT}{uuid.uuid4().hex}")
    try:
        yield draft
    finally:
        draft.unlink(missing_ok=True)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with open(path.with_name(f".{path.name}{_LOCK}"), "a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()
