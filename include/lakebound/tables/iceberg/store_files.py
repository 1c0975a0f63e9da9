"""Iceberg's files in an object store: one request for each file that is written, one for each small one that is read.

PyIceberg's own readers and writers ask whether a file is there before they write it, and how large it is before they read it.
"""

from __future__ import annotations

import io
import threading
from collections import OrderedDict
from types import TracebackType

from pyiceberg.io import FileIO, InputFile, InputStream, OutputFile, OutputStream

from lakebound.spec.warehouse import StoreSpec
from lakebound.storage.location import Location, location_of
from lakebound.storage.options import pyiceberg_options
from lakebound.storage.requests import each

_READ_IN_PARTS = ".parquet"
_KEPT_FILES = 64
_KEPT_BYTES = 1 << 20


class StoreFileIO(FileIO):
    """Reads and writes a store. It keeps the small files that it wrote last: the next commit reads the manifest list again.

    Args:
        store: How the store is reached; None: by what the machine has.
    """

    def __init__(self, store: StoreSpec | None) -> None:
        super().__init__(pyiceberg_options(store or StoreSpec()))
        self._store = store
        self._kept: OrderedDict[str, bytes] = OrderedDict()
        self._lock = threading.Lock()

    def new_input(self, location: str) -> StoreInput:
        """Return a file to read."""
        with self._lock:
            return StoreInput(location_of(location, self._store), self._kept.get(location))

    def new_output(self, location: str) -> StoreOutput:
        """Return a file to write."""
        return StoreOutput(location, self)

    def delete(self, location: str | InputFile | OutputFile) -> None:
        """Delete a file, if it is there."""
        address = location if isinstance(location, str) else location.location
        location_of(address, self._store).delete()

    def put(self, location: str, content: bytes) -> None:
        """Write a file in one request."""
        location_of(location, self._store).put(content)
        if len(content) <= _KEPT_BYTES:
            with self._lock:
                self._kept[location] = content
                if len(self._kept) > _KEPT_FILES:
                    self._kept.popitem(last=False)


class DraftFileIO(FileIO):
    """Keeps what is written in memory, until all of it is put at once."""

    def __init__(self, files: StoreFileIO) -> None:
        super().__init__(files.properties)
        self._files = files
        self._drafts: dict[str, bytes] = {}

    def new_input(self, location: str) -> StoreInput:
        """Return a file of the store to read."""
        return self._files.new_input(location)

    def new_output(self, location: str) -> StoreOutput:
        """Return a file to write."""
        return StoreOutput(location, self)

    def delete(self, location: str | InputFile | OutputFile) -> None:
        """Delete a file of the store."""
        self._files.delete(location)

    def put(self, location: str, content: bytes) -> None:
        """Keep a file."""
        self._drafts[location] = content

    def put_all(self) -> None:
        """Put the files side by side, and return when all of them are in the store.

        Raises:
            OSError: One could not be put.
        """
        drafts, self._drafts = list(self._drafts.items()), {}
        each(lambda draft: self._files.put(*draft), drafts)


class StoreInput(InputFile):
    """A file of a store, or what is kept of it."""

    def __init__(self, found: Location, kept: bytes | None) -> None:
        super().__init__(found.address)
        self._found = found
        self._kept = kept

    def __len__(self) -> int:
        """Its size in bytes.

        Raises:
            FileNotFoundError: There is none.
        """
        if self._kept is not None:
            return len(self._kept)
        found = self._found.describe()
        if found is None:
            raise FileNotFoundError(self.location)
        return found.size_bytes

    def exists(self) -> bool:
        """Whether there is such a file."""
        return self._found.exists()

    def open(self, seekable: bool = True) -> InputStream:
        """Return its content: of a data file part by part, of any other whole."""
        if self._kept is not None:
            return io.BytesIO(self._kept)
        if self.location.endswith(_READ_IN_PARTS):
            return self._found.open()
        return io.BytesIO(self._found.read())


class StoreOutput(OutputFile):
    """A file that is put when what writes it is closed."""

    def __init__(self, location: str, files: StoreFileIO | DraftFileIO) -> None:
        super().__init__(location)
        self._files = files
        self._size = 0

    def __len__(self) -> int:
        """How many bytes were written."""
        return self._size

    def exists(self) -> bool:
        """Whether there is such a file."""
        return self._files.new_input(self.location).exists()

    def to_input_file(self) -> StoreInput:
        """Return the file to read."""
        return self._files.new_input(self.location)

    def create(self, overwrite: bool = False) -> OutputStream:
        """Return what writes it. Names of Iceberg's files are unique, so nobody asks whether there is one."""
        return _Draft(self)

    def put(self, content: bytes) -> None:
        """Write the content."""
        self._size = len(content)
        self._files.put(self.location, content)


class _Draft(io.BytesIO):
    def __init__(self, file: StoreOutput) -> None:
        super().__init__()
        self._file = file
        self._is_whole = True

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._is_whole = kind is None
        self.close()

    def close(self) -> None:
        if not self.closed:
            content = self.getvalue()
            super().close()
            if self._is_whole:
                self._file.put(content)
