"""Applies an approved plan of a redo, or of undoing one, and records it as an incident; for a command as for a DAG."""

from __future__ import annotations

from dataclasses import dataclass

from lakebound.control.desired import read_desired
from lakebound.control.folder import ControlFolder
from lakebound.control.incidents import Decision, Incident, newest_incidents, record_incident
from lakebound.control.replay_result import ReplayResult
from lakebound.errors import LakeboundError
from lakebound.ledger.entry import count
from lakebound.operations.backfill.half_done import UndoUnfinishedError
from lakebound.operations.backfill.orders import backfill_orders
from lakebound.operations.backfill.running import Follow, new_app_id, run_backfill
from lakebound.operations.redo.announce import announce_undo
from lakebound.operations.redo.orders import APPLICATION, RedoOrders
from lakebound.operations.redo.plan import RedoPlan
from lakebound.operations.redo.replacing import RedoOvertakenError
from lakebound.operations.redo.takes_place import UnfinishedLeftOutError
from lakebound.operations.redo.undo import apply_undo
from lakebound.operations.redo.undo_plan import AlreadyUndoneError
from lakebound.settings import Settings
from lakebound.spec.pipeline import PipelineSpec
from lakebound.tables.places import Places

_NEWEST_INCIDENTS = 100


class RedoNotCompletedError(LakeboundError):
    """A redo ended before all of its plan was done."""

    def __init__(self, pipeline: str, result: ReplayResult) -> None:
        super().__init__(
            f"pipeline {pipeline!r}: the redo {result.state} after {result.chunks_done} of {result.chunks} batches: "
            f"{result.reason}. What it has committed stays{_what_next(result)}"
        )


def _what_next(result: ReplayResult) -> str:
    """Return what does the rest, unless the reason says that itself."""
    own_words = {one.__name__ for one in (RedoOvertakenError, UnfinishedLeftOutError, UndoUnfinishedError)}
    return "" if result.error_class in own_words else "; the same plan does the rest"


@dataclass(frozen=True)
class AppliedRedo:
    """How a redo ended, and the record of it."""

    result: ReplayResult
    incident: Incident


def apply_redo(
    spec: PipelineSpec, settings: Settings, plan: RedoPlan, follow: Follow, *, by: str, asked_by: str | None
) -> AppliedRedo:
    """Do what the approved plan says, or what is left of it.

    Args:
        spec: The pipeline.
        settings: This machine's settings.
        plan: The plan as it is now; its hash is the one that was approved.
        follow: Waits for the end of its application.
        by: Who approved it.
        asked_by: Who asked for it; None where that is not known.

    Raises:
        SubmitFailedError: The application cannot be started.
    """
    control = ControlFolder(settings.home, spec.pipeline)
    desired = read_desired(control)
    app_id = new_app_id("redo", spec.pipeline, f"redo {plan.hash}")
    approved = {
        "wanted": plan.redone,
        "replaces": {share.table: share.replaces for share in plan.tables},
        "changes_seen": {share.table: share.changes_seen for share in plan.tables},
        "plan": plan.hash,
        "gone": plan.gone,
        "made_by": plan.made_by,
        "apps": str(settings.apps),
        "held_since": desired.since if desired.state == "held" else None,
    }
    orders = backfill_orders(RedoOrders, spec, settings, app_id, **approved)
    result = run_backfill(orders, settings, APPLICATION, ReplayResult(app_id=app_id), follow)
    incident = record_incident(
        control,
        "repair",
        f"redo of {count(plan.redone):,} offsets with the code on disk",
        runbook="bad-deploy",
        facts={
            "plan": plan.hash,
            "source": plan.source,
            "source_before": list(plan.made_by),
            "rows": {name: one.rows for name, one in result.tables.items()},
        },
        outcome=f"{result.state}: {result.reason}",
        decision=Decision(asked_by=asked_by, approved_by=by),
    )
    return AppliedRedo(result, incident)


def apply_undo_of_redo(spec: PipelineSpec, places: Places, approved: str, *, by: str, asked_by: str | None) -> Incident:
    """Bring the rows back that the newest redo replaced, and return the record of it: ``rows`` says how many, per table.

    Where a run before brought them back, and died before it told anybody, that is told and recorded now.

    Args:
        spec: The pipeline.
        places: Where its tables and its state are.
        approved: Hash of the plan.
        by: Who approved it.
        asked_by: Who asked for it; None where that is not known.

    Raises:
        LakeboundError: What ``lakebound.operations.redo.undo.apply_undo`` raises; what was committed stays.
    """
    control, outcome = ControlFolder(places.home, spec.pipeline, places.state), "done"
    try:
        rows = apply_undo(spec, places, approved)
    except AlreadyUndoneError:
        if is_recorded(control, approved):
            raise
        rows = {one.id: 0 for one in spec.tables}
        outcome = "done: a run before brought the rows back, and ended without a record"
    announce_undo(spec, places, approved)
    return record_incident(
        control,
        "repair",
        "a redo was undone",
        runbook="bad-deploy",
        facts={"plan": approved, "rows": rows},
        outcome=outcome,
        decision=Decision(asked_by=asked_by, approved_by=by),
    )


def is_recorded(control: ControlFolder, undo: str) -> bool:
    """Return whether the pipeline has the record of an undoing that was done.

    Args:
        control: The pipeline's folder of state.
        undo: Hash of its plan.
    """
    found, _ = newest_incidents(control, _NEWEST_INCIDENTS)
    return any(one.facts.get("plan") == undo and one.outcome.startswith("done") for one in found)
