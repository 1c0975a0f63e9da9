"""What a form's action does: how its plan is made and shown to a person, and how the approved plan is applied.

Another action is another value of ``KINDS``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from lakebound.control.folder import ControlFolder
from lakebound.control.incidents import Incident
from lakebound.landing.row_source import row_source
from lakebound.landing.schema_files import read_schema_files
from lakebound.ledger.sources import UNKNOWN, Source
from lakebound.operations.backfill.running import Follow
from lakebound.operations.form.asked import InvalidRepairError, RepairForm
from lakebound.operations.recovery.actions import PLANNERS
from lakebound.operations.recovery.apply import apply_recovery, plan_recovery
from lakebound.operations.recovery.plan import FormAction, PlanChangedError, PlanRefusedError, RepairAction
from lakebound.operations.recovery.rewind.apply import apply_rewind
from lakebound.operations.recovery.rewind.facts import RewindRequest, make_plan
from lakebound.operations.redo.apply import RedoNotCompletedError, apply_redo, apply_undo_of_redo, is_recorded
from lakebound.operations.redo.plan import RedoPlan
from lakebound.operations.redo.prepare import AskedRange, prepare
from lakebound.operations.redo.undo_facts import prepare_undo
from lakebound.operations.replay.bounds import parse_bound
from lakebound.settings import Settings
from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.times import parse_past
from lakebound.tables.places import places_of


@dataclass(frozen=True)
class Question:
    """A plan as a person is asked about it.

    Attributes:
        form: The form of which this is the plan whenever it is made, as long as its facts are the same.
        hash: The plan's.
        page: The plan in Markdown.
    """

    form: RepairForm
    hash: str
    page: str


@dataclass(frozen=True)
class Approval:
    """The plan that a person approved, and what applying it needs.

    Attributes:
        plan: Its hash.
        by: Who approved it.
        asked_by: Who asked for it; None where that is not known.
        now_ms: Epoch milliseconds of now.
        follow: Waits for the end of an application, where one is started.
    """

    plan: str
    by: str
    asked_by: str | None
    now_ms: int
    follow: Follow


@dataclass(frozen=True)
class RepairKind:
    """How the plan of a settled form is made, which writes nothing, and how an approved one is applied.

    Attributes:
        plan: Gets the form, the pipeline, the settings and epoch milliseconds of now.
        apply: Gets the form, the pipeline, the settings and the approval; makes the plan again, and returns the record.
    """

    plan: Callable[[RepairForm, PipelineSpec, Settings, int], Question]
    apply: Callable[[RepairForm, PipelineSpec, Settings, Approval], Incident]


def plan_repair(form: RepairForm, spec: PipelineSpec, settings: Settings, now_ms: int) -> Question:
    """Return the plan of a settled form; writes nothing.

    Args:
        form: What the person asked for, after ``RepairForm.settled``.
        spec: The form's pipeline.
        settings: This machine's settings; they say where tables and state folders are.
        now_ms: Epoch milliseconds of now; a time such as ``10m ago`` counts from it.

    Raises:
        LakeboundError: There is nothing to do, or it would do harm; it says why.
    """
    return KINDS[_settled_action(form)].plan(form, spec, settings, now_ms)


def apply_repair(form: RepairForm, spec: PipelineSpec, settings: Settings, approval: Approval) -> Incident:
    """Apply the approved plan of a settled form, and return the record of it.

    Args:
        form: That of the plan.
        spec: The form's pipeline.
        settings: This machine's settings; they say where tables and state folders are.
        approval: Which plan, and by whom.

    Raises:
        PlanChangedError: The facts have changed since; nothing was applied.
        PlanRefusedError: There is no such plan any more; nothing was applied.
        RedoNotCompletedError: A redo ended before all of the plan was done.
    """
    return KINDS[_settled_action(form)].apply(form, spec, settings, approval)


def _settled_action(form: RepairForm) -> FormAction:
    if form.action == "auto":
        raise InvalidRepairError(form.pipeline, "the action must be settled before it is planned")
    return form.action


def _recovery(action: RepairAction) -> RepairKind:
    def plan(form: RepairForm, spec: PipelineSpec, settings: Settings, now_ms: int) -> Question:
        made = plan_recovery(spec, settings, action)
        return Question(form, made.hash, made.markdown())

    def apply(form: RepairForm, spec: PipelineSpec, settings: Settings, approval: Approval) -> Incident:
        return apply_recovery(spec, settings, action, approval.plan, by=approval.by, asked_by=approval.asked_by).incident

    return RepairKind(plan, apply)


def rewind_request(form: RepairForm, now_ms: int, source: Source = UNKNOWN) -> RewindRequest:
    """Return the request for a rewind; ``source`` is the code that would land the rows again."""
    return RewindRequest(None if form.to is None else parse_past(form.to, now_ms), form.table, source)


def _plan_rewind(form: RepairForm, spec: PipelineSpec, settings: Settings, now_ms: int) -> Question:
    source = row_source(spec, settings.apps, read_schema_files(spec, settings))
    made = make_plan(spec, places_of(settings, spec.warehouse), rewind_request(form, now_ms, source)).plan
    return Question(form, made.hash, made.markdown())


def _apply_rewind(form: RepairForm, spec: PipelineSpec, settings: Settings, approval: Approval) -> Incident:
    request, places = rewind_request(form, approval.now_ms), places_of(settings, spec.warehouse)
    return apply_rewind(spec, places, request, approval.plan, by=approval.by, asked_by=approval.asked_by)


def _plan_redo(form: RepairForm, spec: PipelineSpec, settings: Settings, now_ms: int) -> Question:
    made = _redo(form, spec, settings, now_ms)
    if not made.has_work:
        why = "; ".join(line.strip() for line in made.lines() if not line.startswith("note: "))
        raise PlanRefusedError(spec.pipeline, "redo", f"no offset of the range is in a table and in Kafka: {why}")
    # As on the command line: what lands until somebody approves is no part of the plan.
    first, last = (json.dumps(bound, separators=(",", ":"), sort_keys=True) for bound in made.bounds)
    form = form.model_copy(update={"range_from": first, "range_to": last})
    bounds = f"its bounds, to go on with if it is interrupted: range_from `{first}`, range_to `{last}`"
    return Question(form, made.hash, _page(f"redo {spec.pipeline}", [*made.lines(), bounds], made.hash))


def _apply_redo(form: RepairForm, spec: PipelineSpec, settings: Settings, approval: Approval) -> Incident:
    made = _redo(form, spec, settings, approval.now_ms)
    if made.hash != approval.plan:
        raise PlanChangedError(spec.pipeline, approval.plan, made.hash)
    done = apply_redo(spec, settings, made, approval.follow, by=approval.by, asked_by=approval.asked_by)
    if done.result.state != "completed":
        raise RedoNotCompletedError(spec.pipeline, done.result)
    return done.incident


def _redo(form: RepairForm, spec: PipelineSpec, settings: Settings, now_ms: int) -> RedoPlan:
    if form.range_from is None:
        return prepare(spec, settings, AskedRange(form.source))
    first = parse_bound("range_from", form.range_from, now_ms)
    return prepare(spec, settings, AskedRange(form.source, (first, parse_bound("range_to", form.range_to or "latest", now_ms))))


def _plan_undo_of_redo(form: RepairForm, spec: PipelineSpec, settings: Settings, now_ms: int) -> Question:
    places = places_of(settings, spec.warehouse)
    made = prepare_undo(spec, places)
    if made.is_done and is_recorded(ControlFolder(places.home, spec.pipeline, places.state), made.hash):
        raise PlanRefusedError(spec.pipeline, "undo_redo", f"the newest redo, {made.undoes}, is undone already")
    return Question(form, made.hash, _page(f"undo_redo {spec.pipeline}", made.lines(), made.hash))


def _apply_undo_of_redo(form: RepairForm, spec: PipelineSpec, settings: Settings, approval: Approval) -> Incident:
    places = places_of(settings, spec.warehouse)
    return apply_undo_of_redo(spec, places, approval.plan, by=approval.by, asked_by=approval.asked_by)


def _page(title: str, lines: Iterable[str], plan_hash: str) -> str:
    """Return the lines of a plan as the page that a person approves."""
    items = [f"- {line.strip()}" for line in lines]
    end = f"Plan `{plan_hash}`. It is refused if its facts have changed when it is applied."
    return "\n".join([f"### {title}", "", *items, "", end])


KINDS: Mapping[FormAction, RepairKind] = {
    **{action: _recovery(action) for action in PLANNERS},
    "rewind": RepairKind(_plan_rewind, _apply_rewind),
    "undo_rewind": RepairKind(_plan_rewind, _apply_rewind),
    "redo": RepairKind(_plan_redo, _apply_redo),
    "undo_redo": RepairKind(_plan_undo_of_redo, _apply_undo_of_redo),
}
