"""The text of a commit that appends files to a Delta table, with the ledger's entry and the ``txn`` fence."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass

from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.transaction import AddAction

from lakebound.ledger.entry import ENTRY_KEY, Entry, encode
from lakebound.storage.location import Location
from lakebound.tables.delta.actions import CommitInfo, LogAction, add, commit_text, transaction
from lakebound.tables.delta.draft import NO_HOOKS, draft_commit
from lakebound.tables.table import DataFile

_PLAIN_READER, _PLAIN_WRITER = 1, 2


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


def append_text(folder: Location, handle: DeltaTable, version: int, append: Append) -> str:
    """Return the text of the commit that comes after a version.

    Args:
        folder: Folder of the table.
        handle: The table; its protocol and partitioning are those of the version.
        version: The newest version.
        append: What is appended.
    """
    partition_by = handle.metadata().partition_columns
    return _plain_text(folder, partition_by, append) if _is_plain(handle) else _draft(folder, version, append)


def commit_properties(entry: Entry, number: int) -> CommitProperties:
    """Return what makes deltalake's own commit carry an entry and the fence, and try only once."""
    return CommitProperties(
        custom_metadata={"userMetadata": encode(entry)},
        max_commit_retries=0,
        app_transactions=[Transaction(ENTRY_KEY, number)],
    )


def _is_plain(handle: DeltaTable) -> bool:
    """Whether the table asks nothing of its writers but what every Delta log is made of."""
    protocol = handle.protocol()
    return bool(protocol.min_reader_version <= _PLAIN_READER and protocol.min_writer_version <= _PLAIN_WRITER)


def _plain_text(folder: Location, partition_by: list[str], append: Append) -> str:
    now_ms = time.time_ns() // 1_000_000
    info = CommitInfo(
        "WRITE",
        now_ms,
        encode(append.entry),
        parameters={"mode": "Append", "partitionBy": json.dumps(partition_by)},
        is_blind_append=True,
    )
    added: list[LogAction] = [
        add(file.path.relative_to(folder), file.size_bytes, file.partition, statistics, now_ms, is_new_data=True)
        for file, statistics in append.files
    ]
    return commit_text([info.action(), *added, transaction(ENTRY_KEY, append.number)])


def _draft(folder: Location, version: int, append: Append) -> str:
    """Return what deltalake appends to a table that asks more of its writers than the first protocol does."""

    def write(scratch: DeltaTable) -> None:
        scratch.create_write_transaction(
            [_add_action(folder, file, statistics) for file, statistics in append.files],
            "append",
            scratch.schema(),
            scratch.metadata().partition_columns,
            commit_properties=commit_properties(append.entry, append.number),
            post_commithook_properties=NO_HOOKS,
        )

    return draft_commit(folder, version, write)


def _add_action(folder: Location, file: DataFile, statistics: str) -> AddAction:
    return AddAction(
        path=file.path.relative_to(folder),  # deltalake itself encodes it as a URI
        size=file.size_bytes,
        partition_values=dict(file.partition),
        modification_time=int(time.time() * 1000),
        data_change=True,
        stats=statistics,
    )
