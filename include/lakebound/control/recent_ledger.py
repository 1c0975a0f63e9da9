"""The newest batches and the offsets that all tables hold, as the application last wrote them down: small, and for looking at.

The ledger itself is in the tables. Whoever shows a pipeline reads this file, and opens no table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from pydantic import TypeAdapter

from lakebound.control.bounds import Count, Moment
from lakebound.control.folder import ControlFolder, read_bytes, write_text
from lakebound.ledger.intervals import Interval

MOST_BATCHES = 200
MOST_PARTITIONS = 64
"""Of one batch's ranges."""
MOST_COVERED_PARTITIONS = 1000
MOST_INTERVALS = 20
"""Of one partition's coverage: the last ones."""
MAX_BYTES = 256 * 1024
"""Of the batches in the file: where they have many partitions, fewer of them are kept."""

Ranges = Mapping[str, Mapping[Count, tuple[tuple[Count, Count], ...]]]
"""Half-open intervals of offsets by topic and partition."""


@dataclass(frozen=True, slots=True)
class TableCommit:
    """What a batch committed to a table: its version (a snapshot's id in Iceberg) afterwards, and the rows."""

    version: str
    rows: Count = 0


@dataclass(frozen=True, slots=True)
class LandedBatch:
    """One batch.

    Attributes:
        at: When it had landed, in epoch seconds.
        epoch: Of the application.
        batch: Its number in its application's query.
        ranges: What it read; of at most 64 partitions.
        partitions: Of how many partitions it read.
        read: Records, the next two among them.
        filtered: Records that gave no row.
        quarantined: Records that went to quarantine.
        reasons: The same by reason: words and names of columns, nothing that stands in a record.
        lane: Who wrote its files.
        seconds: How long it took.
        tables: What was committed, by table id. A table without rows gets its entry later.
    """

    at: Moment
    epoch: Count
    batch: Count
    ranges: Ranges
    partitions: Count
    read: Count = 0
    filtered: Count = 0
    quarantined: Count = 0
    reasons: Mapping[str, Count] = field(default_factory=dict)
    lane: str | None = None
    seconds: Moment = 0.0
    tables: Mapping[str, TableCommit] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RecentLedger:
    """The whole file.

    Attributes:
        written_at: Epoch seconds.
        coverage: What every table holds, read without rows included.
        batches: Oldest first; those of applications before, too.
    """

    written_at: Moment = 0.0
    coverage: Ranges = field(default_factory=dict)
    batches: tuple[LandedBatch, ...] = ()


_json = TypeAdapter(RecentLedger)
_batch_json = TypeAdapter(LandedBatch)


def read_recent_ledger(control: ControlFolder) -> RecentLedger | None:
    """Return what was written last; None where nothing was.

    Raises:
        ValueError: It cannot be read.
        OSError: The file is there and cannot be read.
    """
    try:
        return _json.validate_json(read_bytes(control.recent_ledger))
    except FileNotFoundError:
        return None


def write_recent_ledger(control: ControlFolder, ledger: RecentLedger) -> None:
    """Replace the file; it is not synced.

    Raises:
        OSError: The disk does not take it; the file is as it was.
    """
    bounded = replace(ledger, coverage=_bounded_coverage(ledger.coverage), batches=_newest(ledger.batches))
    write_text(control.recent_ledger, _json.dump_json(bounded, exclude_defaults=True).decode())


def bounded_ranges(ranges: Ranges, most: int = MOST_PARTITIONS) -> Ranges:
    """Return the ranges of the first partitions.

    Args:
        ranges: Of any number.
        most: How many partitions at most.
    """
    left, found = most, dict[str, Mapping[int, tuple[Interval, ...]]]()
    for topic, partitions in sorted(ranges.items()):
        if left <= 0:
            break
        found[topic] = dict(sorted(partitions.items())[:left])
        left -= len(partitions)
    return found


def _bounded_coverage(coverage: Ranges) -> Ranges:
    bounded = bounded_ranges(coverage, MOST_COVERED_PARTITIONS)
    return {
        topic: {partition: intervals[-MOST_INTERVALS:] for partition, intervals in held.items()}
        for topic, held in bounded.items()
    }


def _newest(batches: Iterable[LandedBatch]) -> tuple[LandedBatch, ...]:
    kept: list[LandedBatch] = []
    left = MAX_BYTES
    for batch in reversed([*batches][-MOST_BATCHES:]):
        left -= len(_batch_json.dump_json(batch, exclude_defaults=True))
        if left < 0:
            break
        kept.append(batch)
    return tuple(reversed(kept))
