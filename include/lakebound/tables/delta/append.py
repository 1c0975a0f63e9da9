"""The text of a commit that appends files to a Delta table, with the ledger's entry and the ``txn`` fence."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass

from deltalake import CommitProperties, Transaction

from lakebound.ledger.entry import ENTRY_KEY, Entry, encode
from lakebound.storage.location import Location
from lakebound.tables.delta.actions import CommitInfo, LogAction, add, commit_text, transaction
from lakebound.tables.table import DataFile


@dataclass(frozen=True)
class Append:
    """What is appended in one commit.

    Attributes:
        files: Each with the JSON of its statistics.
        entry: Entry of the commit.
        number: Version of the fence.
    """

    files: Sequence[tuple[DataFile, str]]
    entry: Entry
    number: int


def append_text(folder: Location, partition_by: Sequence[str], append: Append) -> str:
    """Return the text of the commit.

    It is the same whatever the table's features are: those that ask more of an append are refused before.

    Args:
        folder: Folder of the table.
        partition_by: Its partition columns.
        append: What is appended.
    """
    now_ms = time.time_ns() // 1_000_000
    info = CommitInfo(
        "WRITE",
        now_ms,
        encode(append.entry),
        parameters={"mode": "Append", "partitionBy": json.dumps(list(partition_by))},
        is_blind_append=True,
    )
    added: list[LogAction] = [
        add(file.path.relative_to(folder), file.size_bytes, file.partition, statistics, now_ms, is_new_data=True)
        for file, statistics in append.files
    ]
    return commit_text([info.action(), *added, transaction(ENTRY_KEY, append.number)])


def commit_properties(entry: Entry, number: int) -> CommitProperties:
    """Return what makes deltalake's own commit carry an entry and the fence, and try only once."""
    return CommitProperties(
        custom_metadata={"userMetadata": encode(entry)},
        max_commit_retries=0,
        app_transactions=[Transaction(ENTRY_KEY, number)],
    )
