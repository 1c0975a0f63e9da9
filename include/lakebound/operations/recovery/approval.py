"""Who may approve a repair, and which plan an answer approves. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lakebound.errors import LakeboundError
from lakebound.plain_text import markdown_text

REJECT = "Reject"
_APPROVE = "Approve "


class NotApprovedError(LakeboundError):
    """Nobody who may do so has approved the plan."""

    def __init__(self, pipeline: str, reason: str) -> None:
        super().__init__(f"pipeline {pipeline!r}: {reason}; nothing was applied")


@dataclass(frozen=True)
class ApprovalRule:
    """Who may approve one repair.

    Attributes:
        pipeline: Its name.
        asked_by: Who asked for the repair; None where that is not known.
        approvers: ``approvers`` of the pipeline; empty where every user may whom Airflow lets answer.
        self_approval: Whether who asked may approve.
    """

    pipeline: str
    asked_by: str | None
    approvers: tuple[str, ...] = ()
    self_approval: bool = False

    @property
    def eligible(self) -> tuple[str, ...]:
        """Those of ``approvers`` who may approve this repair."""
        return tuple(name for name in self.approvers if self.self_approval or name != self.asked_by)

    def check_can_be_asked(self) -> None:
        """Refuse a question that nobody could answer.

        Raises:
            NotApprovedError: No approver is left, or it is not known who asked and must not approve.
        """
        if not self.self_approval and self.asked_by is None:
            raise NotApprovedError(
                self.pipeline,
                "it is not known who asked for the repair, and who asked may not approve it. Trigger the DAG in Airflow's UI, "
                "or by its REST API",
            )
        if self.approvers and not self.eligible:
            raise NotApprovedError(
                self.pipeline,
                f"{self.asked_by} asked for the repair and is the only one in `approvers` of the pipeline's YAML. Add a "
                f"colleague there, or have a colleague trigger the DAG",
            )

    def checked(self, approver: str | None) -> str:
        """Return who approved, if that person may.

        Args:
            approver: The name under which Airflow knows who answered; None where nobody did.

        Raises:
            NotApprovedError: It is nobody, somebody who is not among ``approvers``, or who asked.
        """
        if approver is None:
            raise NotApprovedError(self.pipeline, "Airflow does not say who approved the plan")
        if not self.self_approval and approver == self.asked_by:
            raise NotApprovedError(
                self.pipeline,
                f"{approver} asked for the repair and may not approve it. Trigger the DAG again and have a colleague approve. "
                f"Where one person runs everything, set LAKEBOUND_SELF_APPROVAL=allow",
            )
        if self.approvers and approver not in self.approvers:
            raise NotApprovedError(
                self.pipeline,
                f"{approver} is not in `approvers` of the pipeline's YAML ({', '.join(self.approvers)}). Trigger the DAG "
                f"again, and have one of them approve",
            )
        return approver

    def sentence(self) -> str:
        """Return in Markdown who asked and who may approve, for the page that a person reads before the answer."""
        asked = f"Asked by {markdown_text(self.asked_by) if self.asked_by else 'an unknown user'}."
        who = ", ".join(map(markdown_text, self.eligible)) or "every user who may answer in Airflow"
        if self.self_approval and self.asked_by in (self.approvers or (self.asked_by,)):
            return f"{asked} May approve: {who}. The user who asked may approve, too (LAKEBOUND_SELF_APPROVAL=allow)."
        return f"{asked} May approve: {who}, but not the user who asked."


def options_for(plan_hash: str) -> list[str]:
    """Return the answers that a person can give to a plan. The answer itself names the plan that it approves."""
    return [f"{_APPROVE}{plan_hash}", REJECT]


def approved_hash(chosen: Sequence[str]) -> str | None:
    """Return the hash of the plan that an answer approves; None where it approves none."""
    if len(chosen) != 1 or not chosen[0].startswith(_APPROVE):
        return None
    return chosen[0].removeprefix(_APPROVE) or None
