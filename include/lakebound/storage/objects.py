"""An object store as a storage, by obstore. Keys are paths in one bucket.

A client that gets no answer asks again by itself. So a conditional write may find its own first attempt and say that the file
exists, or has changed: whoever writes puts something of their own into the content, and reads it back.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

import obstore
from obstore import exceptions as failures

from lakebound.storage.store import FileChangedError, StoredFile, Tagged

_REFUSED = re.compile(r"status code: (?:401|403|404)\b")
"""Of requests for which obstore has no class of errors of its own, such as a list; a 404 is then a bucket that is not there."""

_CODE = re.compile(r"<Code>([\w.]+)</Code>|\(code: ([\w.]+)\)$", re.MULTILINE)
"""S3's name of an error, in the body of its answer; of one of several objects to delete, as obstore quotes it."""

_REFUSALS = frozenset(
    {
        "AccessDenied",
        "AuthorizationHeaderMalformed",
        "CredentialsNotSupported",
        "ExpiredToken",
        "IllegalLocationConstraintException",
        "InvalidBucketName",
        "InvalidSecurity",
        "InvalidToken",
        "PermanentRedirect",
        "TokenRefreshRequired",
    }
)
"""Errors about keys, rights, region or bucket that come with another status than those above, mostly 400, or with none.

Not every 400 is one: RequestTimeout passes by itself (https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html).
"""

_REFUSED_HEAD = re.compile(r"performing HEAD .*status code: 400\b")
"""The answer to a HEAD has no body, so no name. RequestTimeout is about the body of a request, and a HEAD has none, either."""

_ELSEWHERE = "redirect without LOCATION"
"""What the client says where S3 points to another region without a body, as to a HEAD."""


class ObjectStoreUnavailableError(ConnectionError):
    """An object store did not answer, or answered that it cannot at this moment."""


class ObjectStoreRefusedError(PermissionError):
    """An object store refuses the credentials, or what they may do."""


class ObjectStore:
    """One bucket.

    Args:
        bucket: obstore's handle.
        name: Of the bucket, for messages.
    """

    def __init__(self, bucket: Any, name: str) -> None:
        self._bucket = bucket
        self._name = name

    def read(self, key: str) -> bytes:
        """Return the content of an object."""
        return self.read_tagged(key).content

    def open(self, key: str) -> BinaryIO:
        """Return an object to read part by part."""
        with self._explained(key):
            return cast(BinaryIO, _Reader(obstore.open_reader(self._bucket, key)))

    def read_tagged(self, key: str) -> Tagged:
        """Return the content of an object, and its ETag."""
        with self._explained(key):
            found = obstore.get(self._bucket, key)
            return Tagged(bytes(found.bytes()), str(found.meta["e_tag"]))

    def describe(self, key: str) -> StoredFile | None:
        """Return what is known of an object."""
        try:
            with self._explained(key):
                return _stored(obstore.head(self._bucket, key))
        except FileNotFoundError:
            return None

    def list(self, prefix: str, *, after: str = "") -> Iterator[StoredFile]:
        """Yield the objects below a prefix, which counts as a folder; a thousand are asked for at once."""
        with self._explained(prefix):
            for page in obstore.list(self._bucket, prefix or None, offset=after or None, chunk_size=1000):
                yield from (_stored(meta) for meta in page)

    def put(self, key: str, content: bytes) -> None:
        """Write an object, or replace it."""
        with self._explained(key):
            obstore.put(self._bucket, key, content)

    def put_new(self, key: str, content: bytes) -> None:
        """Write an object where none is."""
        with self._explained(key):
            obstore.put(self._bucket, key, content, mode="create")

    def replace(self, key: str, content: bytes, tag: str) -> str:
        """Replace an object whose ETag is still the one."""
        try:
            with self._explained(key):
                return str(obstore.put(self._bucket, key, content, mode={"e_tag": tag})["e_tag"])
        except FileNotFoundError:
            raise FileChangedError(f"{self._shown(key)} is gone") from None

    def upload(self, key: str, source: Path | BinaryIO) -> None:
        """Write an object with the content of a file."""
        with self._explained(key):
            obstore.put(self._bucket, key, source)

    def delete(self, keys: Iterable[str]) -> None:
        """Delete objects, a thousand in one request."""
        doomed = list(keys)
        for first in range(0, len(doomed), 1000):
            try:
                with self._explained(doomed[first]):
                    obstore.delete(self._bucket, doomed[first : first + 1000])
            except FileNotFoundError:
                continue

    @contextmanager
    def _explained(self, key: str) -> Iterator[None]:
        """Inside the block, obstore's errors become those of Python's that say the same."""
        try:
            yield
        except failures.AlreadyExistsError as exc:
            raise FileExistsError(f"{self._shown(key)} exists") from exc
        except failures.PreconditionError as exc:
            raise FileChangedError(f"{self._shown(key)} has changed") from exc
        except FileNotFoundError:
            raise
        except failures.BaseError as exc:
            refusal = _refusal(exc)
            if refusal is not None:
                raise ObjectStoreRefusedError(f"{self._shown(key)}: the store refuses it: {refusal}") from exc
            raise ObjectStoreUnavailableError(f"{self._shown(key)}: {_first_line(exc)}") from exc

    def _shown(self, key: str) -> str:
        return f"{self._name}/{key}"


def _stored(meta: Any) -> StoredFile:
    return StoredFile(str(meta["path"]), int(meta["size"]), int(meta["last_modified"].timestamp() * 1000))


def _refusal(error: Exception) -> str | None:
    """Return what a store refuses, with its own name of the reason where it gives one; None of an error that passes."""
    found, first = _CODE.search(str(error)), _first_line(error)
    code = (found[1] or found[2]) if found is not None else ""
    is_refusal = (
        isinstance(error, failures.PermissionDeniedError | failures.UnauthenticatedError)
        or code in _REFUSALS
        or _REFUSED.search(first) is not None
        or _REFUSED_HEAD.search(first) is not None
        or _ELSEWHERE in first
    )
    if not is_refusal:
        return None
    return first if not code or code in first else f"{code}: {first}"


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]


class _Reader(io.RawIOBase):
    """An object that is read part by part, as Python's files are."""

    def __init__(self, reader: Any) -> None:
        super().__init__()
        self._reader = reader

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def read(self, size: int | None = -1) -> bytes:
        return bytes(self._reader.read(None if size is None or size < 0 else size))

    def readinto(self, buffer: Any) -> int:
        content = self.read(len(buffer))
        buffer[: len(content)] = content
        return len(content)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return int(self._reader.seek(offset, whence))

    def tell(self) -> int:
        return int(self._reader.tell())
