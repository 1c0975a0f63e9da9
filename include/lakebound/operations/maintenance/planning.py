"""Reads a pipeline's tables and the record of earlier runs, and plans the next run. Writes nothing."""

from __future__ import annotations

import time

from lakebound.control.folder import ControlFolder
from lakebound.errors import LakeboundError
from lakebound.first_line import first_line
from lakebound.inspection.validation.history import read_history
from lakebound.operations.maintenance.history import PastRun
from lakebound.operations.maintenance.past_reading import past_run, read_past, read_runs
from lakebound.operations.maintenance.plan import TableSituation, plan
from lakebound.operations.maintenance.reading import read_table_facts
from lakebound.operations.maintenance.refusals import refusals_of
from lakebound.operations.maintenance.steps import MaintenancePlan, RunReport
from lakebound.operations.maintenance.still_to_validate import awaiting_validation, last_validated
from lakebound.spec.pipeline import PipelineSpec, TableSpec
from lakebound.tables.places import Places


def plan_now(spec: PipelineSpec, places: Places, *, table: str | None = None, now_ms: int | None = None) -> MaintenancePlan:
    """Return what a maintenance run would do now. A table that cannot be read hides none of the others.

    Args:
        spec: The pipeline.
        places: Where its tables and its state are.
        table: Id of the one table to plan for; None for all, the quarantine included.
        now_ms: The time; None: that of the clock.
    """
    now_ms = round(time.time() * 1000) if now_ms is None else now_ms
    tables = [one for one in (*spec.tables, spec.quarantine_table) if table in (None, one.id)]
    control = ControlFolder(places.home, spec.pipeline)
    runs = read_runs(control) if spec.maintenance.enabled else []
    validated = last_validated(read_history(control), now_ms) if spec.maintenance.enabled else {}
    looking = places.read_only()
    situations = (
        [_situation(one, spec, looking, runs, now_ms, validated.get(one.id)) for one in tables]
        if spec.maintenance.enabled
        else []
    )
    return plan(spec.pipeline, situations, spec.maintenance, now_ms)


def _situation(
    table: TableSpec, spec: PipelineSpec, places: Places, runs: list[RunReport], now_ms: int, validated: int | None
) -> TableSituation:
    earlier: PastRun = past_run(table.id, runs)
    try:
        # The past first: what is committed in between is only younger.
        past = awaiting_validation(read_past(table, places, spec.maintenance.readers), validated)
        facts = read_table_facts(table, places, now_ms)
    except (LakeboundError, OSError, ValueError) as exc:
        return TableSituation(table.id, None, None, earlier, problem=first_line(exc))
    return TableSituation(table.id, facts, past, earlier, refusals=refusals_of(table, places))
