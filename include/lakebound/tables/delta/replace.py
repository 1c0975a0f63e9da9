"""A commit that replaces files of a Delta table by others with the same rows, on top of a version later than the planned one.

What was live in the planned version is live still where no commit since has removed it. So only those commits are read: beside
the handle's state in memory, which is as old as its last reading of the ledger, and without listing the log.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

from lakebound.ledger.entry import Entry, encode
from lakebound.storage.location import Location
from lakebound.tables.delta.actions import CommitInfo, LogAction, add, commit_text, remove
from lakebound.tables.delta.log import commit_file, commit_lines
from lakebound.tables.delta.tip import Tip, digest
from lakebound.tables.prepared import DeltaReplacement, StalePreparedError

_MOST_COMMITS_SINCE = 500
"""To read one takes some 30 µs, and the stream's records wait meanwhile."""

_OF_THE_TABLE = ("metaData", "protocol")


def check_replaceable(folder: Location, prepared: DeltaReplacement, tip: Tip, table: str) -> None:
    """Check that all files that go are live in the version of the tip, and that the table's columns are what they were.

    Args:
        folder: The table's.
        prepared: What is to be committed.
        tip: The newest version.
        table: Id of the table, for the message.

    Raises:
        StalePreparedError: It is not so, or too much was committed since to be looked through.
    """
    since = tip.version - prepared.version
    if not 0 <= since <= _MOST_COMMITS_SINCE:
        raise StalePreparedError(table, f"it was prepared for version {prepared.version}, and the newest is {tip.version}")
    try:
        planned = commit_file(folder, prepared.version).read()
        if digest(planned).hex() != prepared.digest:
            raise StalePreparedError(table, f"version {prepared.version} is another one than it was prepared for")
        gone = {file.path for file in prepared.removed}
        for action in _actions(folder, prepared.version + 1, tip.version):
            if action.get("remove", {}).get("path") in gone:
                raise StalePreparedError(table, f"{action['remove']['path']} was removed meanwhile")
            if any(name in action for name in _OF_THE_TABLE):
                raise StalePreparedError(table, "the table's columns or properties were changed meanwhile")
    except FileNotFoundError as exc:
        raise StalePreparedError(table, f"its log no longer has {exc.filename}") from exc


def replacement_text(prepared: DeltaReplacement, entry: Entry) -> str:
    """Return the content of the commit.

    Args:
        prepared: What is committed.
        entry: Entry that it carries on.
    """
    now_ms = int(time.time() * 1000)
    info = CommitInfo(prepared.operation, now_ms, encode(entry), prepared.parameters, prepared.metrics)
    added: list[LogAction] = [
        add(file.name, file.size_bytes, file.partition, file.stats, now_ms, is_new_data=prepared.changes_data)
        for file in prepared.added
    ]
    removed = [
        remove(file.path, file.size_bytes, file.partition, now_ms, changes_data=prepared.changes_data)
        for file in prepared.removed
    ]
    return commit_text([info.action(), *added, *removed])


def _actions(folder: Location, first: int, last: int) -> Iterator[dict[str, dict[str, str]]]:
    for version in range(first, last + 1):
        text = commit_file(folder, version).read().decode()
        # An append says neither: it need not be parsed.
        if any(f'"{name}"' in text for name in ("remove", *_OF_THE_TABLE)):
            yield from (json.loads(line) for line in commit_lines(text))
