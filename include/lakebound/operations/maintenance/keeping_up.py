"""Whether compaction keeps up with what a stream writes, by the readings of the tables' health. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lakebound.operations.maintenance.health_history import HealthReading

MANY_SMALL_FILES = 2000
"""Ten times as many as maintenance leaves alone in a partition that is being written (``hot_min_small_files``)."""
_READINGS = 4
"""One when a run is planned and one at its end: two runs."""


def not_keeping_up(readings: Iterable[HealthReading]) -> list[str]:
    """Return a sentence for each table whose small files become more although maintenance runs.

    Args:
        readings: Of a pipeline's tables, in any order: one when a maintenance run is planned, and one at its end.

    Returns:
        In the order of the tables' ids; empty where compaction keeps up, or where it is not yet known.
    """
    of_tables: dict[str, list[HealthReading]] = {}
    for reading in sorted(readings, key=lambda one: one.at_ms):
        of_tables.setdefault(reading.table, []).append(reading)
    return [_sentence(found) for _, found in sorted(of_tables.items()) if _grows(found[-_READINGS:])]


def _grows(last: Sequence[HealthReading]) -> bool:
    """Whether a table has many small files, and after its last run more than after the one before."""
    if len(last) < _READINGS or last[-1].small_files < MANY_SMALL_FILES:
        return False
    earlier, later = (min(one.small_files for one in part) for part in (last[:2], last[2:]))
    return later > earlier


def _sentence(readings: Sequence[HealthReading]) -> str:
    first, newest = readings[-_READINGS], readings[-1]
    minutes = round((newest.at_ms - first.at_ms) / 60_000)
    return (
        f"compaction does not keep up with {newest.table}: {newest.small_files:,} small files, {minutes} minutes earlier "
        f"{first.small_files:,}. Let maintenance run more often (maintenance.every_commits), or let the stream commit less "
        "often (freshness); docs/how-to/maintenance.md#if-compaction-does-not-keep-up"
    )
