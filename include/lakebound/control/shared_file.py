"""A file of the state in an object store: whole texts by name, put on the condition that nobody has put another one.

It offers the part of ``pathlib.Path`` that the state needs, so that who reads and writes state need not know where it lies.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

from lakebound.storage.location import Location
from lakebound.storage.store import FileChangedError, Tagged

_RETRY_SECONDS = 0.05


class SharedFileBusyError(OSError):
    """Others changed a file of the shared state again and again, each time before a change could be put."""

    def __init__(self, file: SharedFile, seconds: float) -> None:
        super().__init__(f"{file} was changed by other processes repeatedly for {seconds:g} s; try again")


@dataclass(frozen=True)
class SharedFile:
    """One file, or what a folder would be: the beginning of the names of files."""

    location: Location

    def __str__(self) -> str:
        return self.location.address

    def __truediv__(self, name: str) -> SharedFile:
        return SharedFile(self.location / name)

    @property
    def name(self) -> str:
        """Its last part."""
        return self.location.name

    @property
    def stem(self) -> str:
        """Its last part without the ending."""
        return PurePosixPath(self.name).stem

    @property
    def parent(self) -> SharedFile:
        """What it is in."""
        return SharedFile(self.location.parent)

    def with_name(self, name: str) -> SharedFile:
        """Return the file of another name beside it."""
        return self.parent / name

    def exists(self) -> bool:
        """Whether there is such a file."""
        return self.location.exists()

    def read_bytes(self) -> bytes:
        """Return its content.

        Raises:
            FileNotFoundError: There is none.
        """
        return self.location.read()

    def read_text(self, errors: str = "strict") -> str:
        """Return its content as text.

        Raises:
            FileNotFoundError: There is none.
        """
        return self.read_bytes().decode(errors=errors)

    def glob(self, pattern: str) -> Iterator[SharedFile]:
        """Yield the files directly in it whose names match."""
        for found, _ in self.location.list():
            name = found.relative_to(self.location)
            if "/" not in name and fnmatchcase(name, pattern):
                yield SharedFile(found)

    def modified_at(self) -> float:
        """Return when it was put, in epoch seconds of the store's clock.

        Raises:
            FileNotFoundError: There is none.
        """
        found = self.location.describe()
        if found is None:
            raise FileNotFoundError(f"{self} is gone")
        return found.modified_ms / 1000

    def unlink(self, missing_ok: bool = False) -> None:
        """Delete it; one that is not there is passed over."""
        self.location.delete()

    def write_text(self, text: str) -> None:
        """Put it, whatever was there."""
        self.location.put(text.encode())

    def tagged(self) -> Tagged | None:
        """Return its content, and what ``swap`` asks for; None where there is none."""
        try:
            return self.location.read_tagged()
        except FileNotFoundError:
            return None

    def swap(self, found: Tagged | None, text: str) -> Tagged | None:
        """Put a text where still that is which was found, and return it with its tag; None where something else is by now.

        A write that was not answered, or with an error, may have been done: then the file is read. So the text must be one
        that no other writer puts, such as one with the name of its writer and a time in it.

        Args:
            found: What was there; None: nothing was.
            text: What is put.

        Raises:
            OSError: The store does not answer, and whether it was put is not known.
        """
        content = text.encode()
        try:
            if found is not None:
                return Tagged(content, self.location.replace(content, found.tag))
            self.location.put_new(content)
        except (FileExistsError, FileChangedError):
            return self._if_own(content)
        except ConnectionError:
            if (own := self._if_own(content)) is None:
                raise
            return own
        # Whoever has put another one since is found by the next swap: no file has this tag.
        return self._if_own(content) or Tagged(content, "")

    def change(self, decide: Callable[[str | None], str | None], deadline_seconds: float) -> None:
        """Replace its text by what is decided on the text that is there; decided anew where somebody was faster.

        Args:
            decide: Gets the text, None where there is none, and returns the new one; None: it stays as it is.
            deadline_seconds: For how long others may be faster.

        Raises:
            SharedFileBusyError: They were for longer.
        """
        ends = time.monotonic() + deadline_seconds
        while True:
            found = self.tagged()
            text = decide(None if found is None else found.content.decode(errors="replace"))
            if text is None or self.swap(found, text) is not None:
                return
            if time.monotonic() > ends:
                raise SharedFileBusyError(self, deadline_seconds)
            time.sleep(_RETRY_SECONDS)

    def _if_own(self, content: bytes) -> Tagged | None:
        """Return what lies there, if it is this content."""
        found = self.tagged()
        return found if found is not None and found.content == content else None
