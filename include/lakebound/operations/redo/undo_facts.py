"""Collects what undoing the newest redo follows from: its commits, and each table's version before them. Writes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce

from lakebound.ledger.entry import Entry, Offsets, add, count, redo_in
from lakebound.operations.backfill.tables import owned_table
from lakebound.operations.maintenance.keep import undo_until_ms
from lakebound.operations.redo.undo_plan import WORKS, Chunk, NotUndoableError, UndoPlan, UndoShare, commits_of_newest
from lakebound.spec.pipeline import PipelineSpec
from lakebound.tables.history import TableCommit
from lakebound.tables.places import Places
from lakebound.tables.table import LedgerView, Table, TableVersion, VersionGoneError


def prepare_undo(spec: PipelineSpec, places: Places) -> UndoPlan:
    """Return what undoing the newest redo would do. A stream may run meanwhile.

    Args:
        spec: The pipeline.
        places: Where its tables are.

    Raises:
        NotUndoableError: There is no redo, or the rows that it replaced cannot be brought back.
        NothingLandedYetError: A table has no ledger yet.
    """
    found = {}
    for one in spec.tables:
        table, view = owned_table(spec, one, places)
        if view.newest_redo:
            found[one.id] = table, view, _newest(table, view)
    if not found:
        raise NotUndoableError(spec.pipeline, "the rows of its tables stand on none", "`lakebound redo` lands a range again")
    kept = {name: one for name, one in found.items() if one[2]}
    if not kept:
        raise NotUndoableError(spec.pipeline, f"of the redo of {', '.join(found)} not all entries are kept", WORKS)
    newest = max((chain for _, _, chain in kept.values()), key=lambda chain: chain[0].committed_at_ms)
    plan = commits_of_newest(newest)[0]
    # Another table may stand on an older redo, of which no entry need be kept.
    if lost := [name for name, (_, view, chain) in found.items() if not chain and _plan_of(view) == plan]:
        raise NotUndoableError(spec.pipeline, f"of the redo of {', '.join(lost)} not all entries are kept", WORKS)
    shares = [_share(spec, *one) for one in kept.values() if commits_of_newest(one[2])[0] == plan]
    return UndoPlan(pipeline=spec.pipeline, undoes=plan, tables=tuple(shares))


def _plan_of(view: LedgerView) -> str:
    """Return the hash of the plan of the newest redo, also where that is undone."""
    return view.redo_progress.undoes or view.redo_progress.plan


def _newest(table: Table, view: LedgerView) -> list[TableCommit]:
    """Return the commits of a table's newest redo and of its undoing, newest first, as far as they are kept."""
    found, at = list[TableCommit](), view.newest_redo
    for commit in table.history().commits():
        if commit.kind != "redo" or commit.entry is None or commit.entry.commit != at:
            continue
        found.append(commit)
        at = commit.entry.redo_before or ""
        if not at or (commit.entry.commit == commit.entry.redo_first and not commit.entry.undoes):
            break
    return found


def _share(spec: PipelineSpec, table: Table, view: LedgerView, chain: Sequence[TableCommit]) -> UndoShare:
    _, own, undoing = commits_of_newest(chain)
    if not own or own[-1].entry is None or own[-1].entry.redo_first != own[-1].entry.commit:
        raise NotUndoableError(spec.pipeline, f"of the redo of {table.spec.id} not all entries are kept", WORKS)
    if own[-1].parent is None:
        raise NotUndoableError(spec.pipeline, f"{table.spec.id} no longer tells what it was before", WORKS)
    try:
        past = table.look_back(own[-1].parent)
    except VersionGoneError as exc:
        raise NotUndoableError(spec.pipeline, str(exc), WORKS) from exc
    parent = next((one for one in table.history().versions() if one.version == own[-1].parent), None)
    if not past.schema.equals(table.schema()):
        raise NotUndoableError(spec.pipeline, f"{table.spec.id} has other columns than before", WORKS)
    if past.missing_files:
        gone = f"{len(past.missing_files)} files of {table.spec.id} of before are gone"
        raise NotUndoableError(spec.pipeline, gone, WORKS)
    entries = [commit.entry for commit in (*undoing, *own) if commit.entry is not None]
    redone = [commit.entry for commit in own if commit.entry and count(commit.entry.redoes)]
    _check_only_redone(spec, table, view, past.entry, entries)
    return UndoShare(
        table=table.spec.id,
        before=own[-1].parent,
        chunks=tuple(Chunk(redoes=one.redoes, read=one.read) for one in redone),
        undone=_together(commit.entry for commit in undoing),
        until_ms=_until_ms(spec, table, parent, own[-1].committed_at_ms),
        is_unfinished=view.redo_progress.left > 0,
        changes_seen=view.changes_seen,
    )


def _until_ms(spec: PipelineSpec, table: Table, before: TableVersion | None, left_at_ms: int) -> int:
    """Return until when the version stays: by the pipeline's maintenance, else by the table's own settings."""
    policy = spec.maintenance
    if policy.enabled or before is None:
        return undo_until_ms(policy.history, left_at_ms)
    return table.kept_until_ms(before, left_at_ms)


def _check_only_redone(
    spec: PipelineSpec, table: Table, view: LedgerView, before: Entry | None, redone: Sequence[Entry]
) -> None:
    """Check that since the version before the redo nobody but the redo has decided about rows that were there.

    Entries in between may have expired; what the two ends say of it has not.
    """
    now, first = view.entry, redone[-1]
    assert now is not None, "owned_table refuses a table without"
    if before is None:
        raise NotUndoableError(spec.pipeline, f"{table.spec.id} had no ledger before", WORKS)
    if (half_done := redo_in(before)).left:
        what = f"before it, {table.spec.id} had rows of the redo {half_done.undoes or half_done.plan}, which was not finished"
        raise NotUndoableError(spec.pipeline, what, WORKS)
    found = [
        (now.released != before.released + sum(one.from_quarantine for one in redone), "records were released from quarantine"),
        (now.erased != before.erased, "rows were erased by decision"),
        # What others changed between the last entry before the redo and its first commit is in the version before, too.
        (view.changes_seen != LedgerView(first, "").changes_seen, "others changed rows"),
    ]
    for is_so, what in found:
        if is_so:
            raise NotUndoableError(spec.pipeline, f"{what} of {table.spec.id} since", WORKS)


def _together(entries: Iterable[Entry | None]) -> Offsets:
    return reduce(add, (entry.redoes for entry in entries if entry is not None), {})
