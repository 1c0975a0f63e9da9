"""Readings of tables' health over time: lines of ``health.jsonl`` in a pipeline's folder, and the trend that they show."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from pydantic import Field, ValidationError

from lakebound.control.bounds import Count, MomentMs
from lakebound.control.folder import ControlFolder, change_text, read_end
from lakebound.frozen import Frozen, FrozenRecord
from lakebound.operations.maintenance.assessment import TableHealth

KEPT_PER_TABLE = 2000
"""Readings of a table that are kept: six weeks at one each half hour."""

MOST_SHOWN_BYTES = 16 * 1024 * 1024
"""The end of the history, as whoever shows it reads it: all of what is kept of thirty tables."""

DAY_SECONDS = 86_400.0


class HealthReading(FrozenRecord):
    """One reading of one table.

    Attributes:
        table: ``format:name``.
    """

    at_ms: MomentMs
    table: str
    score: float = Field(ge=0, le=100, allow_inf_nan=False)
    files: Count
    small_files: Count
    size_bytes: Count
    manifests: Count = 0
    snapshots: Count = 0
    log_tail_commits: Count = 0
    metadata_bytes: Count = 0


class Trend(Frozen):
    """What changed since an earlier reading.

    Attributes:
        since_ms: When that was.
        files: Files more (or, below zero, fewer) than then.
        score: Points more than then.
    """

    since_ms: int
    files: int
    score: float


def reading_of(health: TableHealth) -> HealthReading:
    """Return the line that is kept of a table's health."""
    return HealthReading(
        at_ms=health.at_ms,
        table=health.table,
        score=health.score,
        files=health.files,
        small_files=health.small_files,
        size_bytes=health.size_bytes,
        manifests=health.metadata.manifests,
        snapshots=health.metadata.snapshots,
        log_tail_commits=health.metadata.log_tail_commits,
        metadata_bytes=health.metadata.metadata_bytes,
    )


def read_health_history(control: ControlFolder) -> list[HealthReading]:
    """Return the readings that are kept, oldest first; a line that cannot be read is left out."""
    return _readings(read_end(control.health_history, MOST_SHOWN_BYTES).decode(errors="replace"))


def _readings(text: str | None) -> list[HealthReading]:
    found = []
    for line in (text or "").splitlines():
        try:
            found.append(HealthReading.model_validate_json(line))
        except ValidationError:
            continue
    return sorted(found, key=lambda reading: reading.at_ms)


def record_health(control: ControlFolder, readings: Iterable[HealthReading], *, kept_per_table: int = KEPT_PER_TABLE) -> None:
    """Add readings to the history, and drop each table's oldest beyond what is kept. Two writers at once lose nothing.

    Args:
        control: State folder of the pipeline.
        readings: New readings, oldest first.
        kept_per_table: How many readings of one table are kept at most.
    """
    new = list(readings)

    def decide(text: str | None) -> str:
        lines, kept = [], Counter[str]()
        for reading in reversed([*_readings(text), *new]):
            kept[reading.table] += 1
            if kept[reading.table] <= kept_per_table:
                lines.append(reading.model_dump_json())
        return "".join(f"{line}\n" for line in reversed(lines))

    change_text(control.health_history, decide, durable=True)


def trend(readings: Sequence[HealthReading], current: HealthReading, window_seconds: float = DAY_SECONDS) -> Trend | None:
    """Return what changed since the newest reading that is at least so old, or else since the oldest.

    Args:
        readings: In any order; those of other tables, and those that are not older than ``current``, do not count.
        current: The reading that is compared.
        window_seconds: How far to look back.

    Returns:
        None where there is no earlier reading of the table.
    """
    earlier = sorted(
        (one for one in readings if one.table == current.table and one.at_ms < current.at_ms), key=lambda one: one.at_ms
    )
    if not earlier:
        return None
    old_enough = [one for one in earlier if one.at_ms <= current.at_ms - window_seconds * 1000]
    base = old_enough[-1] if old_enough else earlier[0]
    return Trend(since_ms=base.at_ms, files=current.files - base.files, score=round(current.score - base.score, 1))
