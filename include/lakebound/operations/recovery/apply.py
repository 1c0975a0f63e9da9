"""Plan and apply a recovery: the plan is made again from the present facts, and applied only if it is the approved one."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial

from lakebound.control.desired import change_desired, read_desired
from lakebound.control.folder import ControlFolder
from lakebound.control.incidents import Decision, Incident, record_incident
from lakebound.control.lease import Lease, check_held
from lakebound.errors import CommitUnknownError, LakeboundError
from lakebound.ledger.entry import Entry, new_commit_id
from lakebound.operations.recovery.actions import make_plan
from lakebound.operations.recovery.facts import HeldTable, RecoveryFacts, collect, collect_kafka, collect_tables
from lakebound.operations.recovery.plan import (
    PlanChangedError,
    PlanRefusedError,
    RepairAction,
    RepairPlan,
    RepairStep,
    check_hash,
)
from lakebound.operations.recovery.repointing import repoint
from lakebound.operations.recovery.takeover import taken_over
from lakebound.redaction import TOLD_TO_ITS_CALLER, redacted
from lakebound.settings import Settings
from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.state import check_stateless
from lakebound.spec.table import TableSpec
from lakebound.tables.commit import commit_entry
from lakebound.tables.places import Places, places_of
from lakebound.tables.table import LedgerView, open_table

_OF_THE_STEP = ("coverage", "former", "released", "newest_redo", "redo_progress", "range")
"""Fields of the entry that a step says itself."""

RUNBOOKS: dict[RepairAction, str] = {
    "resume": "crash-loop",
    "accept_loss": "retention-passed",
    "new_incarnation": "topic-recreated",
    "drop_zombie": "two-drivers",
}
"""The page that leads to each action; a plan to rebase names its own."""


class LedgerMovedError(LakeboundError):
    """A table was committed to between the check of a plan and the commit of its new ledger, which would not have it."""

    def __init__(self, table: str) -> None:
        super().__init__(
            f"table {table}: somebody has committed to it since the plan was checked, so its ledger was not replaced; "
            f"plan the repair again"
        )


@dataclass(frozen=True)
class Applied:
    """What was done.

    Attributes:
        plan: As it was approved.
        incident: The record of it.
        committed: Version of the commit per table id.
    """

    plan: RepairPlan
    incident: Incident
    committed: dict[str, str] = field(default_factory=dict)


def plan_recovery(spec: PipelineSpec, settings: Settings, action: RepairAction) -> RepairPlan:
    """Return the plan of an action as of now; writes nothing.

    Args:
        spec: Pipeline that is to be repaired.
        settings: This machine's settings; they say where tables and state folders are.
        action: The repair; rewinds are planned elsewhere.

    Raises:
        WithStateError: The pipeline's rows are of windows, and the action goes by the offsets of rows.
        PlanRefusedError: There is nothing to do, or it would do harm.
    """
    _check_state(spec, action)
    return make_plan(action, collect(spec, settings))


def apply_recovery(
    spec: PipelineSpec, settings: Settings, action: RepairAction, approved: str, *, by: str, asked_by: str | None = None
) -> Applied:
    """Apply the approved plan once, and record it.

    When a step fails, the pipeline stays held, an incident is recorded, and the next plan contains the remaining steps.

    Args:
        spec: The pipeline.
        settings: Of this machine.
        action: What to do.
        approved: Hash of the plan.
        by: Who approved it.
        asked_by: Who asked for it; None where that is not known.

    Raises:
        WithStateError: The pipeline's rows are of windows, and the action goes by the offsets of rows.
        PlanChangedError: The facts have changed since; nothing was applied.
        PlanRefusedError: There is no such plan any more, for example because it was applied before; nothing was applied.
        DesiredChangedError: Somebody has changed the desired state since; nothing was applied.
        LakeboundError: What taking the pipeline over, or a commit, raises.
    """
    _check_state(spec, action)
    places, facts = places_of(settings, spec.warehouse), collect(spec, settings)
    plan = make_plan(action, facts)
    check_hash(plan, approved)
    applied: Applied | None = None
    reason = f"repair {approved}: {action}"
    desired = facts.control.desired
    with taken_over(spec, places, by=by, reason=reason, by_force=action == "drop_zombie", seen=desired) as lease:
        # An application may have committed until now. From here on nothing can.
        facts = _as_of_now(spec, places, facts)
        objection = _objection(facts, plan)
        if objection is None:
            applied = _carry_out(spec, places, plan, facts, lease, by=by, asked_by=asked_by)
    if applied is None:
        raise objection or PlanRefusedError(spec.pipeline, action, "it was not applied")
    _want(ControlFolder(places.home, spec.pipeline, places.state), plan, by)
    return applied


def _check_state(spec: PipelineSpec, action: RepairAction) -> None:
    """Refuse what moves the offsets of a pipeline with state: its open windows would no longer be those of its records."""
    if action in ("rebase", "accept_loss", "new_incarnation"):
        check_stateless(spec, action)


def _as_of_now(spec: PipelineSpec, places: Places, before: RecoveryFacts) -> RecoveryFacts:
    """Return the facts of Kafka and of the tables anew; those of the lease are from before it was taken."""
    kafka = collect_kafka(spec)
    return replace(before, kafka=kafka, tables=collect_tables(spec, places, kafka))


def _objection(facts: RecoveryFacts, approved: RepairPlan) -> PlanChangedError | PlanRefusedError | None:
    """Return why the plan is no longer valid, now that no application writes."""
    try:
        check_hash(make_plan(approved.action, facts), approved.hash)
    except (PlanChangedError, PlanRefusedError) as exc:
        return exc
    return None


def _carry_out(
    spec: PipelineSpec,
    places: Places,
    plan: RepairPlan,
    facts: RecoveryFacts,
    lease: Lease,
    *,
    by: str,
    asked_by: str | None,
) -> Applied:
    control = ControlFolder(places.home, spec.pipeline, places.state)
    committed: dict[str, str] = {}
    known = {table.table: table for table in facts.tables}
    record = partial(
        record_incident,
        control,
        "repair",
        f"{plan.action}: {plan.summary}",
        runbook=plan.facts.get("runbook") or RUNBOOKS[plan.action],
        facts=plan.facts,
    )
    decision = Decision(asked_by, by, {**plan.model_dump(mode="json"), "hash": plan.hash})
    try:
        for step in plan.steps:
            if step.table is not None and "commit" in step.detail:
                committed[step.table] = _commit(spec, places, step, known[step.table], lease)
            if step.table is not None and "pointer" in step.detail:
                check_held(control, lease)
                committed[step.table] = repoint(_table_spec(spec, step), places, step)
    except BaseException as exc:
        outcome = f"interrupted after {committed or 'no commit'}: {redacted(exc, TOLD_TO_ITS_CALLER)}"
        record(outcome=outcome, decision=decision)
        raise
    done = ", ".join(f"{table} version {version}" for table, version in committed.items()) or "no table was written"
    return Applied(plan, record(outcome=f"applied: {done}", decision=replace(decision, loses=plan.loses)), committed)


def _commit(spec: PipelineSpec, places: Places, step: RepairStep, known: HeldTable, lease: Lease) -> str:
    """Commit the step's entry exactly once, even if the answer to the commit is lost, and return the version.

    Raises:
        LedgerMovedError: A guest, who needs no lease, has committed since the plan was checked.
    """
    table = open_table(_table_spec(spec, step), places)
    kind = step.detail["commit"]
    draft = Entry.model_validate(
        {
            **{name: step.detail[name] for name in _OF_THE_STEP if name in step.detail},
            "kind": kind,
            "pipeline": spec.pipeline,
            "epoch": lease.epoch,
            "commit": new_commit_id(),
        }
    )
    # A reset is not compared with the ledger that a further attempt would read: each is one of its own.
    left, each = (spec.limits.commit_attempts, 1) if kind == "reset" else (1, spec.limits.commit_attempts)
    while True:
        left -= 1
        view = table.read_ledger(to_reset=kind == "reset")
        if view.entry is not None and view.entry.commit == draft.commit:
            return view.version
        if kind == "reset" and known.refusal is None and _has_moved(view, known):
            raise LedgerMovedError(table.spec.id)
        try:
            return commit_entry(
                table,
                view,
                [],
                draft,
                own_epoch=lease.epoch,
                check_lease=lambda: check_held(ControlFolder(places.home, spec.pipeline, places.state), lease),
                attempts=each,
            ).version
        except CommitUnknownError:
            if not left:
                raise


def _has_moved(view: LedgerView, known: HeldTable) -> bool:
    return (view.coverage, view.released) != (known.coverage, known.released)


def _table_spec(spec: PipelineSpec, step: RepairStep) -> TableSpec:
    return next(table for table in (*spec.tables, spec.quarantine_table) if table.id == step.table)


def _want(control: ControlFolder, plan: RepairPlan, by: str) -> None:
    wanted = [step.detail["want"] for step in plan.steps if "want" in step.detail]
    if "running" in wanted:
        before = read_desired(control)
        reason = f"{plan.action} applied, plan {plan.hash}"
        change_desired(control, "running", freshness=before.freshness, until=before.until, reason=reason, by=by)
