"""The one step by which a commit gets into a Delta log: its file is put where none is, on top of the version it follows.

No writer may replace a commit (https://github.com/delta-io/delta/blob/master/PROTOCOL.md#delta-log-entries). That alone is not
enough: every name is free below the start of a log that was cleaned, and perhaps in the log of a table that was dropped and
created again, or put back from a backup. So the commit before must be there, and be the one that was read, before the put and
after it: a writer that was suspended in between must not report a commit that no reader sees.

deltalake lists the log's folder at each commit, which costs 5 ms of CPU per 1,000 commits that the log keeps. Who knows the
newest version needs no listing.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from lakebound.durable import make_folder, sync_new
from lakebound.errors import CommitRefusedError
from lakebound.storage.location import Location
from lakebound.tables.delta.log import commit_file
from lakebound.tables.delta.past import files_of_commit, missing
from lakebound.tables.delta.store_put import put_in_store
from lakebound.tables.delta.tip import Tip, check_new, digest, is_to_be_taken_back
from lakebound.tables.table import DataFile


def put(folder: Location, tip: Tip, text: str, table: str, files: Sequence[DataFile] = ()) -> Tip:
    """Commit as exactly the version after the tip, and return the new tip; it is then on the disk, or in the store.

    Args:
        folder: The table's.
        tip: What the commit follows.
        text: Its content.
        table: Its name, for the message.
        files: Data files that it adds and that may not be on the disk, or in the store, yet; others must be.

    Raises:
        CommitRefusedError: The version is taken, a file that it names is not there, or the log is no longer the one that was
            read. Where it was replaced during the commit, the commit may still have been made: the ledger says it.
    """
    if not folder.is_local:
        return put_in_store(folder, tip, text, table, files)
    try:
        sync_new((file.path.path for file in files), folder.path)
    except FileNotFoundError as exc:
        raise CommitRefusedError(table, f"its file {exc.filename} is gone") from exc
    return _put_here(folder, tip, text, table)


def _put_here(folder: Location, tip: Tip, text: str, table: str) -> Tip:
    path = commit_file(folder, tip.version + 1).path
    if tip.version < 0:
        make_folder(path.parent)
    content = text.encode()
    with _opened(path.parent, table) as log:
        _check_follows(log, folder, tip, table)
        _check_files(folder, text, table)
        if tip.version < 0:
            _check_new(log, (), table)
        draft = f"_commit_{uuid.uuid4()}.json.tmp"
        try:
            _write_durably(log, draft, content)
            os.link(draft, path.name, src_dir_fd=log, dst_dir_fd=log)
        except FileExistsError as exc:
            raise CommitRefusedError(table, f"version {tip.version + 1} is another commit's") from exc
        finally:
            _unlink(log, draft)
        os.fsync(log)
        try:
            _check_follows(log, folder, tip, table)
            _check_there(log, path.name, table)
        except CommitRefusedError:
            if _is_at(log, path.parent):
                _take_back(log, folder, tip, content)
            raise
        if tip.version < 0:
            _check_new(log, (0, 1), table)
    return Tip(tip.version + 1, digest(content), is_durable=True)


@contextmanager
def _opened(folder: Path, table: str) -> Iterator[int]:
    """Yield the log's folder itself: whatever lies under its name later, the commit goes into this one."""
    try:
        log = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except FileNotFoundError as exc:
        raise CommitRefusedError(table, f"its folder {folder} is gone") from exc
    try:
        yield log
    finally:
        os.close(log)


def _check_follows(log: int, folder: Location, tip: Tip, table: str) -> None:
    """Check that the log is the one under its name, and ends, or ended, with the tip.

    A clean-up deletes the oldest commits first: while the tip is there, a commit after it has not been deleted.

    Raises:
        CommitRefusedError: It is not so.
    """
    at = (folder / "_delta_log").path
    if not _is_at(log, at):
        raise CommitRefusedError(table, f"another folder is at {at} now")
    if tip.version < 0:
        return
    name = commit_file(folder, tip.version).name
    try:
        before = os.open(name, os.O_RDONLY, dir_fd=log)
    except FileNotFoundError as exc:
        raise CommitRefusedError(table, f"its log no longer has version {tip.version}, which the commit follows") from exc
    with open(before, "rb") as file:
        if digest(file.read()) != tip.digest:
            raise CommitRefusedError(table, f"version {tip.version} is not the one that the commit follows")
        if not tip.is_durable:
            # Somebody else's commit, perhaps not on the disk yet: a later one must not outlast it.
            os.fsync(file.fileno())
            os.fsync(log)


def _check_files(folder: Location, text: str, table: str) -> None:
    """Check that the files that a commit names are in the table's folder, which may have been replaced since they were written.

    Raises:
        CommitRefusedError: One is not.
    """
    gone = missing(folder, files_of_commit(text))
    if gone:
        raise CommitRefusedError(table, f"{len(gone)} of its files are not in {folder}, such as {gone[0]}")


def _check_there(log: int, name: str, table: str) -> None:
    """Check that a commit that was just made is there still: who puts a backup back deletes what is newer.

    Raises:
        CommitRefusedError: It is not.
    """
    try:
        os.stat(name, dir_fd=log)
    except FileNotFoundError as exc:
        raise CommitRefusedError(
            table, f"its commit {name} was deleted at once; somebody restored an older log of the table"
        ) from exc


def _take_back(log: int, folder: Location, tip: Tip, content: bytes) -> None:
    """Delete a commit that does not follow what it was made for: a log with a gap cannot be read by anybody.

    It stays where a checkpoint leads to it, as its predecessor was then cleaned up after it, and where a commit follows it.
    """
    if is_to_be_taken_back(folder, tip, content):
        _unlink(log, commit_file(folder, tip.version + 1).name)
        os.fsync(log)


def _check_new(log: int, expected: Sequence[int], table: str) -> None:
    check_new(os.listdir(log), expected, table)


def _is_at(log: int, folder: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(log), folder.stat())
    except FileNotFoundError:
        return False


def _write_durably(log: int, name: str, content: bytes) -> None:
    with open(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666, dir_fd=log), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _unlink(log: int, name: str) -> None:
    try:
        os.unlink(name, dir_fd=log)
    except FileNotFoundError:
        return
