"""What a validation run would do now, from metadata alone; nothing is written."""

from __future__ import annotations

from collections.abc import Iterator

from lakebound.control.folder import ControlFolder
from lakebound.frozen import Frozen
from lakebound.inspection.validation.expectations import ExpectationFile
from lakebound.inspection.validation.history import done_of, read_history, refuse_shared
from lakebound.inspection.validation.run import next_due
from lakebound.spec.pipeline import PipelineSpec
from lakebound.tables.places import Places


class DueTable(Frozen):
    """What of a table is due.

    Attributes:
        first: Version of the first commit that landed rows.
        last: Version of the last commit.
        commits: Commits that landed rows.
        rows: Rows that they landed.
        expectations: How many are asked.
        lost_offsets: Offsets that landed in commits which are no longer kept.
    """

    table: str
    first: str
    last: str
    commits: int
    rows: int
    expectations: int
    lost_offsets: int = 0


def plan_validation(spec: PipelineSpec, places: Places, file: ExpectationFile) -> list[DueTable]:
    """Return what is due of each table; tables of which nothing is are left out.

    Args:
        spec: Pipeline whose tables are looked at.
        places: Where this machine keeps tables and state folders.
        file: Expectations of the pipeline; a table without any is never due.
    """
    return list(_due(spec, places.read_only(), file))


def _due(spec: PipelineSpec, places: Places, file: ExpectationFile) -> Iterator[DueTable]:
    control = ControlFolder(places.home, spec.pipeline, places.state)
    refuse_shared(control)
    history = read_history(control)
    for table in spec.tables:
        expected = file.of(table.id)
        found = next_due(table, places, done_of(table.id, history), max_rows=file.max_rows_per_range) if expected else None
        if found is not None:
            due, _ = found
            yield DueTable(
                table=table.id,
                first=due.landings[0].version if due.landings else "",
                last=due.newest.version,
                commits=len(due.landings),
                rows=due.rows,
                expectations=len(expected),
                lost_offsets=due.gap.offsets if due.gap else 0,
            )
