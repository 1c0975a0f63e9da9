"""Reads a pipeline's tables and the record of earlier runs, and plans the next run. The tables are only read."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence

from lakebound.control.folder import ControlFolder
from lakebound.control.table_history import (
    MOST_TARGETS,
    MOST_TARGETS_OF_ALL,
    read_table_history,
    write_table_history,
)
from lakebound.errors import LakeboundError
from lakebound.first_line import first_line
from lakebound.inspection.validation.history import read_history
from lakebound.operations.maintenance.engines import check_known
from lakebound.operations.maintenance.history import PastRun
from lakebound.operations.maintenance.past_reading import past_run, read_past, read_runs
from lakebound.operations.maintenance.plan import TableSituation, plan
from lakebound.operations.maintenance.reading import read_table_facts
from lakebound.operations.maintenance.refusals import refusals_of
from lakebound.operations.maintenance.rewind_targets import table_history
from lakebound.operations.maintenance.steps import MaintenancePlan, RunReport
from lakebound.operations.maintenance.still_to_validate import awaiting_validation, last_validated
from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.table import TableSpec
from lakebound.tables.places import Places

log = logging.getLogger(__name__)


def plan_now(spec: PipelineSpec, places: Places, *, table: str | None = None, now_ms: int | None = None) -> MaintenancePlan:
    """Return what a maintenance run would do now. A table that cannot be read hides none of the others.

    Args:
        spec: The pipeline.
        places: Where its tables and its state are.
        table: Id of the one table to plan for; None for all, the quarantine included.
        now_ms: The time; None: that of the clock.
    """
    now_ms = round(time.time() * 1000) if now_ms is None else now_ms
    return plan(spec.pipeline, _look(spec, places, table, now_ms), spec.maintenance, now_ms)


def plan_and_note(spec: PipelineSpec, places: Places) -> MaintenancePlan:
    """Return what a maintenance run would do now, and write down to which times the tables can be rewound.

    Args:
        spec: The pipeline.
        places: Where its tables and its state are.
    """
    now_ms = round(time.time() * 1000)
    situations = _look(spec, places, None, now_ms)
    try:
        _note_history(spec, ControlFolder(places.home, spec.pipeline, places.state), situations, now_ms)
    except OSError as exc:  # maintenance is needed most where a disk is full
        log.warning("the history of the tables cannot be written down: %s", first_line(exc))
    return plan(spec.pipeline, situations, spec.maintenance, now_ms)


def _note_history(spec: PipelineSpec, control: ControlFolder, situations: Sequence[TableSituation], now_ms: int) -> None:
    try:
        known = read_table_history(control)
    except ValueError:
        known = {}
    tables = {table.id for table in (*spec.tables, spec.quarantine_table)}
    most = max(2, min(MOST_TARGETS, MOST_TARGETS_OF_ALL // len(tables)))
    # Of a table that cannot be read now, what was known last stays.
    found = {table: history for table, history in known.items() if table in tables}
    for one in situations:
        if one.past is not None and one.facts is not None:
            found[one.table] = table_history(one.past, spec.maintenance.history, one.facts.properties, now_ms, most)
    if found:
        write_table_history(control, found)


def _look(spec: PipelineSpec, places: Places, table: str | None, now_ms: int) -> list[TableSituation]:
    if not spec.maintenance.enabled:
        return []
    tables = [one for one in (*spec.tables, spec.quarantine_table) if table in (None, one.id)]
    control = ControlFolder(places.home, spec.pipeline, places.state)
    runs, validated = read_runs(control), last_validated(read_history(control), now_ms)
    looking = places.read_only()
    return [_situation(one, spec, looking, runs, now_ms, validated.get(one.id)) for one in tables]


def _situation(
    table: TableSpec, spec: PipelineSpec, places: Places, runs: list[RunReport], now_ms: int, validated: int | None
) -> TableSituation:
    earlier: PastRun = past_run(table.id, runs)
    try:
        check_known(table, places)
        # The past first: what is committed in between is only younger.
        past = awaiting_validation(read_past(table, places, spec.maintenance.readers), validated)
        facts = read_table_facts(table, places, now_ms)
    except (LakeboundError, OSError, ValueError) as exc:
        return TableSituation(table.id, None, None, earlier, problem=first_line(exc))
    return TableSituation(table.id, facts, past, earlier, refusals=refusals_of(table, places))
