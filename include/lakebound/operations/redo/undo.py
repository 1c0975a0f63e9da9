"""Undoes the newest redo: the very rows that it replaced come back, out of the files that the table had before (decision 46).

It needs neither Kafka nor Spark. To everybody else it is another redo of the same offsets: a reader sees the rows of a chunk
before it or after it, and proofs count them.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakebound.control.folder import ControlFolder, locked
from lakebound.control.turns import AskForTurn
from lakebound.errors import FilesOutdatedError, TableMismatchError
from lakebound.inspection.proof.history import Spans, spans_of
from lakebound.inspection.proof.offset_arrays import both, index_rows, size
from lakebound.ledger.entry import Entry, add, count, missing, new_commit_id
from lakebound.operations.backfill.tables import owned_table
from lakebound.operations.erase.copying import Copies, Hit
from lakebound.operations.erase.prepare import erasable
from lakebound.operations.recovery.plan import PlanChangedError
from lakebound.operations.redo.held_rows import find_rows, rows_among
from lakebound.operations.redo.marking import Run
from lakebound.operations.redo.progress import standing
from lakebound.operations.redo.quarantined import quarantined_among
from lakebound.operations.redo.replacing import NewRows, Planned, RedoOvertakenError, moments_of, redo_chunk
from lakebound.operations.redo.undo_facts import prepare_undo
from lakebound.operations.redo.undo_plan import WORKS, AlreadyUndoneError, Chunk, NotUndoableError, UndoShare
from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.table import TableSpec
from lakebound.tables.commit import Waits
from lakebound.tables.guest import retry_as_guest
from lakebound.tables.places import Places
from lakebound.tables.table import LedgerView

_ANOTHER_REPAIR_SECONDS = 3600.0
_FEWEST_ATTEMPTS = 20


def apply_undo(spec: PipelineSpec, places: Places, approved: str) -> dict[str, int]:
    """Bring back what the approved plan names; return how many rows came back, by the table's id.

    If it is interrupted, apply the same plan again.

    Args:
        spec: The pipeline.
        places: Where its tables and its state are.
        approved: Hash of the plan.

    Raises:
        PlanChangedError: It is another plan now; nothing was done.
        AlreadyUndoneError: All of it is done.
        LakeboundError: What ``prepare_undo`` raises, and what reading and committing raises; what was committed stays.
    """
    control = ControlFolder(places.home, spec.pipeline, places.state)
    with locked(control.repair, _ANOTHER_REPAIR_SECONDS):
        plan = prepare_undo(spec, places)
        if plan.hash != approved:
            raise PlanChangedError(spec.pipeline, approved, plan.hash)
        if plan.is_done:
            raise AlreadyUndoneError(spec.pipeline, plan.undoes)
        specs = {one.id: one for one in spec.tables}
        run = Run(spec.pipeline, plan.hash, undoes=plan.undoes)
        for share in plan.tables:  # all of them before the first rows
            attempts = spec.limits.commit_attempts
            retry_as_guest(partial(_begin, spec, places, specs[share.table], share, run), what="undoing", attempts=attempts)
        return {share.table: _bring_back(spec, places, specs[share.table], share, run) for share in plan.tables}


def _begin(spec: PipelineSpec, places: Places, one: TableSpec, share: UndoShare, run: Run) -> None:
    """Have the table say how much is to be undone in it, if it does not say so yet."""
    table, view = owned_table(spec, one, places)
    left = sum(count(missing(chunk.redoes, share.undone)) for chunk in share.left)
    so_far = standing(table.entries(), run.plan)
    if not so_far.first or not left:
        run.mark(table, view, left, first=so_far.first)


def _bring_back(spec: PipelineSpec, places: Places, one: TableSpec, share: UndoShare, run: Run) -> int:
    """Bring back the old rows of one table, a commit of the redo after another, and return how many."""
    rows, undone = 0, share.undone
    with AskForTurn(ControlFolder(places.home, spec.pipeline, places.state), one.id) as turn:

        def wait(seconds: float) -> None:
            turn()
            time.sleep(seconds)

        for chunk in share.left:
            left = Chunk(redoes=missing(chunk.redoes, undone), read=chunk.read)
            if not count(left.redoes):
                continue
            work = partial(_bring_back_chunk, spec, places, one, (share, left), run, Waits(between=wait))
            rows += retry_as_guest(work, what=f"undoing in {one.id}", attempts=spec.limits.commit_attempts)
            undone = add(undone, left.redoes)
    return rows


def _bring_back_chunk(
    spec: PipelineSpec, places: Places, one: TableSpec, what: tuple[UndoShare, Chunk], run: Run, waits: Waits
) -> int:
    """Commit the old rows of some offsets in the place of the new ones, and return how many."""
    (share, chunk), (table, view) = what, owned_table(spec, one, places)
    if view.redo_progress.plan != run.plan:
        raise RedoOvertakenError(one.id, "another redo, or a rewind, was committed")
    spans = spans_of(chunk.redoes)
    files = erasable(table)
    hits = find_rows(files, spans, share.before)
    copies = Copies(files)
    try:
        # The other way round: a copy of each old file that lacks all rows but those that come back.
        copies.write([Hit(hit.file, hit.going, hit.going.num_rows) for hit in hits], partial(_stays_away, spans=spans))
        draft = _draft(spec, places, view, chunk, [hit.going for hit in hits])
        so_far = standing(table.entries(), run.plan)
        draft = run.named(draft, so_far.first, max(0, view.redo_progress.left - count(missing(chunk.redoes, so_far.done))))
        attempts = max(_FEWEST_ATTEMPTS, spec.limits.commit_attempts)
        new = NewRows(draft, (), spans, Planned(share.changes_seen, view.newest_redo), copied=copies.files)
        redo_chunk(table, new, attempts=attempts, waits=waits)
    except (FilesOutdatedError, TableMismatchError) as exc:
        copies.discard()  # none was committed
        raise NotUndoableError(spec.pipeline, f"{one.id} has other columns than before ({exc})", WORKS) from exc
    return draft.rows


def _stays_away(kafka: pa.Table, spans: Spans) -> npt.NDArray[np.bool_]:
    return ~rows_among(kafka, spans)


def _draft(spec: PipelineSpec, places: Places, view: LedgerView, chunk: Chunk, coming: Sequence[pa.Table]) -> Entry:
    """Return the entry: the records are those that the redo read, and what they became is told by the rows."""
    landed = index_rows(*coming).records if coming else {}
    bad = quarantined_among(spec.quarantine_table, places, chunk.redoes)
    again = size(both(landed, bad))
    read = max(min(chunk.read, count(chunk.redoes)), size(landed) + size(bad) - again)
    moments_ms = moments_of(coming)
    return Entry(
        kind="redo",
        pipeline=spec.pipeline,
        epoch=view.epoch,
        commit=new_commit_id(),
        redoes=chunk.redoes,
        read=read,
        filtered=read - size(landed) - size(bad) + again,
        landed=size(landed),
        quarantined=size(bad) - again,
        rows=sum(one.num_rows for one in coming),
        timestamps_ms=(int(moments_ms.min()), int(moments_ms.max())) if len(moments_ms) else None,
        from_quarantine=again,
    )
