"""Copies in the quarantine of records that did land, and are not as expected.

Nothing is missing from the tables, so nothing of the ledger changes: a copy is committed with a ``carry`` entry, which adds no
coverage. Its ``_kafka.ordinal`` is negative, -1 less the row's own: by that a proof, a repair and a replay of quarantined
records know that the record itself is where it belongs.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from lakebound.errors import LakeboundError
from lakebound.ledger.entry import Entry, check_owner
from lakebound.tables.commit import commit_entry
from lakebound.tables.guest import retry_as_guest
from lakebound.tables.table import DataFile, Table

_CLOCKS_APART_MS = 10 * 60 * 1000


class NoQuarantineError(LakeboundError):
    """There is no quarantine table into which records could be copied."""

    def __init__(self, table: str) -> None:
        super().__init__(f"table {table} does not exist: the stream creates it at its first start; nothing was copied")


def without_copies(kafka: pa.Table) -> pa.Table:
    """Return the rows that stand for a record which did not land.

    Args:
        kafka: As ``Table.scan_kafka`` gives it.
    """
    return kafka.filter(pc.fill_null(pc.greater_equal(kafka["ordinal"], 0), True))


def has_copies(table: Table, commit: str, since_ms: int) -> bool:
    """Return whether the commit of that id is in the table.

    Args:
        table: The quarantine.
        commit: The UUID.
        since_ms: It cannot have been made before.

    Raises:
        NoQuarantineError: The quarantine table does not exist.
    """
    if not table.exists():
        raise NoQuarantineError(table.spec.id)
    table.read_ledger()
    for committed in table.entries():
        if committed.entry.commit == commit:
            return True
        if committed.committed_at_ms < since_ms - _CLOCKS_APART_MS:
            return False
    return False


def commit_copies(table: Table, pipeline: str, files: Sequence[DataFile], commit: str, *, attempts: int) -> None:
    """Commit copies beside the running stream, as its guest, once: under an id of which the table has no commit.

    Args:
        table: The quarantine.
        pipeline: Who writes it.
        files: They lie in its folder.
        commit: The UUID of the commit.
        attempts: How often to try while the stream commits, too.

    Raises:
        CommitUnknownError: No attempt succeeded.
    """
    rows = sum(file.rows for file in files)
    seen: str | None = None

    def copy() -> None:
        nonlocal seen
        view = table.read_ledger()
        if view.entry is None:
            raise NoQuarantineError(table.spec.id)
        check_owner(view.entry, pipeline, table.spec.id)
        # An attempt whose commit took effect may have ended by an error that says nothing of it: its files would come twice.
        if seen is not None and _is_among_entries_since(table, seen, commit):
            return
        seen = view.version if seen is None else seen
        draft = Entry(kind="carry", pipeline=pipeline, epoch=view.epoch, commit=commit, rows=rows)
        commit_entry(table, view, files, draft, own_epoch=view.epoch, check_lease=lambda: None, attempts=attempts)

    retry_as_guest(copy, what=f"copies in {table.spec.id}", attempts=attempts)


def _is_among_entries_since(table: Table, version: str, commit: str) -> bool:
    for committed in table.entries():
        if committed.entry.commit == commit:
            return True
        if committed.version == version:
            return False
    return False
