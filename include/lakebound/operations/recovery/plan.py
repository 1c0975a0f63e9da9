"""A plan: what a repair would do, step by step, with a hash of everything that decides it. Pure."""

from __future__ import annotations

import hashlib
import json
from typing import Any, Literal

from pydantic import Field

from lakebound.errors import LakeboundError
from lakebound.frozen import Frozen
from lakebound.ledger.lost import LostRange
from lakebound.ledger.marks import loss

RepairAction = Literal["resume", "rebase", "accept_loss", "new_incarnation", "drop_zombie", "repoint", "rewind", "undo_rewind"]
FormAction = Literal[RepairAction, "redo", "undo_redo"]
"""What a form has a plan for."""
RequestedRepair = Literal["auto", FormAction]
"""What a person can ask for; ``auto`` is the action for the doctor's decisive finding."""

HASH_CHARACTERS = 12


class PlanChangedError(LakeboundError):
    """The facts have changed since the plan was approved."""

    def __init__(self, pipeline: str, approved: str, found: str) -> None:
        super().__init__(
            f"pipeline {pipeline!r}: plan {approved} was approved, but the facts have changed and the plan is now {found}; "
            f"nothing was applied. Check the new plan, and approve it"
        )


class PlanRefusedError(LakeboundError):
    """The action has nothing to do, or would do harm."""

    def __init__(self, pipeline: str, action: str, reason: str) -> None:
        super().__init__(f"pipeline {pipeline!r}: no plan for {action}: {reason}")


class RepairStep(Frozen):
    """One step: ``what`` for the person who approves it, table and detail for the code that does it."""

    what: str
    table: str | None = Field(default=None, description="The table's id.")
    detail: dict[str, Any] = Field(default_factory=dict, description="What the code needs: offsets, versions, ids.")


class ApprovablePlan(Frozen):
    """What is approved.

    ``facts`` hold only what must still be true when the plan is applied, as codes and numbers. Sentences and estimates are not
    part of the hash: another wording of the same plan is still approved.
    """

    pipeline: str
    action: str
    summary: str
    steps: tuple[RepairStep, ...]
    facts: dict[str, Any] = Field(default_factory=dict)
    loses: tuple[LostRange, ...] = ()
    replays_records: int = Field(default=0, description="Offsets that are read again, as of now.")
    removes_rows: dict[str, int] = Field(default_factory=dict, description="Per table id, as of now.")
    estimate_seconds: float | None = Field(default=None, description="Until the stream has caught up again.")
    notes: tuple[str, ...] = ()

    @property
    def hash(self) -> str:
        """Twelve characters of a digest of what is done and what it depends on."""
        decided = {
            **self.model_dump(mode="json", include={"pipeline", "action", "facts", "loses"}),
            "steps": [step.model_dump(mode="json", include={"table", "detail"}) for step in self.steps],
        }
        text = json.dumps(decided, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:HASH_CHARACTERS]

    def markdown(self) -> str:
        """Return the plan as the page that a person approves."""
        lines = [f"### {self.action} {self.pipeline}: {self.summary}", ""]
        lines += [f"{number}. {step.what}" for number, step in enumerate(self.steps, start=1)]
        lines.append("")
        lost = loss(self.loses)
        lines.append(f"- offsets lost permanently: **{lost:,}**")
        lines += [f"  - {lost.topic} partition {lost.partition}: [{lost.start}, {lost.end})" for lost in self.loses]
        lines.append(f"- offsets read again: {self.replays_records:,}")
        lines += [f"- rows removed from {table}: {rows:,}" for table, rows in self.removes_rows.items()]
        if self.estimate_seconds is not None:
            lines.append(f"- caught up again after about {self.estimate_seconds:.0f} s")
        lines += [f"- {note}" for note in self.notes]
        return "\n".join([*lines, "", f"Plan `{self.hash}`. It is refused if its facts have changed when it is applied."])


class RepairPlan(ApprovablePlan):
    """The plan of a repair of the pipeline's tables."""

    action: RepairAction


def check_hash(plan: ApprovablePlan, approved: str) -> None:
    """Raise PlanChangedError when the plan is not the one that was approved.

    Raises:
        PlanChangedError: The plan's hash is not ``approved``.
    """
    if plan.hash != approved:
        raise PlanChangedError(plan.pipeline, approved, plan.hash)
