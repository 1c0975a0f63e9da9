"""Rows of which each belongs to an hour of its own, landed with entries that say so. Offset n is of the hour n of the world."""

from __future__ import annotations

from lakebound.ledger.entry import Entry, new_commit_id
from lakebound.ledger.hours import HOUR_MS, row_hours
from lakebound.tables.commit import commit_entry
from lakebound.tables.datafiles import write_data_files
from tests.support.tables.local_tables import FIRST_DAY_US, PIPELINE, Lander, offsets, rows

BEGIN_MS = FIRST_DAY_US // 1000
"""Where the world's hour 0 begins."""


def land_hours(app: Lander, start: int, end: int, now_ms: int, *, partition: int = 0, kind: str = "land") -> str:
    """Land offsets as an application does, and return the table's version then.

    Args:
        app: The table, and the ledger as it was last seen.
        start: First offset.
        end: The offset after the last.
        now_ms: Time of the commit.
        partition: Of these offsets.
        kind: Of the entry.
    """
    hours = row_hours("at", [BEGIN_MS // HOUR_MS + offset for offset in range(start, end)], now_ms)
    body = {"kind": kind, "pipeline": PIPELINE, "epoch": app.epoch, "commit": new_commit_id(), "hours": hours}
    count = end - start
    entry = Entry.model_validate(
        {**body, "range": offsets(start, end, partition), "read": count, "landed": count, "rows": count, "lane": "driver"}
    )
    files = write_data_files(rows(start, end, partition), app.table.layout(), f"batch-{partition}-{start}")
    committed = commit_entry(
        app.table, app.view, files, entry, own_epoch=app.epoch, check_lease=lambda: None, attempts=app.attempts
    )
    app.view = committed.view
    return committed.version
