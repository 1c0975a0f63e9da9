"""Buckets and their objects, in memory: every check and its write happen under one lock."""

from __future__ import annotations

import bisect
import hashlib
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from tests.support.s3.kept import KeptObjects
from tests.support.s3.s3_error import S3Error, no_such_key, precondition_failed
from tests.support.s3.stored import StoredObject

_LEAST_PART_BYTES = 5 * 1024 * 1024
_Result = TypeVar("_Result")


@dataclass(frozen=True)
class Condition:
    """What a write demands of the object that is there."""

    if_match: str | None = None
    if_none_match: str | None = None

    def check(self, current: StoredObject | None) -> None:
        """Refuse the write when the object that is there is not what the writer demands.

        Raises:
            S3Error: 412 when the condition does not hold, 404 when there is nothing that could match.
        """
        if self.if_none_match is not None:
            if self.if_none_match != "*":
                raise S3Error(501, "NotImplemented", "If-None-Match of a write can only be *")
            if current is not None:
                raise precondition_failed()
        if self.if_match is not None:
            if current is None:
                raise no_such_key()
            if not current.matches(self.if_match):
                raise precondition_failed()


@dataclass
class Upload:
    """A multipart upload that is neither complete nor aborted."""

    upload_id: str
    key: str
    headers: Mapping[str, str]
    begun: datetime
    parts: dict[int, StoredObject] = field(default_factory=dict)


@dataclass
class _Bucket:
    created: datetime
    objects: dict[str, StoredObject] = field(default_factory=dict)
    sorted_keys: list[str] = field(default_factory=list)
    uploads: dict[str, Upload] = field(default_factory=dict)


class ObjectStore:
    """All buckets.

    Args:
        folder: Where objects are kept as well, so that a new server finds them; None keeps them in memory only.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._lock = threading.Lock()
        self._buckets: dict[str, _Bucket] = {}
        self._kept = None if folder is None else KeptObjects(folder)
        if self._kept is not None:
            for bucket, stored in self._kept.load():
                made = self._buckets.setdefault(bucket, _Bucket(now()))
                if stored is not None:
                    made.objects[stored.key] = stored
            for made in self._buckets.values():
                made.sorted_keys = sorted(made.objects)

    def buckets(self) -> dict[str, datetime]:
        """Return name → time of creation."""
        with self._lock:
            return {name: bucket.created for name, bucket in sorted(self._buckets.items())}

    def create_bucket(self, name: str) -> None:
        """Create an empty bucket.

        Raises:
            S3Error: There is one of that name.
        """
        with self._lock:
            if name in self._buckets:
                raise S3Error(409, "BucketAlreadyOwnedByYou", "You already own this bucket.")
            self._buckets[name] = _Bucket(now())
            if self._kept is not None:
                self._kept.create_bucket(name)

    def delete_bucket(self, name: str) -> None:
        """Delete an empty bucket."""
        with self._locked(name) as bucket:
            if bucket.objects:
                raise S3Error(409, "BucketNotEmpty", "The bucket you tried to delete is not empty")
            del self._buckets[name]
            if self._kept is not None:
                self._kept.delete_bucket(name)

    def check_bucket(self, name: str) -> None:
        """Refuse a bucket that does not exist."""
        with self._locked(name):
            return

    def get(self, name: str, key: str) -> StoredObject:
        """Return an object.

        Raises:
            S3Error: There is no such key, or no such bucket.
        """
        with self._locked(name) as bucket:
            if key not in bucket.objects:
                raise no_such_key()
            return bucket.objects[key]

    def put(self, name: str, stored: StoredObject, condition: Condition) -> None:
        """Write an object if the condition holds."""
        with self._locked(name) as bucket:
            condition.check(bucket.objects.get(stored.key))
            self._write(name, bucket, stored)

    def delete(self, name: str, key: str, condition: Condition) -> None:
        """Delete an object if the condition holds; without a condition, a missing key is no error."""
        with self._locked(name) as bucket:
            condition.check(bucket.objects.get(key))
            if key in bucket.objects:
                del bucket.objects[key]
                bucket.sorted_keys.pop(bisect.bisect_left(bucket.sorted_keys, key))
                if self._kept is not None:
                    self._kept.delete(name, key)

    def look(self, name: str, choose: Callable[[Sequence[str], Mapping[str, StoredObject]], _Result]) -> _Result:
        """Return what ``choose`` makes of the sorted keys and the objects, at one moment."""
        with self._locked(name) as bucket:
            return choose(bucket.sorted_keys, bucket.objects)

    def begin_upload(self, name: str, key: str, headers: Mapping[str, str]) -> Upload:
        """Begin a multipart upload."""
        upload = Upload(uuid.uuid4().hex, key, headers, now())
        with self._locked(name) as bucket:
            bucket.uploads[upload.upload_id] = upload
        return upload

    def uploads(self, name: str) -> list[Upload]:
        """Return the unfinished uploads, by key."""
        with self._locked(name) as bucket:
            return sorted(bucket.uploads.values(), key=lambda upload: (upload.key, upload.upload_id))

    def parts(self, name: str, key: str, upload_id: str) -> dict[int, StoredObject]:
        """Return number → part of an unfinished upload."""
        with self._locked(name) as bucket:
            return dict(sorted(_upload(bucket, key, upload_id).parts.items()))

    def put_part(self, name: str, upload_id: str, number: int, part: StoredObject) -> None:
        """Keep a part; a part of the same number is replaced."""
        with self._locked(name) as bucket:
            _upload(bucket, part.key, upload_id).parts[number] = part

    def abort_upload(self, name: str, key: str, upload_id: str) -> None:
        """Forget an upload and its parts."""
        with self._locked(name) as bucket:
            del bucket.uploads[_upload(bucket, key, upload_id).upload_id]

    def complete_upload(
        self, name: str, key: str, upload_id: str, chosen: Sequence[tuple[int, str]], condition: Condition
    ) -> StoredObject:
        """Make one object of the chosen parts (number and ETag) if the condition holds.

        Raises:
            S3Error: The parts are not as uploaded, or the condition does not hold; the upload stays then.
        """
        with self._locked(name) as bucket:
            upload = _upload(bucket, key, upload_id)
            parts = _chosen_parts(upload, chosen)
            condition.check(bucket.objects.get(key))
            digests = b"".join(bytes.fromhex(part.etag) for part in parts)
            etag = f"{hashlib.md5(digests).hexdigest()}-{len(parts)}"
            stored = StoredObject(key, b"".join(part.data for part in parts), etag, now(), upload.headers, {})
            self._write(name, bucket, stored)
            del bucket.uploads[upload_id]
            return stored

    def _write(self, name: str, bucket: _Bucket, stored: StoredObject) -> None:
        if stored.key not in bucket.objects:
            bisect.insort(bucket.sorted_keys, stored.key)
        bucket.objects[stored.key] = stored
        if self._kept is not None:
            self._kept.put(name, stored)

    @contextmanager
    def _locked(self, name: str) -> Iterator[_Bucket]:
        with self._lock:
            if name not in self._buckets:
                raise S3Error(404, "NoSuchBucket", "The specified bucket does not exist")
            yield self._buckets[name]


def now() -> datetime:
    """Return the time as S3 tells it: in UTC, to the second in headers, to the millisecond in lists."""
    return datetime.now(UTC)


def _upload(bucket: _Bucket, key: str, upload_id: str) -> Upload:
    upload = bucket.uploads.get(upload_id)
    if upload is None or upload.key != key:
        raise S3Error(404, "NoSuchUpload", "The specified upload does not exist. It may have been aborted or completed.")
    return upload


def _chosen_parts(upload: Upload, chosen: Sequence[tuple[int, str]]) -> list[StoredObject]:
    numbers = [number for number, _ in chosen]
    if not numbers:
        raise S3Error(400, "MalformedXML", "A completed upload needs at least one part")
    if numbers != sorted(set(numbers)):
        raise S3Error(400, "InvalidPartOrder", "The list of parts was not in ascending order.")
    for number, etag in chosen:
        if number not in upload.parts or not upload.parts[number].matches(etag):
            raise S3Error(400, "InvalidPart", f"Part {number} could not be found, or its ETag is another")
    parts = [upload.parts[number] for number in numbers]
    if any(len(part.data) < _LEAST_PART_BYTES for part in parts[:-1]):
        raise S3Error(400, "EntityTooSmall", "Your proposed upload is smaller than the minimum allowed size")
    return parts
