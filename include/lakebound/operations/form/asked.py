"""One form for all that a person approves before it is done: repairs, rewinds, redos, and the undoing of them."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field, field_validator, model_validator

from lakebound.errors import LakeboundError
from lakebound.frozen import FrozenRecord
from lakebound.operations.recovery.plan import RequestedRepair
from lakebound.operations.recovery.suggestion import suggested_action
from lakebound.settings import Settings
from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.times import in_utc, parse_past

_TAKEN_BY: Mapping[str, tuple[RequestedRepair, ...]] = {
    "to": ("rewind",),
    "table": ("rewind", "undo_rewind"),
    "source": ("redo",),
    "range_from": ("redo",),
    "range_to": ("redo",),
}
"""Which actions take a field of the form; all take the others."""


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
    source: str | None = Field(default=None, description="For a redo: what this version of the code landed, by its hash.")
    range_from: str | None = Field(default=None, description="For a redo: first offset, as of ``parse_bound``.")
    range_to: str | None = Field(default=None, description="For a redo: end of the range (exclusive); latest by default.")

    @field_validator(*_TAKEN_BY, mode="before")
    @classmethod
    def _empty_is_none(cls, value: object) -> object:
        return value or None

    @model_validator(mode="after")
    def _fits_its_action(self) -> RepairForm:
        for name, actions in _TAKEN_BY.items():
            if getattr(self, name) is not None and self.action not in actions:
                raise InvalidRepairError(
                    self.pipeline, f"the action {self.action} does not take `{name}`, only {' and '.join(actions)} do"
                )
        if self.action == "rewind" and self.to is None:
            raise InvalidRepairError(self.pipeline, "the action rewind needs a time to go back to (`to`)")
        if self.action == "redo" and self.source is None and self.range_from is None:
            raise InvalidRepairError(
                self.pipeline, "the action redo needs the hash of a version of the code (`source`), or `range_from`"
            )
        if self.range_to is not None and self.range_from is None:
            raise InvalidRepairError(self.pipeline, "`range_to` goes with `range_from` only")
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
