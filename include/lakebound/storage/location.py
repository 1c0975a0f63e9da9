"""A folder or a file, wherever it is: by its address alone, and what can be done with it."""

from __future__ import annotations

import os
import posixpath
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO
from urllib.parse import urlsplit

from lakebound.errors import NotOnThisMachineError
from lakebound.spec.warehouse import StoreSpec
from lakebound.storage.local import LocalStore
from lakebound.storage.options import delta_options, obstore_options
from lakebound.storage.store import Store, StoredFile, Tagged


@dataclass(frozen=True)
class Location:
    """The address of a folder or a file; nothing is asked before a method needs it.

    Attributes:
        address: An absolute path, or ``s3://BUCKET/KEY``.
        store: How an object store is reached; None of a path.
    """

    address: str
    store: StoreSpec | None = field(default=None, repr=False)

    def __str__(self) -> str:
        return self.address

    def __truediv__(self, name: str) -> Location:
        return Location(f"{self.address.rstrip('/')}/{name}", self.store)

    @property
    def is_local(self) -> bool:
        """Whether it is on this machine."""
        return self.address.startswith("/")

    @property
    def path(self) -> Path:
        """Its path on this machine.

        Raises:
            NotOnThisMachineError: It is in an object store.
        """
        if not self.is_local:
            raise NotOnThisMachineError(self.address)
        return Path(self.address)

    @property
    def name(self) -> str:
        """Its last part."""
        return posixpath.basename(self.address)

    @property
    def parent(self) -> Location:
        """The folder that it is in."""
        return Location(posixpath.dirname(self.address), self.store)

    @property
    def key(self) -> str:
        """What its storage calls it: a path, or a key in a bucket."""
        return self.address if self.is_local else urlsplit(self.address).path.lstrip("/")

    @property
    def uri(self) -> str:
        """Its address with a scheme, as Iceberg writes it."""
        return f"file://{self.address}" if self.is_local else self.address

    @property
    def delta_options(self) -> dict[str, str] | None:
        """What deltalake is given beside the address; None of a path. Holds keys."""
        return None if self.is_local else delta_options(self.store or StoreSpec())

    def relative_to(self, folder: Location) -> str:
        """Return what follows a folder's address.

        Raises:
            ValueError: It is not below that folder.
        """
        start = f"{folder.address.rstrip('/')}/"
        if not self.address.startswith(start):
            raise ValueError(f"{self.address} is not below {folder.address}")
        return self.address.removeprefix(start)

    def read(self) -> bytes:
        """Return the content of a file.

        Raises:
            FileNotFoundError: There is none.
        """
        return self._storage().read(self.key)

    def open(self) -> BinaryIO:
        """Return a file to read part by part; whoever asks closes it.

        Raises:
            FileNotFoundError: There is none.
        """
        return self._storage().open(self.key)

    def read_tagged(self) -> Tagged:
        """Return the content of a file, and what ``replace`` asks for.

        Raises:
            FileNotFoundError: There is none.
        """
        return self._storage().read_tagged(self.key)

    def describe(self) -> StoredFile | None:
        """Return size and age of a file; None where there is none."""
        return self._storage().describe(self.key)

    def exists(self) -> bool:
        """Whether there is such a file; an object store has no folders."""
        return self.describe() is not None

    def list(self, *, after: str = "") -> Iterator[tuple[Location, StoredFile]]:
        """Yield the files in and below a folder, ordered by address.

        Args:
            after: Only those that come after this one, a path from the folder on.
        """
        start = (self / after).key if after else ""
        base = self.key.rstrip("/")
        for found in self._storage().list(base, after=start):
            yield self / found.key.removeprefix(base).lstrip("/"), found

    def put(self, content: bytes) -> None:
        """Write a file, or replace it, in one step."""
        self._storage().put(self.key, content)

    def put_new(self, content: bytes) -> None:
        """Write a file where none is.

        Raises:
            FileExistsError: There is one; in an object store it may be this call's own.
        """
        self._storage().put_new(self.key, content)

    def replace(self, content: bytes, tag: str) -> str:
        """Replace a file that is still the one of the tag, and return the new tag.

        Args:
            content: The new content.
            tag: As ``read_tagged`` or the last ``replace`` gave it.

        Raises:
            FileChangedError: It is another one, or is gone; in an object store the other one may be this call's own.
        """
        return self._storage().replace(self.key, content, tag)

    def upload(self, source: Path | BinaryIO) -> None:
        """Write a file with the content of one of this machine, which may have no name."""
        self._storage().upload(self.key, source)

    def delete(self) -> None:
        """Delete the file, if it is there."""
        self._storage().delete([self.key])

    def _storage(self) -> Store:
        return _open(self.address if not self.is_local else "", self.store)


def location_of(address: str, store: StoreSpec | None) -> Location:
    """Return the location of an address as writers of tables give it: a path, ``file:/…``, ``file:///…``, or ``s3a://…``.

    Args:
        address: Of a file or a folder.
        store: How an object store is reached.
    """
    if address.startswith(("/", "file:")):
        return Location("/" + address.removeprefix("file:").lstrip("/"))
    scheme, _, rest = address.partition("://")
    return Location(f"{_SAME_STORE.get(scheme, scheme)}://{rest}", store)


_SAME_STORE = {"s3a": "s3", "s3n": "s3"}


def delete_all(locations: Iterable[Location]) -> None:
    """Delete files, as many in one request as the storage takes."""
    by_storage: dict[int, tuple[Store, list[str]]] = {}
    for location in locations:
        storage = location._storage()
        by_storage.setdefault(id(storage), (storage, []))[1].append(location.key)
    for storage, keys in by_storage.values():
        storage.delete(keys)


def _open(address: str, store: StoreSpec | None) -> Store:
    parts = urlsplit(address)
    if not address:
        return _LOCAL
    return _open_bucket(f"{parts.scheme}://{parts.netloc}", store, os.getpid(), int(time.monotonic() / REOPEN_SECONDS))


_LOCAL = LocalStore()
REOPEN_SECONDS = 300.0
"""After that a bucket is opened anew, with the keys of then: temporary ones are renewed long before they end."""


@lru_cache(maxsize=64)
def _open_bucket(bucket: str, store: StoreSpec | None, process: int, period: int) -> Store:
    """Return the bucket of a process and a time: a client's connections must not be taken through a fork."""
    import obstore.store  # takes 30 ms, and a local installation needs none of it

    from lakebound.storage.objects import ObjectStore

    return ObjectStore(obstore.store.from_url(bucket, **obstore_options(store or StoreSpec())), bucket)
