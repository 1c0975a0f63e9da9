"""A day of all pipelines as values: what is kept of it, and what the page and the message show. A day is one of UTC."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

from pydantic import Field

from lakebound.frozen import FrozenRecord


class TableDay(FrozenRecord):
    """One table.

    Attributes:
        table: ``format:name``.
        commits: With rows.
        rows: Landed by the stream.
        files: How many it had at the last reading of that day; None where its health was not read.
        size_bytes: Of these files.
        files_added: How many more (or, below zero, fewer) than at the last reading before that day; None where there is none.
        bytes_added: The same of the bytes.
    """

    table: str
    commits: int = 0
    rows: int = 0
    files: int | None = None
    size_bytes: int | None = None
    files_added: int | None = None
    bytes_added: int | None = None


class FreshnessDay(FrozenRecord):
    """How old records were when they landed; each counts as old as the oldest one of its batch. None: nothing landed.

    Attributes:
        p50_seconds: Half of the day's records were at most as old.
        p99_seconds: 99 of 100 were.
        worst_hour_at: When the hour with the highest p99 began, in epoch seconds.
        worst_hour_p99_seconds: That p99.
        objective_seconds: What is promised of the p99 of each five minutes; None where nothing is.
    """

    p50_seconds: float | None = None
    p99_seconds: float | None = None
    worst_hour_at: float | None = None
    worst_hour_p99_seconds: float | None = None
    objective_seconds: float | None = None

    @property
    def is_met(self) -> bool | None:
        """Whether the day's p99 is within what is promised; None where nothing is promised, or nothing landed."""
        if self.objective_seconds is None or self.p99_seconds is None:
            return None
        return self.p99_seconds <= self.objective_seconds


class IncidentOfDay(FrozenRecord):
    """One incident; ``at`` is epoch seconds, ``runbook`` a page of include/runbooks."""

    at: float
    kind: str
    what: str
    runbook: str | None = None
    outcome: str = ""


class ProofOfDay(FrozenRecord):
    """What the last proof said when the report was made; ``at`` is epoch seconds."""

    at: float
    ok: bool
    missing: int
    duplicated: int
    is_empty: bool = False


class PipelineDay(FrozenRecord):
    """One pipeline.

    Attributes:
        hours: In how many of the day's hours an application counted something.
        read: Records that were read, the next two among them.
        filtered: Records that gave no row.
        quarantined: Bad records: they went to quarantine.
        lag_records: How many waited in Kafka at the end; None where that is not known.
        busy_seconds: How long its batches took, one after the other.
        cpu_seconds: Of its applications on their machines, starts included; 0 where nobody counted.
        problems: Which files could not be read.
    """

    pipeline: str
    hours: int = 0
    read: int = 0
    filtered: int = 0
    quarantined: int = 0
    lag_records: int | None = None
    busy_seconds: float = 0.0
    cpu_seconds: float = 0.0
    tables: tuple[TableDay, ...] = ()
    freshness: FreshnessDay = FreshnessDay()
    incidents: tuple[IncidentOfDay, ...] = ()
    proof: ProofOfDay | None = None
    problems: tuple[str, ...] = ()

    @property
    def has_figures(self) -> bool:
        """Whether an application counted anything on that day, be it that nothing came."""
        return self.hours > 0

    @property
    def bad_share(self) -> float | None:
        """The part of the records that was bad; None where none was read."""
        return self.quarantined / self.read if self.read else None

    @property
    def cpu_seconds_per_million(self) -> float | None:
        """CPU seconds per million records read; None where either is not known."""
        return self.cpu_seconds / self.read * 1e6 if self.read and self.cpu_seconds else None

    @property
    def rows(self) -> int:
        """Rows landed in all its tables."""
        return sum(table.rows for table in self.tables)


class DayReport(FrozenRecord):
    """One day.

    Attributes:
        day: In UTC.
        made_at: Epoch seconds.
        pipelines: By name.
    """

    day: date
    made_at: float = Field(ge=0)
    pipelines: tuple[PipelineDay, ...] = ()

    @property
    def is_over(self) -> bool:
        """Whether the day was over when the report was made."""
        return self.made_at >= end_of(self.day)

    @property
    def has_figures(self) -> bool:
        """Whether there is anything to tell of that day."""
        return any(one.has_figures or one.incidents for one in self.pipelines)


def start_of(day: date) -> float:
    """Return when a day begins, in epoch seconds."""
    return datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()


def end_of(day: date) -> float:
    """Return when a day ends, in epoch seconds: the first moment of the next one."""
    return start_of(day) + 86_400.0


def day_before(at: float) -> date:
    """Return the last day that is over at a moment (epoch seconds)."""
    return datetime.fromtimestamp(at, UTC).date() - timedelta(days=1)
