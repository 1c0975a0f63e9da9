"""What a table's ledger says of its hours, by one walk over its newest entries: version, offsets and hours belong together."""

from __future__ import annotations

from collections.abc import Iterable

from lakebound.control.complete_hours import TableHours, TableSight
from lakebound.ledger.entry import Entry, count, high_water_marks
from lakebound.ledger.hours import HOUR_MS, REMEMBERED_HOURS, hours_between
from lakebound.ledger.intervals import gaps
from lakebound.spec.pipeline import KAFKA_TIMESTAMP
from lakebound.tables.table import CommittedEntry


def sight_of(entries: Iterable[CommittedEntry], known: TableHours | None, column: str) -> TableSight | None:
    """Return what a look at a table found; None while nobody has opened it.

    Args:
        entries: The table's, newest first; read as far back as needed.
        known: What was known before; None at the first look, which asks for no rows.
        column: The column that gives a row its hour.
    """
    newest: CommittedEntry | None = None
    counts: CommittedEntry | None = None
    touched: set[int] | None = set()
    is_known, is_put_back = known is None, False
    for committed in entries:
        newest = newest or committed
        if committed.entry.kind != "carry":
            counts = counts or committed
        is_known = is_known or (known is not None and committed.entry.commit == known.commit)
        if is_known and counts is not None:
            break
        is_put_back = is_put_back or (not is_known and committed.entry.kind == "reset")
        if not is_known and touched is not None:
            hours = hours_of(committed.entry, column)
            touched = None if hours is None else touched | hours
    counts = counts or newest
    if newest is None or counts is None:
        return None
    coverage = counts.entry.coverage
    return TableSight(
        version=newest.version,
        reached=high_water_marks(coverage),
        topic_ids={topic: offsets.topic_id for topic, offsets in coverage.items()},
        commit=newest.entry.commit,
        landed=count(coverage) + counts.entry.released,
        touched=frozenset(touched) if touched is not None and is_known else None,
        is_put_back=is_put_back and not is_known,
        gaps={
            topic: {partition: gaps(held) for partition, held in offsets.partitions.items()}
            for topic, offsets in coverage.items()
        },
    )


def hours_of(entry: Entry, column: str) -> set[int] | None:
    """Return the hours of a commit's rows, and of those that a redo took out, perhaps some more; None where they are not said.

    An entry that was written before the pipeline had complete hours has at least Kafka's earliest and latest timestamp.

    Args:
        entry: Of the commit.
        column: The column that gives a row its hour.
    """
    if not entry.rows and not (entry.kind == "redo" and entry.erases):
        return set()
    if entry.hours is not None:
        return hours_between(entry.hours.intervals) if entry.hours.column == column else None
    if column != KAFKA_TIMESTAMP or entry.timestamps_ms is None:
        return None
    first, last = (moment_ms // HOUR_MS for moment_ms in entry.timestamps_ms)
    return set(range(max(first, last - REMEMBERED_HOURS), last + 1))
