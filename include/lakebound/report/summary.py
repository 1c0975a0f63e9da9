"""From the facts of a day to its report. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from lakebound.control.histogram import Histogram
from lakebound.control.incidents import Incident
from lakebound.control.rollup_book import sum_of
from lakebound.control.rollups import Bucket, Figures, TableFigures
from lakebound.control.summaries import ProofSummary
from lakebound.first_line import first_line
from lakebound.operations.maintenance.health_history import HealthReading
from lakebound.report.facts import DayFacts, PipelineDayFacts
from lakebound.report.model import DayReport, FreshnessDay, IncidentOfDay, PipelineDay, ProofOfDay, TableDay, start_of


def report_of(facts: DayFacts) -> DayReport:
    """Return the report of a day."""
    begins = start_of(facts.day)
    return DayReport(
        day=facts.day, made_at=facts.read_at, pipelines=tuple(_pipeline_day(one, begins) for one in facts.pipelines)
    )


def _pipeline_day(facts: PipelineDayFacts, begins: float) -> PipelineDay:
    figures = sum_of(facts.buckets)
    return PipelineDay(
        pipeline=facts.pipeline,
        hours=len(facts.buckets),
        read=figures.read,
        filtered=figures.filtered,
        quarantined=figures.quarantined,
        lag_records=figures.lag_records,
        busy_seconds=round(sum(lane.total_seconds for lane in figures.batches.values()), 1),
        cpu_seconds=round(figures.cpu_seconds, 1),
        tables=_tables(figures, facts.readings, begins),
        freshness=_freshness(facts.buckets, figures.freshness, facts.objective_seconds),
        incidents=tuple(_incident(incident) for incident in facts.incidents),
        proof=_proof(facts.proof),
        problems=facts.problems,
    )


def _tables(figures: Figures, readings: Iterable[HealthReading], begins: float) -> tuple[TableDay, ...]:
    of_day: dict[str, HealthReading] = {}
    before: dict[str, HealthReading] = {}
    for reading in readings:
        (of_day if reading.at_ms >= begins * 1000 else before)[reading.table] = reading
    names = sorted({*figures.tables, *of_day})
    return tuple(_table(name, figures.tables.get(name, TableFigures()), of_day.get(name), before.get(name)) for name in names)


def _table(name: str, landed: TableFigures, now: HealthReading | None, before: HealthReading | None) -> TableDay:
    if now is None:
        return TableDay(table=name, commits=landed.commits, rows=landed.rows)
    return TableDay(
        table=name,
        commits=landed.commits,
        rows=landed.rows,
        files=now.files,
        size_bytes=now.size_bytes,
        files_added=None if before is None else now.files - before.files,
        bytes_added=None if before is None else now.size_bytes - before.size_bytes,
    )


def _freshness(buckets: Iterable[Bucket], whole: Histogram, objective_seconds: float | None) -> FreshnessDay:
    hours = [(p99, bucket.at) for bucket in buckets if (p99 := bucket.figures.freshness.quantile(0.99)) is not None]
    # Of hours that were as bad, the first one.
    worst_p99, worst_at = max(hours, key=lambda hour: (hour[0], -hour[1]), default=(None, None))
    return FreshnessDay(
        p50_seconds=whole.quantile(0.5),
        p99_seconds=whole.quantile(0.99),
        worst_hour_at=worst_at,
        worst_hour_p99_seconds=worst_p99,
        objective_seconds=objective_seconds,
    )


def _incident(incident: Incident) -> IncidentOfDay:
    runbook = incident.runbook or ("application-dead" if incident.kind == "unclean_end" else None)
    return IncidentOfDay(
        at=incident.at, kind=incident.kind, what=first_line(incident.what), runbook=runbook, outcome=incident.outcome
    )


def _proof(proof: ProofSummary | None) -> ProofOfDay | None:
    if proof is None:
        return None
    return ProofOfDay(at=proof.at, ok=proof.ok, missing=proof.missing, duplicated=proof.duplicated, is_empty=proof.is_empty)
