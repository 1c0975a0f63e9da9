"""Notes what a redo or its undoing has done, for the events of the tables' assets; what counts are the tables' entries."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable

from lakebound.control.folder import ControlFolder
from lakebound.control.redone import Redone, TableRedone, note_redone, ranges_of, read_redone
from lakebound.ledger.entry import Offsets, count
from lakebound.operations.backfill.tables import owned_table
from lakebound.operations.redo.orders import RedoOrders
from lakebound.operations.redo.progress import standing
from lakebound.operations.redo.undo_facts import prepare_undo
from lakebound.spec.pipeline import PipelineSpec
from lakebound.tables.places import Places
from lakebound.tables.table import LedgerView

log = logging.getLogger(__name__)


def announce_redo(orders: RedoOrders) -> None:
    """Note all offsets that the orders' plan has made anew until now: also those of a run before, which was killed.

    What keeps it from being noted is only logged: the rows are right.
    """

    def made() -> Redone | None:
        spec, places = orders.spec, orders.places
        opened = ((one, owned_table(spec, one, places)) for one in spec.tables)
        done = ((one.id, view, standing(table.entries(), orders.plan).done) for one, (table, view) in opened)
        return _redone(done, plan=orders.plan, before=orders.made_by, after=(orders.source.hash or None,))

    _note(orders.control, made)


def announce_undo(spec: PipelineSpec, places: Places, approved: str) -> None:
    """Note all offsets of which the old rows are back.

    What keeps it from being noted is only logged: the rows are right.

    Args:
        spec: The pipeline.
        places: Where its tables and its state are.
        approved: Hash of the plan of the undoing.
    """
    control = ControlFolder(places.home, spec.pipeline, places.state)

    def made() -> Redone | None:
        plan = prepare_undo(spec, places)
        specs = {one.id: one for one in spec.tables}
        named = ((share, owned_table(spec, specs[share.table], places)[1]) for share in plan.tables if count(share.undone))
        done = ((share.table, view, share.undone) for share, view in named)
        redo = next((one for one in read_redone(control) if one.plan == plan.undoes and one.undoes is None), None)
        before, after = (redo.source_after, redo.source_before) if redo else ((), ())
        return _redone(done, plan=approved, undoes=plan.undoes, before=before, after=after)

    _note(control, made)


def _redone(
    done: Iterable[tuple[str, LedgerView, Offsets]],
    *,
    plan: str,
    before: tuple[str | None, ...],
    after: tuple[str | None, ...],
    undoes: str | None = None,
) -> Redone | None:
    tables = {
        table: TableRedone(version=view.version, ranges=ranges_of(offsets)) for table, view, offsets in done if count(offsets)
    }
    if not tables:
        return None
    return Redone(at=time.time(), plan=plan, undoes=undoes, source_before=before, source_after=after, tables=tables)


def _note(control: ControlFolder, made: Callable[[], Redone | None]) -> None:
    try:
        done = made()
        if done is not None:
            note_redone(control, done)
    except Exception as exc:  # whatever it is, from a table, a store or a disk: the redo is done, and its record must follow
        log.warning("what was redone could not be noted, so no event of an asset names it: %s", exc)
