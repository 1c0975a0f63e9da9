"""Whether a redo may take the place of another one, or of the undoing of one, that was not finished. Writes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

from lakebound.errors import LakeboundError
from lakebound.ledger.entry import Entry, Offsets, add, count, missing, redo_in
from lakebound.operations.backfill.half_done import UndoUnfinishedError
from lakebound.operations.redo.progress import redone_since, unfinished_since_ms
from lakebound.operations.redo.undo_facts import prepare_undo
from lakebound.operations.redo.undo_plan import NotUndoableError
from lakebound.operations.replay.plan import describe
from lakebound.spec.pipeline import PipelineSpec
from lakebound.tables.places import Places
from lakebound.tables.table import Table


class UnfinishedLeftOutError(LakeboundError, is_refusal=True):
    """A redo would take the place of one that is done in part, and leaves out some of what that one has done."""

    def __init__(self, pipeline: str, table: str, plan: str, left_out: Offsets) -> None:
        super().__init__(
            f"pipeline {pipeline!r}: the redo {plan} has been done in part: something of it is left in {table}. The range of "
            f"this one lacks {count(left_out):,} offsets of which rows were replaced: {describe(left_out)}. The tables may "
            f"hold different rows of these records, and would no longer say so. Finish what was begun, undo it by `lakebound "
            f"redo {pipeline} --undo`, or redo a range that has these offsets, too (runbook bad-deploy)"
        )


def check_takes_place(spec: PipelineSpec, places: Places, tables: Mapping[str, tuple[Table, Entry]], holds: Offsets) -> None:
    """Check that after a redo nothing is half done that was half done before it.

    Args:
        spec: The pipeline.
        places: Where its tables are.
        tables: Each of its tables with the entry that counts, by its id.
        holds: All offsets that the redo is approved for, also those of which Kafka no longer has the records.

    Raises:
        UndoUnfinishedError: A redo is undone in part, and that can be finished.
        UnfinishedLeftOutError: Rows of other offsets were replaced by what was not finished.
    """
    unfinished = {name: one for name, (_, entry) in tables.items() if (one := redo_in(entry)).left}
    for name, one in unfinished.items():
        if one.undoes is not None and _can_be_undone(spec, places, one.undoes):
            raise UndoUnfinishedError(spec.pipeline, name, one.undoes, one.left)
    for name, one in unfinished.items():
        since_ms = unfinished_since_ms(tables[name][0].entries())
        since_ms = one.at_ms if since_ms is None else since_ms  # its own entries have expired
        replaced: Offsets = reduce(add, (redone_since(table.entries(), since_ms) for table, _ in tables.values()), {})
        read = {topic: offsets for topic, offsets in replaced.items() if topic in spec.topics}
        if count(left_out := missing(read, holds)):
            raise UnfinishedLeftOutError(spec.pipeline, name, one.undoes or one.plan, left_out)


def _can_be_undone(spec: PipelineSpec, places: Places, plan: str) -> bool:
    try:
        return prepare_undo(spec, places).undoes == plan
    except NotUndoableError:
        return False
