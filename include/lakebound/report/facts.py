"""Reads what a day's report is made of. A file that cannot be read hides nothing but itself, and is named in the report."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from typing import TypeVar

from lakebound.control.applications import pipelines_with_state
from lakebound.control.folder import ControlFolder, files_in, read_json
from lakebound.control.incidents import Incident
from lakebound.control.rollup_files import read_buckets
from lakebound.control.rollups import HOUR, Bucket
from lakebound.control.summaries import ProofSummary, read_proof
from lakebound.operations.maintenance.health_history import HealthReading, read_health_history
from lakebound.report.model import end_of, start_of
from lakebound.settings import Settings
from lakebound.spec.load import load_pipelines

T = TypeVar("T")


@dataclass(frozen=True)
class PipelineDayFacts:
    """One pipeline.

    Attributes:
        objective_seconds: The promised p99 of its freshness, as its YAML says now.
        buckets: Hours of the day, oldest first; those without an application lack.
        incidents: Of the day, oldest first.
        readings: Of its tables' health, until the end of the day, oldest first.
        proof: The last one of all, whenever it was.
        problems: Which files could not be read.
    """

    pipeline: str
    objective_seconds: float | None = None
    buckets: tuple[Bucket, ...] = ()
    incidents: tuple[Incident, ...] = ()
    readings: tuple[HealthReading, ...] = ()
    proof: ProofSummary | None = None
    problems: tuple[str, ...] = ()


@dataclass(frozen=True)
class DayFacts:
    """What the state has of a day; ``read_at`` is epoch seconds."""

    day: date
    read_at: float
    pipelines: tuple[PipelineDayFacts, ...]


def read_day(settings: Settings, day: date, now: float) -> DayFacts:
    """Return what the state has of a day: of the pipelines that YAML declares, and of others that did something on it.

    Args:
        settings: Of this machine.
        day: In UTC.
        now: Epoch seconds.
    """
    specs = load_pipelines(settings).specs
    folders = {folder.pipeline: folder for folder in pipelines_with_state(settings)}
    found = []
    for name in sorted({*specs, *folders}):
        objective = specs[name].objectives.freshness_p99_seconds if name in specs else None
        facts = _read(folders.get(name, ControlFolder(settings.home, name)), day, objective)
        if name in specs or facts.buckets or facts.incidents:
            found.append(facts)
    return DayFacts(day, now, tuple(found))


def _read(control: ControlFolder, day: date, objective_seconds: float | None) -> PipelineDayFacts:
    begins, ends = start_of(day), end_of(day)
    problems: list[str] = []

    def tried(what: str, read: Callable[[], list[T]]) -> list[T]:
        try:
            return read()
        except (OSError, ValueError) as exc:
            # The class alone: the text of a validation error may hold what a file says.
            problems.append(f"{what} cannot be read: {type(exc).__name__}")
            return []

    buckets = tried("the rollups", lambda: read_buckets(control, HOUR, begins))
    readings = tried("the history of the tables' health", lambda: read_health_history(control))
    incidents = [
        incident
        for file in files_in(control.incidents, f"{day:%Y%m%d}T*.json")
        for incident in tried(f"incidents/{file.name}", lambda file=file: [Incident.model_validate(read_json(file))])  # type: ignore[misc]
    ]
    return PipelineDayFacts(
        pipeline=control.pipeline,
        objective_seconds=objective_seconds,
        buckets=tuple(bucket for bucket in buckets if bucket.at < ends),
        incidents=tuple(incidents),
        readings=tuple(reading for reading in readings if reading.at_ms < ends * 1000),
        proof=read_proof(control),
        problems=tuple(problems),
    )
