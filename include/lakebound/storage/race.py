"""Whether a storage keeps its word: that of many who write one file at once, one alone is told that it did.

A server that speaks S3 and ignores ``If-None-Match`` lets two writers commit one version of a table, and one of them is lost.
So the store that a user brings is raced before anything is written to it.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass

from lakebound.storage.location import Location, delete_all
from lakebound.storage.store import FileChangedError

_CREATORS, _CREATE_ROUNDS = 16, 20
_REPLACERS, _REPLACE_ROUNDS = 8, 10


@dataclass(frozen=True)
class RaceResult:
    """How many rounds went wrong.

    Attributes:
        create_rounds: Rounds in which many put a file where none was.
        wrong_creates: Those in which not exactly one was told that it did, or the file is not that one's.
        replace_rounds: Rounds in which many replaced the same file.
        wrong_replaces: Those in which not exactly one was told that it did, or the file is not that one's.
    """

    create_rounds: int
    wrong_creates: int
    replace_rounds: int
    wrong_replaces: int

    @property
    def is_safe(self) -> bool:
        """Whether tables and state may lie there."""
        return not self.wrong_creates and not self.wrong_replaces


def race(folder: Location) -> RaceResult:
    """Race writers for files in a folder, and delete these files.

    Args:
        folder: Where the files are made, under names of their own.

    Raises:
        OSError: The storage does not answer, or refuses.
    """
    tried = folder / f"lakebound-race-{uuid.uuid4().hex}"
    files = [tried / f"{number}" for number in range(_CREATE_ROUNDS)]
    try:
        with ThreadPoolExecutor(_CREATORS) as pool:
            wrong_creates = sum(not _creates_once(file, pool) for file in files)
            wrong_replaces = sum(not _replaces_once(files[0], pool) for _ in range(_REPLACE_ROUNDS))
    finally:
        with suppress(OSError):
            delete_all(files)
    return RaceResult(_CREATE_ROUNDS, wrong_creates, _REPLACE_ROUNDS, wrong_replaces)


def _creates_once(file: Location, pool: ThreadPoolExecutor) -> bool:
    def create(content: bytes) -> None:
        file.put_new(content)

    return _one_wins(file, pool, _CREATORS, create)


def _replaces_once(file: Location, pool: ThreadPoolExecutor) -> bool:
    tag = file.read_tagged().tag

    def replace(content: bytes) -> None:
        file.replace(content, tag)

    return _one_wins(file, pool, _REPLACERS, replace)


def _one_wins(file: Location, pool: ThreadPoolExecutor, writers: int, write: Callable[[bytes], None]) -> bool:
    together = threading.Barrier(writers)

    def attempt(content: bytes) -> bool:
        together.wait(timeout=60)
        try:
            write(content)
        except (FileExistsError, FileChangedError):
            return False
        return True

    contents = [uuid.uuid4().bytes for _ in range(writers)]
    told = list(pool.map(attempt, contents))
    found = file.read()
    # A writer that was not answered may be told that its own file is there; what lies there is then no other's either.
    winners = [content for content, won in zip(contents, told, strict=True) if won]
    return winners == [found] or (not winners and found in contents)
