"""The hours of a commit's rows, as an entry tells them. Pure.

An hour is its number since 1970-01-01T00:00Z. Hours are told as half-open intervals: a backlog of a week is one of them.
"""

from __future__ import annotations

from collections.abc import Iterable

from lakebound.frozen import FrozenRecord
from lakebound.ledger.intervals import Intervals, merge

HOUR_MS = 3_600_000
REMEMBERED_HOURS = 2_500
"""Rows that are older when they land, by some 100 days, touch no hour: nobody still waits for an event of it."""
_MOST_INTERVALS = 200


class RowHours(FrozenRecord):
    """To which hours the rows of a commit belong.

    Attributes:
        column: The column that says so.
        intervals: Hours, as merged half-open intervals; it may name an hour too many, never one too few.
    """

    column: str
    intervals: tuple[tuple[int, int], ...] = ()


def row_hours(column: str, hours: Iterable[int], now_ms: int) -> RowHours:
    """Return what an entry tells of these hours.

    Hours that lie ahead are left out: they are announced when they are over, whatever landed of them. So an entry is small
    whatever stands in the column.

    Args:
        column: The column that gave the hours.
        hours: Those of the commit's rows.
        now_ms: Time of the commit, in epoch milliseconds.
    """
    present = now_ms // HOUR_MS
    near = sorted(hour for hour in hours if present - REMEMBERED_HOURS <= hour <= present + 1)
    intervals = merge((hour, hour + 1) for hour in near)
    if len(intervals) > _MOST_INTERVALS:
        older, newer = intervals[:-_MOST_INTERVALS], intervals[-_MOST_INTERVALS:]
        intervals = ((older[0][0], older[-1][1]), *newer)
    return RowHours(column=column, intervals=intervals)


def hours_between(intervals: Intervals) -> set[int]:
    """Return the hours of intervals."""
    return {hour for start, end in intervals for hour in range(start, end)}
