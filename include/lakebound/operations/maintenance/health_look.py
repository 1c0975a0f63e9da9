"""Looks at the health of a pipeline's tables, and keeps what it found for the trend."""

from __future__ import annotations

import time

from lakebound.control.folder import ControlFolder
from lakebound.operations.maintenance.health_history import HealthReading, reading_of, record_health
from lakebound.operations.maintenance.reading import UnreadableTableError, read_table_facts
from lakebound.operations.maintenance.score import assess
from lakebound.spec.pipeline import PipelineSpec
from lakebound.tables.places import Places


def record_health_now(spec: PipelineSpec, places: Places) -> list[HealthReading]:
    """Add one reading of each table to the history, and return them; a table that is not there or unreadable gives none."""
    now_ms, found = round(time.time() * 1000), []
    for table in (*spec.tables, spec.quarantine_table):
        try:
            facts = read_table_facts(table, places.read_only(), now_ms)
        except UnreadableTableError:
            continue  # who plans says it
        if facts is not None:
            found.append(reading_of(assess(facts, spec.maintenance)))
    if found:
        record_health(ControlFolder(places.home, spec.pipeline, places.state), found)
    return found
