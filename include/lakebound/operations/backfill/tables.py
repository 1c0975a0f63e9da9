"""The tables of a pipeline as a backfill needs them: made by its stream, and not behind their own rows."""

from __future__ import annotations

from lakebound.errors import LakeboundError
from lakebound.ledger.entry import check_owner
from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.table import TableSpec
from lakebound.tables.places import Places
from lakebound.tables.stale_ledger import read_not_behind
from lakebound.tables.table import LedgerView, Table, open_table


class NothingLandedYetError(LakeboundError):
    """A table has no ledger yet, so there is nothing below its high-water mark."""

    def __init__(self, pipeline: str, table: str) -> None:
        super().__init__(
            f"pipeline {pipeline!r}: table {table} does not exist yet; start the pipeline first, which creates its tables"
        )


def owned_table(spec: PipelineSpec, one: TableSpec, places: Places) -> tuple[Table, LedgerView]:
    """Return a table as the stream has made it, and its ledger.

    Args:
        spec: Pipeline that must own the table.
        one: Table as the pipeline's YAML names it.
        places: Where this machine keeps tables and state folders.

    Raises:
        NothingLandedYetError: It is not there yet.
        ForeignTableError: It is another pipeline's.
        LedgerBehindError: It holds more than its ledger says.
    """
    table = open_table(one, places)
    view = read_not_behind(table, places) if table.exists() else None
    if view is None or view.entry is None:
        raise NothingLandedYetError(spec.pipeline, one.id)
    check_owner(view.entry, spec.pipeline, one.id)
    return table, view
