"""What the page of one table shows, from small files of the state: no table is opened."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from lakebound.control.folder import ControlFolder
from lakebound.control.progress import TableProgress, readable_progress
from lakebound.control.table_history import Histories, TableHistory, read_table_history
from lakebound.first_line import first_line
from lakebound.inspection.validation.history import read_newest
from lakebound.inspection.validation.verdict import ValidatedRange
from lakebound.operations.maintenance.health_history import HealthReading, Trend, read_health_history
from lakebound.operations.maintenance.run_times import PastStep, read_newest_steps
from lakebound.spec.pipeline import PipelineSpec
from lakebound_airflow.page.quality import LastResult, last_results, newest_readings

T = TypeVar("T")

MOST_STEPS = 50


@dataclass(frozen=True)
class TableView:
    """One table.

    Attributes:
        pipeline: Its pipeline.
        table: ``format:name``.
        is_quarantine: Whether it is the pipeline's quarantine.
        history: As maintenance last wrote it down; None where it never did.
        progress: What the present application committed last; None where that is not known.
        reading: The newest of its health, with what changed in a day where that is known.
        steps: Of maintenance, newest first.
        results: The last of each expectation; those that failed first.
        problems: What could not be read.
    """

    pipeline: str
    table: str
    is_quarantine: bool = False
    history: TableHistory | None = None
    progress: TableProgress | None = None
    reading: tuple[HealthReading, Trend | None] | None = None
    steps: tuple[PastStep, ...] = ()
    results: tuple[LastResult, ...] = ()
    problems: tuple[str, ...] = ()


def tables_of(spec: PipelineSpec | None, control: ControlFolder) -> list[str]:
    """Return the ids of a pipeline's tables, the quarantine last; without a valid YAML those that the state knows.

    Args:
        spec: What the YAML declares; None where that is not valid.
        control: State folder of the pipeline.
    """
    if spec is not None:
        return [table.id for table in (*spec.tables, spec.quarantine_table)]
    progress = readable_progress(control)
    try:
        known = read_table_history(control)
    except (OSError, ValueError):
        known = {}
    return sorted({*known, *(progress.tables if progress is not None else ())})


def read_table_view(control: ControlFolder, table: str, spec: PipelineSpec | None) -> TableView:
    """Return what the state knows of a table; a file that cannot be read hides nothing but itself.

    Args:
        control: State folder of the pipeline.
        table: Id of the table.
        spec: What the pipeline's YAML declares; None where that is not valid.
    """
    problems = list[str]()

    def tried(read: Callable[[], T], otherwise: T) -> T:
        try:
            return read()
        except (OSError, ValueError) as exc:
            problems.append(f"not all of the state can be read: {first_line(exc)}")
            return otherwise

    progress = readable_progress(control)
    no_readings, no_ranges, no_history, no_steps = list[HealthReading](), list[ValidatedRange](), Histories(), list[PastStep]()
    readings = [one for one in tried(lambda: read_health_history(control), no_readings) if one.table == table]
    ranges = [one for one in tried(lambda: read_newest(control), no_ranges) if one.table == table]
    return TableView(
        pipeline=control.pipeline,
        table=table,
        is_quarantine=spec is not None and table == spec.quarantine_table.id,
        history=tried(lambda: read_table_history(control), no_history).get(table),
        progress=None if progress is None else progress.tables.get(table),
        reading=next(iter(newest_readings(readings)), None),
        steps=tuple(tried(lambda: read_newest_steps(control, table, MOST_STEPS), no_steps)),
        results=last_results(ranges),
        problems=tuple(problems),
    )
