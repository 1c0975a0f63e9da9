"""One form for every repair: each is planned and applied in the same way."""

from __future__ import annotations

from pydantic import Field, field_validator, model_validator

from lakebound.control.incidents import Incident
from lakebound.errors import LakeboundError
from lakebound.frozen import FrozenRecord
from lakebound.landing.row_source import row_source
from lakebound.landing.schema_files import read_schema_files
from lakebound.ledger.sources import UNKNOWN, Source
from lakebound.operations.recovery.apply import apply_recovery, plan_recovery
from lakebound.operations.recovery.plan import RepairAction, RepairPlan, RequestedRepair
from lakebound.operations.recovery.rewind.apply import apply_rewind
from lakebound.operations.recovery.rewind.facts import RewindRequest, make_plan
from lakebound.operations.recovery.suggestion import suggested_action
from lakebound.settings import Settings
from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.times import in_utc, parse_past
from lakebound.tables.places import places_of

REWINDS: tuple[RepairAction, ...] = ("rewind", "undo_rewind")


class InvalidRepairError(LakeboundError):
    """The form contradicts itself."""

    def __init__(self, pipeline: str, reason: str) -> None:
        super().__init__(f"pipeline {pipeline!r}: {reason}; nothing was planned")


class RepairForm(FrozenRecord):
    """What a person asks for. Before its plan is made, a form is ``settled``: its meaning then does not depend on the time."""

    pipeline: str = Field(min_length=1)
    action: RequestedRepair = "auto"
    to: str | None = Field(default=None, description="For a rewind: the time to which the tables go back.")
    table: str | None = Field(default=None, description="For a rewind: only this table.")

    @field_validator("to", "table", mode="before")
    @classmethod
    def _empty_is_none(cls, value: object) -> object:
        return value or None

    @model_validator(mode="after")
    def _rewinds_alone_have_a_time(self) -> RepairForm:
        if (self.action == "rewind") != (self.to is not None):
            raise InvalidRepairError(
                self.pipeline, "the action rewind needs a time to go back to; other actions do not take a time"
            )
        if self.table is not None and self.action not in REWINDS:
            raise InvalidRepairError(self.pipeline, f"the action {self.action} is for the whole pipeline, not for one table")
        return self

    def settled(self, spec: PipelineSpec, settings: Settings, now_ms: int) -> RepairForm:
        """Return the form with the doctor's action in place of ``auto``, and an exact time in place of ``10m ago``.

        Args:
            spec: Pipeline that the doctor examines when the action is ``auto``.
            settings: This machine's settings; they say where tables and state folders are.
            now_ms: Epoch milliseconds of now; a time such as ``10m ago`` counts from it.

        Raises:
            PlanRefusedError: The doctor recommends no action.
            BadMomentError: The time is not valid, or is in the future.
        """
        if self.action == "auto":
            return self.model_copy(update={"action": suggested_action(spec, settings)})
        if self.to is not None:
            moment = in_utc(parse_past(self.to, now_ms)).removesuffix(" UTC")
            return self.model_copy(update={"to": moment})
        return self

    def request(self, now_ms: int, source: Source = UNKNOWN) -> RewindRequest:
        """Return the request for a rewind; ``source`` is the code that would land the rows again."""
        return RewindRequest(None if self.to is None else parse_past(self.to, now_ms), self.table, source)


def plan_repair(form: RepairForm, spec: PipelineSpec, settings: Settings, now_ms: int) -> RepairPlan:
    """Return the plan of a settled form; writes nothing.

    Args:
        form: What the person asked for, after ``RepairForm.settled``.
        spec: Pipeline that is to be repaired.
        settings: This machine's settings; they say where tables and state folders are.
        now_ms: Epoch milliseconds of now; a time such as ``10m ago`` counts from it.

    Raises:
        PlanRefusedError: There is nothing to do, or it would do harm.
    """
    action = _settled_action(form)
    if action in REWINDS:
        source = row_source(spec, settings.apps, read_schema_files(spec, settings))
        request = form.request(now_ms, source)
        return make_plan(spec, places_of(settings, spec.warehouse), request).plan
    return plan_recovery(spec, settings, action)


def apply_repair(
    form: RepairForm,
    spec: PipelineSpec,
    settings: Settings,
    approved: str,
    now_ms: int,
    *,
    by: str,
    asked_by: str | None = None,
) -> Incident:
    """Apply the approved plan of a settled form, and return the record of it.

    Args:
        form: What the person asked for, after ``RepairForm.settled``.
        spec: Pipeline that is to be repaired.
        settings: This machine's settings; they say where tables and state folders are.
        approved: Hash of the plan that the person approved.
        now_ms: Epoch milliseconds of now; a time such as ``10m ago`` counts from it.
        by: Who approved it, for the record of the repair.
        asked_by: Who asked for it; None where that is not known.

    Raises:
        PlanChangedError: The facts have changed since; nothing was applied.
        PlanRefusedError: There is no such plan any more; nothing was applied.
    """
    action = _settled_action(form)
    if action in REWINDS:
        return apply_rewind(spec, places_of(settings, spec.warehouse), form.request(now_ms), approved, by=by, asked_by=asked_by)
    return apply_recovery(spec, settings, action, approved, by=by, asked_by=asked_by).incident


def _settled_action(form: RepairForm) -> RepairAction:
    if form.action == "auto":
        raise InvalidRepairError(form.pipeline, "the action must be settled before it is planned")
    return form.action
