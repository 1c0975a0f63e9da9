"""A redo, or the undoing of one, that ended before all was done: who goes by the rows of a record must not go on then. Pure."""

from __future__ import annotations

from lakebound.errors import LakeboundError
from lakebound.ledger.entry import Entry, redo_in


class UndoUnfinishedError(LakeboundError, is_refusal=True):
    """A redo is undone in part."""

    def __init__(self, pipeline: str, table: str, undoes: str, left: int) -> None:
        super().__init__(
            f"pipeline {pipeline!r}: the redo {undoes} is undone in part: of {left:,} offsets the old rows are not back in "
            f"{table}. Finish that first: `lakebound redo {pipeline} --undo`"
        )


class RedoUnfinishedError(LakeboundError, is_refusal=True):
    """A redo, or the undoing of one, has been done in part: rows of one record may be of two transforms in two tables."""

    def __init__(self, pipeline: str, table: str, plan: str, left: int) -> None:
        super().__init__(
            f"pipeline {pipeline!r}: the redo {plan} has been done in part: {left:,} offsets are left in {table}, so its "
            f"tables may hold different rows of a record. Finish it, or undo it by `lakebound redo {pipeline} --undo`; if "
            f"neither can be done, redo all of its range (runbook bad-deploy). Then try again"
        )


def check_no_undoing(pipeline: str, table: str, entry: Entry | None, *, known: str = "") -> None:
    """Check that no redo of a table is undone in part.

    Args:
        pipeline: The pipeline.
        table: The table's id.
        entry: The one that counts.
        known: Hash of the plan of an undoing that can no longer be finished, whose place is taken; empty where there is none.

    Raises:
        UndoUnfinishedError: One is.
    """
    now = redo_in(entry)
    if now.is_undoing and now.plan != known:
        raise UndoUnfinishedError(pipeline, table, now.undoes or "", now.left)


def check_no_redo_unfinished(pipeline: str, table: str, entry: Entry | None) -> None:
    """Check that no redo of a table, and no undoing of one, is done in part.

    Raises:
        RedoUnfinishedError: One is.
    """
    now = redo_in(entry)
    if now.left:
        raise RedoUnfinishedError(pipeline, table, now.undoes or now.plan, now.left)
