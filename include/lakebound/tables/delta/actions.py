"""The actions of a Delta commit as its JSON lines. Pure.

Source: https://github.com/delta-io/delta/blob/master/PROTOCOL.md#actions.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version as installed
from typing import Any
from urllib.parse import quote

_UNQUOTED = "!$&'()+,:;=@/"
"""What deltalake, too, leaves as it is in a path; readers decode the rest."""

LogAction = Mapping[str, Any]


@dataclass(frozen=True)
class CommitInfo:
    """What a commit says of itself.

    Attributes:
        operation: Such as WRITE or OPTIMIZE.
        timestamp_ms: Of the commit.
        user_metadata: The ledger's entry; None where it carries none.
        parameters: Of the operation, each as JSON.
        metrics: What it did.
        is_blind_append: Whether it added rows without looking at those that are there.
    """

    operation: str
    timestamp_ms: int
    user_metadata: str | None = None
    parameters: Mapping[str, str] = field(default_factory=dict)
    metrics: Mapping[str, Any] = field(default_factory=dict)
    is_blind_append: bool = False

    def action(self) -> LogAction:
        """Return it as an action."""
        body: dict[str, Any] = {
            "timestamp": self.timestamp_ms,
            "operation": self.operation,
            "operationParameters": dict(self.parameters),
            "isBlindAppend": self.is_blind_append,
            "engineInfo": f"lakebound-{installed('lakebound')}",
        }
        if self.metrics:
            body["operationMetrics"] = dict(self.metrics)
        if self.user_metadata is not None:
            body["userMetadata"] = self.user_metadata
        return {"commitInfo": body}


def add(
    path: str, size_bytes: int, partition: Mapping[str, str | None], stats: str, modified_ms: int, *, is_new_data: bool
) -> LogAction:
    """Return the action that adds a file.

    Args:
        path: Relative to the table's folder, as it lies on the disk.
        size_bytes: Its size.
        partition: Value per partition column.
        stats: Its statistics, as JSON.
        modified_ms: When it was written.
        is_new_data: Whether it brings rows that were not there before, in other files.
    """
    return {
        "add": {
            "path": quote(path, safe=_UNQUOTED),
            "partitionValues": dict(partition),
            "size": size_bytes,
            "modificationTime": modified_ms,
            "dataChange": is_new_data,
            "stats": stats,
        }
    }


def remove(
    path: str, size_bytes: int, partition: Mapping[str, str | None], removed_ms: int, *, changes_data: bool = False
) -> LogAction:
    """Return the action that removes a file whose rows are in other files now.

    Args:
        path: As the log names it.
        size_bytes: Its size.
        partition: Value per partition column.
        removed_ms: When it was removed.
        changes_data: Whether some of its rows are in no other file: they were deleted.
    """
    return {
        "remove": {
            "path": path,
            "deletionTimestamp": removed_ms,
            "dataChange": changes_data,
            "extendedFileMetadata": True,
            "partitionValues": dict(partition),
            "size": size_bytes,
        }
    }


def transaction(app_id: str, version: int) -> LogAction:
    """Return the action that says how far a writer got."""
    return {"txn": {"appId": app_id, "version": version}}


def commit_text(actions: Iterable[LogAction]) -> str:
    """Return a commit's content.

    Characters stand in it as they are. arrow-json 59, by which Rust readers read a log, takes the escapes of a surrogate pair
    for another character where the character lies above U+1FFFF: ``\\ud840\\udc00`` (U+20000) for U+10000.
    """
    return "".join(json.dumps(action, separators=(",", ":"), ensure_ascii=False) + "\n" for action in actions)
