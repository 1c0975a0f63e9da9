"""Objects kept in a folder, so that a new server finds what another had."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from tests.support.s3.stored import StoredObject


class KeptObjects:
    """One file for each object: a line of JSON that describes it, then the body. Unfinished uploads are not kept."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def load(self) -> Iterator[tuple[str, StoredObject | None]]:
        """Yield every bucket with None, and with each of its objects."""
        for bucket in sorted(self._folder.iterdir()):
            yield bucket.name, None
            for file in bucket.glob("*.object"):
                line, _, data = file.read_bytes().partition(b"\n")
                about = json.loads(line)
                about["modified"] = datetime.fromisoformat(about["modified"])
                yield bucket.name, StoredObject(data=data, **about)

    def create_bucket(self, bucket: str) -> None:
        """Keep a bucket."""
        (self._folder / bucket).mkdir(exist_ok=True)

    def delete_bucket(self, bucket: str) -> None:
        """Forget a bucket, which is empty."""
        (self._folder / bucket).rmdir()

    def put(self, bucket: str, stored: StoredObject) -> None:
        """Keep an object; the file is whole or not there."""
        about = {
            "key": stored.key,
            "etag": stored.etag,
            "modified": stored.modified.isoformat(),
            "headers": dict(stored.headers),
            "checksums": dict(stored.checksums),
        }
        file = self._file(bucket, stored.key)
        unfinished = file.with_suffix(".unfinished")
        unfinished.write_bytes(json.dumps(about).encode() + b"\n" + stored.data)
        os.replace(unfinished, file)

    def delete(self, bucket: str, key: str) -> None:
        """Forget an object."""
        self._file(bucket, key).unlink(missing_ok=True)

    def _file(self, bucket: str, key: str) -> Path:
        # A key may be longer than a file name, and hold anything.
        return self._folder / bucket / f"{hashlib.sha256(key.encode()).hexdigest()}.object"
