"""A commit put into a Delta log in an object store: a conditional PUT, and what is asked beside it.

A client that gets no answer asks again by itself, and a request may take effect though nobody was told. So whatever the PUT
says but that it was done is found out by reading: the text of a commit holds the commit's own id, and is no other's.

Two round trips lead to what readers see: data files and a look at the version before go side by side, then the commit. A third
one, after it, is for the report alone: a log that was cleaned or put back meanwhile has no reader for the commit.
"""

from __future__ import annotations

from collections.abc import Sequence

from lakebound.errors import CommitRefusedError
from lakebound.storage.location import Location
from lakebound.storage.requests import begin
from lakebound.tables.datafiles import wait_stored
from lakebound.tables.delta.checkpoints import log_names
from lakebound.tables.delta.log import commit_file
from lakebound.tables.delta.past import files_of_commit, missing
from lakebound.tables.delta.tip import Tip, check_new, digest, is_to_be_taken_back
from lakebound.tables.table import DataFile


def put_in_store(folder: Location, tip: Tip, text: str, table: str, files: Sequence[DataFile]) -> Tip:
    """Commit as exactly the version after the tip, and return the new tip.

    Args:
        folder: The table's.
        tip: What the commit follows.
        text: Its content, which no other commit has.
        table: Its name, for the message.
        files: Data files that it adds, whose writing may not have ended.

    Raises:
        CommitRefusedError: The version is taken, a file that it names is not there, or the log is no longer the one that was
            read. Where it was replaced during the commit, the commit may still have been made: the ledger says it.
        OSError: The store did not say whether the commit was made, or does not answer.
    """
    content = text.encode()
    looked = begin(lambda: _check_follows(folder, tip, table))
    try:
        wait_stored(files)
    finally:
        looked.exception()
    looked.result()
    _check_files(folder, text, files, table)
    _put_new(folder, tip, content, table)
    try:
        there = begin(lambda: _check_there(folder, tip, table))
        _check_follows(folder, tip, table, is_made=True)
        there.result()
    except CommitRefusedError:
        if is_to_be_taken_back(folder, tip, content):
            commit_file(folder, tip.version + 1).delete()
        raise
    return Tip(tip.version + 1, digest(content), is_durable=True)


def _put_new(folder: Location, tip: Tip, content: bytes, table: str) -> None:
    own = commit_file(folder, tip.version + 1)
    try:
        own.put_new(content)
    except OSError as exc:
        try:
            found = own.read()
        except OSError:
            raise exc from None  # perhaps not yet there, perhaps never: the ledger says it
        if found != content:
            raise CommitRefusedError(table, f"version {tip.version + 1} is another commit's") from exc


def _check_follows(folder: Location, tip: Tip, table: str, *, is_made: bool = False) -> None:
    """Check that the log ends, or ended, with the tip.

    A clean-up deletes the oldest commits first: while the tip is there, a commit after it has not been deleted.

    Raises:
        CommitRefusedError: It is not so.
    """
    if tip.version < 0:
        check_new(log_names(folder), (0, 1) if is_made else (), table)
        return
    try:
        found = commit_file(folder, tip.version).read()
    except FileNotFoundError as exc:
        raise CommitRefusedError(table, f"its log no longer has version {tip.version}, which the commit follows") from exc
    if digest(found) != tip.digest:
        raise CommitRefusedError(table, f"version {tip.version} is not the one that the commit follows")


def _check_files(folder: Location, text: str, files: Sequence[DataFile], table: str) -> None:
    """Check that what the commit names is in the table's folder; of the files that were just stored, the store has said it.

    Raises:
        CommitRefusedError: A file is not.
    """
    if files:
        return
    gone = missing(folder, files_of_commit(text))
    if gone:
        raise CommitRefusedError(table, f"{len(gone)} of its files are not in {folder}, such as {gone[0]}")


def _check_there(folder: Location, tip: Tip, table: str) -> None:
    """Check that a commit that was just made is there still: who puts a backup back deletes what is newer.

    Raises:
        CommitRefusedError: It is not.
    """
    own = commit_file(folder, tip.version + 1)
    if not own.exists():
        raise CommitRefusedError(
            table, f"its commit {own.name} was deleted at once; somebody restored an older log of the table"
        )
