"""A bucket that is put back to the same state before each run of actors, and copied to a folder for the oracle."""

from __future__ import annotations

import shutil
from pathlib import Path

import obstore
from obstore.store import S3Store

from tests.support.s3.clients import obstore_options
from tests.support.s3.running import S3Server


class Bucket:
    """A bucket of the tests' S3 server, with a client that knows nothing of Lakebound."""

    def __init__(self, server: S3Server) -> None:
        """Make an empty one."""
        self.server, self.name = server, server.new_bucket("pauses")
        self._store = S3Store(self.name, **obstore_options(server))
        self._saved: dict[str, bytes] = {}

    def save(self) -> None:
        """Take what is there now as the state from which every run starts."""
        self._saved = {key: self._read(key) for key in self._keys()}

    def put_back(self) -> None:
        """Put that state back."""
        gone = [key for key in self._keys() if key not in self._saved]
        if gone:
            obstore.delete(self._store, gone)
        for key, content in self._saved.items():
            obstore.put(self._store, key, content)

    def copy_to(self, folder: Path) -> None:
        """Make a folder the same as the bucket."""
        shutil.rmtree(folder, ignore_errors=True)
        for key in self._keys():
            (folder / key).parent.mkdir(parents=True, exist_ok=True)
            (folder / key).write_bytes(self._read(key))

    def _keys(self) -> list[str]:
        return [one["path"] for part in obstore.list(self._store) for one in part]

    def _read(self, key: str) -> bytes:
        return bytes(obstore.get(self._store, key).bytes())
