"""What maintenance must leave for validation to read: it is a reader of the table, like any other. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from lakebound.inspection.validation.verdict import ValidatedRange
from lakebound.operations.maintenance.history import TablePast

WAITED_FOR_SECONDS = 86_400.0
"""A table that was not validated for longer is waited for no more: its history would grow without end."""

READER = "validation"


def last_validated(history: Iterable[ValidatedRange], now_ms: int) -> dict[str, int]:
    """Return the version up to which each table was validated, of tables that were not long ago.

    Args:
        history: The record, oldest first.
        now_ms: The time.
    """
    last = {one.table: one for one in history}
    since = now_ms / 1000 - WAITED_FOR_SECONDS
    return {table: int(one.last) for table, one in last.items() if one.last.isdigit() and one.at >= since}


def awaiting_validation(past: TablePast | None, validated: int | None) -> TablePast | None:
    """Return the past of a table with validation among its readers; where that version is gone nothing can be kept for it."""
    if past is None or validated not in {version.version for version in past.versions}:
        return past
    return past.model_copy(update={"pins": {**past.pins, READER: validated}})
