"""What tables and state need of a storage: whole files are read, listed, put, and put on a condition.

The two conditions are what commits and leases stand on: *put if absent*, and *replace if unchanged*. A folder of this machine
has them by a link and a lock (``local``), an object store by ``If-None-Match`` and ``If-Match`` (``objects``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol


class FileChangedError(OSError):
    """A file is not the one that was read, so it was not replaced."""


@dataclass(frozen=True)
class StoredFile:
    """A file, as a list or a look at it says.

    Attributes:
        key: Where it is in its storage.
        size_bytes: Its size.
        modified_ms: When it was written, by the storage's clock.
    """

    key: str
    size_bytes: int
    modified_ms: int


@dataclass(frozen=True)
class Tagged:
    """The content of a file, with what ``replace`` asks for.

    Attributes:
        content: Its bytes.
        tag: Stands for this content: another content has another tag.
    """

    content: bytes
    tag: str


class Store(Protocol):
    """One storage. Threads may share it. What it reports as written outlasts a crash of the machine.

    Every method may raise an ``OSError`` of the storage. Whether a write that failed so was made is then unknown.
    """

    def read(self, key: str) -> bytes:
        """Return the content of a file.

        Raises:
            FileNotFoundError: There is none.
        """

    def open(self, key: str) -> BinaryIO:
        """Return a file to read part by part.

        Raises:
            FileNotFoundError: There is none.
        """

    def read_tagged(self, key: str) -> Tagged:
        """Return the content of a file and its tag.

        Raises:
            FileNotFoundError: There is none.
        """

    def describe(self, key: str) -> StoredFile | None:
        """Return what is known of a file; None where there is none."""

    def list(self, prefix: str, *, after: str = "") -> Iterator[StoredFile]:
        """Yield the files in and below a folder, ordered by key.

        Args:
            prefix: The folder.
            after: Yield only keys that come after this one.
        """

    def put(self, key: str, content: bytes) -> None:
        """Write a file, or replace it, in one step."""

    def put_new(self, key: str, content: bytes) -> None:
        """Write a file where none is.

        Raises:
            FileExistsError: There is one. It may be this call's own: a client that was not answered asks again by itself.
        """

    def replace(self, key: str, content: bytes, tag: str) -> str:
        """Replace a file that is still the one of the tag, and return the new tag.

        Args:
            key: Of the file.
            content: Its new content.
            tag: What the store said of the file when it was read or written.

        Raises:
            FileChangedError: It is another one, or is gone. The other one may be this call's own, as of ``put_new``.
        """

    def upload(self, key: str, source: Path | BinaryIO) -> None:
        """Write a file with the content of one of this machine; large ones go in parts."""

    def delete(self, keys: Iterable[str]) -> None:
        """Delete files; those that are not there are passed over."""
