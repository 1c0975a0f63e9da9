"""What of each partition is landed, missing or waiting, from what the application wrote down. No table is opened."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lakebound.control.folder import ControlFolder
from lakebound.control.progress import Progress
from lakebound.control.recent_ledger import RecentLedger, read_recent_ledger
from lakebound.first_line import first_line
from lakebound.ledger.intervals import Interval, gaps


@dataclass(frozen=True)
class CoverageRow:
    """One partition. Intervals are half open.

    Attributes:
        landed: What all tables hold, the last intervals of it; empty where it is not known.
        missing: The holes between them.
        bad: What those of the newest batches read that had records for the quarantine.
        next_offset: To land; None where it is not known.
        end_offset: Kafka's, when the application last asked, or what it has landed since; None where it is not known.
    """

    topic: str
    partition: int
    landed: tuple[Interval, ...] = ()
    missing: tuple[Interval, ...] = ()
    bad: tuple[Interval, ...] = ()
    next_offset: int | None = None
    end_offset: int | None = None

    @property
    def lag(self) -> int | None:
        """How many offsets wait; None where that is not known."""
        if self.next_offset is None or self.end_offset is None:
            return None
        return max(0, self.end_offset - self.next_offset)


def read_ledger(control: ControlFolder) -> tuple[RecentLedger, list[str]]:
    """Return what the application wrote down of its ledger, and what could not be read of it.

    Args:
        control: State folder of the pipeline.
    """
    try:
        return read_recent_ledger(control) or RecentLedger(), []
    except (OSError, ValueError) as exc:
        return RecentLedger(), [f"{control.recent_ledger} cannot be read: {first_line(exc)}"]


def coverage_rows(ledger: RecentLedger, progress: Progress | None) -> list[CoverageRow]:
    """Return a row per partition that the application knows. Pure.

    Args:
        ledger: What it wrote down every ten seconds.
        progress: What it wrote each second: next offsets and Kafka's ends.
    """
    marks = progress.high_water_marks if progress is not None else {}
    ends = progress.latest_offsets if progress is not None else {}
    rows = []
    for topic in sorted({*marks, *ends, *ledger.coverage}):
        own, kafka, held = marks.get(topic, {}), ends.get(topic, {}), ledger.coverage.get(topic, {})
        for partition in sorted({*own, *kafka, *held}):
            landed = held.get(partition, ())
            next_offset = own.get(partition, landed[-1][1] if landed else None)
            rows.append(
                CoverageRow(
                    topic,
                    partition,
                    landed=landed,
                    missing=gaps(landed),
                    bad=tuple(_bad(ledger, topic, partition)),
                    next_offset=next_offset,
                    end_offset=_known_end(kafka.get(partition), next_offset),
                )
            )
    return rows


def _bad(ledger: RecentLedger, topic: str, partition: int) -> Iterator[Interval]:
    for batch in ledger.batches:
        if batch.quarantined:
            yield from batch.ranges.get(topic, {}).get(partition, ())


def _known_end(asked: int | None, next_offset: int | None) -> int | None:
    """Return Kafka's end: it was asked for less often than batches are landed, and what is landed was before the end."""
    return asked if asked is None or next_offset is None else max(asked, next_offset)
