"""A Delta table's history: the JSON commits of its log, of which only the beginnings are read, from the newest on."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any
from urllib.parse import unquote

from lakebound.errors import TableRestoredError
from lakebound.ledger.entry import Entry, carried
from lakebound.spec.table import TableSpec
from lakebound.storage.location import Location, location_of
from lakebound.storage.requests import ahead
from lakebound.tables.delta.checkpoints import DeltaLogFile, list_log
from lakebound.tables.delta.log import commit_file, commit_lines, moment_ms
from lakebound.tables.entries import counting
from lakebound.tables.history import CommittedFile, History, Operation, TableCommit
from lakebound.tables.places import Places
from lakebound.tables.table import CommittedEntry

_HEAD_BYTES = 64 * 1024
_OPERATIONS: Mapping[str, Operation] = {
    "WRITE": "append",
    "STREAMING UPDATE": "append",
    "OPTIMIZE": "replace",
    "DELETE": "overwrite",
    "UPDATE": "overwrite",
    "MERGE": "overwrite",
    "RESTORE": "restore",
}
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:/")


class DeltaHistory(History):
    """Down to the first commit that is not kept.

    Args:
        folder: The table's.
        newest: The newest version that counts; None without one.
        files: Of the log, as listed; empty: it was not listed, and ends where a commit is not there.
    """

    def __init__(self, folder: Location, newest: int | None, files: tuple[DeltaLogFile, ...] = ()) -> None:
        self._folder = folder
        self._newest = newest
        self._kept = frozenset(file.version for file in files if file.is_commit)
        self.files = files

    @property
    def current(self) -> str | None:
        """The newest version."""
        return None if self._newest is None else str(self._newest)

    def commits(self) -> Iterator[TableCommit]:
        """Yield the commits from the newest down."""
        return self._down_from(self._newest)

    def ancestry(self, version: str | None = None) -> Iterator[TableCommit]:
        """Yield commits from one down; a restore is followed by the version that it brought back."""
        return self._walk(self._newest if version is None else int(version), lambda restore: True)

    def entries(self, version: str | None = None) -> Iterator[CommittedEntry]:
        """Yield the entries from a version down.

        A reset that restored a version is followed by the entries of that version, not by those of what it undid: the rows of
        these are gone, and others may have been landed for the same offsets. A restore without an entry, by hand, undoes none:
        who mends the table must know the highest epoch.
        """
        newest = self._newest if version is None else int(version)
        for commit in self._walk(newest, lambda restore: restore.entry is not None):
            if commit.entry is not None:
                yield CommittedEntry(commit.version, commit.committed_at_ms, commit.entry)

    def added(self, version: str) -> Iterator[CommittedFile]:
        """Yield the files of the commit's ``add`` actions that change data."""
        try:
            text = commit_file(self._folder, int(version)).read().decode()
        except FileNotFoundError:
            return
        for line in commit_lines(text):
            # Some writers name every action in each line, the others as null.
            add = json.loads(line).get("add") if '"add"' in line else None
            if isinstance(add, dict) and add.get("dataChange", True):
                path, partition = file_named(self._folder, str(add["path"])), dict(add.get("partitionValues") or {})
                yield CommittedFile(path, _rows(add.get("stats")), partition)

    def _walk(self, newest: int | None, is_followed: Callable[[TableCommit], bool]) -> Iterator[TableCommit]:
        at = newest
        while at is not None:
            start, at = at, None
            for commit in self._down_from(start):
                yield commit
                if commit.operation == "restore" and commit.parent_number is not None and is_followed(commit):
                    at = commit.parent_number
                    break

    def _down_from(self, newest: int | None) -> Iterator[TableCommit]:
        for number, head in _heads(self._folder, self._numbers(newest)):
            yield commit_of(number, head, str(commit_file(self._folder, number)))

    def _numbers(self, newest: int | None) -> Iterator[int]:
        for number in range(-1 if newest is None else newest, -1, -1):
            if self._kept and number not in self._kept:
                return
            yield number


def read_history(spec: TableSpec, places: Places) -> DeltaHistory | None:
    """Return the history of a table by a list of its log; None where there is none."""
    folder = places.folder(spec)
    try:
        files = list_log(folder)
    except (FileNotFoundError, NotADirectoryError):
        return None
    newest = max((file.version for file in files if file.is_commit), default=None)
    return DeltaHistory(folder, newest, files) if files else None


def counting_entry(folder: Location, version: int, table: str) -> CommittedEntry | None:
    """Return the entry that counts, or None where the log holds none.

    Args:
        folder: Folder of the table.
        version: Newest version of the log that is looked at.
        table: Id of the table, for the message.

    Raises:
        TableRestoredError: The table was restored, without an entry, after the entry that would count.
    """
    history = DeltaHistory(folder, version)
    found = counting(history.entries())
    # Those after it: it has just been read, and of a store each commit is a request.
    newer = None if found is None else version - int(found.version)
    for commit in islice(history.commits(), newer):
        if commit.operation == "restore" and commit.entry is None:
            raise TableRestoredError(table, commit.number, commit.parent_number)
    return found


def carried_at(folder: Location, version: int, table: str) -> Entry | None:
    """Return the entry that counts at a version, as the commit after that version carries it on; None where there is none.

    Args:
        folder: Folder of the table.
        version: The version that the commit follows.
        table: Id of the table, for the message.

    Raises:
        TableRestoredError: As ``counting_entry`` says.
    """
    found = counting_entry(folder, version, table)
    return None if found is None else carried(found.entry)


def commit_of(number: int, info: Mapping[str, Any], where: str) -> TableCommit:
    """Return a commit by its ``commitInfo``, in which a writer may put anything. Pure.

    Args:
        number: Its version.
        info: The body of the action; empty where the commit has none.
        where: Its file.
    """
    operation, text, parent = _operation(info), info.get("userMetadata"), number - 1 if number else None
    if operation == "restore":
        parent = _restored_to(info, number)
    return TableCommit(
        version=str(number),
        number=number,
        parent=None if parent is None else str(parent),
        parent_number=parent,
        committed_at_ms=moment_ms(info),
        operation=operation,
        text=text if isinstance(text, str) else None,
        where=where,
    )


def file_named(folder: Location, text: str) -> Location:
    """Return the file that a Delta log names: by a URI, below the table's folder where it has no scheme."""
    path = unquote(text)
    return location_of(path, folder.store) if _SCHEME.match(path) else folder / path


def _heads(folder: Location, numbers: Iterator[int]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield what commits say of themselves, down to the first that is not there; of a store, several are asked for ahead."""

    def read(number: int) -> tuple[int, Mapping[str, Any]] | None:
        try:
            return number, _commit_info(commit_file(folder, number))
        except FileNotFoundError:
            return None

    for found in map(read, numbers) if folder.is_local else ahead(read, numbers):
        if found is None:
            return
        yield found


def _commit_info(file: Location) -> Mapping[str, Any]:
    """Return the ``commitInfo`` of a commit; of a file of this machine only the beginning is read where that has it."""
    if file.is_local:
        with file.path.open("rb") as opened:
            line, ends, _ = opened.read(_HEAD_BYTES).partition(b"\n")
        if ends and (found := _info_in(line.decode(errors="replace"))) is not None:
            return found
    lines = commit_lines(file.read().decode())
    return next((found for line in lines if (found := _info_in(line)) is not None), {})


def _info_in(line: str) -> Mapping[str, Any] | None:
    if '"commitInfo"' not in line[:64]:
        return None
    body = json.loads(line)
    found = body.get("commitInfo") if isinstance(body, dict) else None
    return found if isinstance(found, dict) else None


def _operation(info: Mapping[str, Any]) -> Operation:
    name, parameters = info.get("operation"), info.get("operationParameters")
    if name == "WRITE" and isinstance(parameters, dict) and parameters.get("mode") == "Overwrite":
        return "overwrite"
    return _OPERATIONS.get(name, "other") if isinstance(name, str) else "other"


def _restored_to(info: Mapping[str, Any], number: int) -> int | None:
    """Return the version that a restore brought back; None where it names a time instead."""
    parameters = info.get("operationParameters")
    version = str(parameters.get("version", "")) if isinstance(parameters, dict) else ""
    return int(version) if version.isdigit() and int(version) < number else None


def _rows(statistics: object) -> int | None:
    if not isinstance(statistics, str):
        return None
    found = json.loads(statistics).get("numRecords")
    return int(found) if found is not None else None
