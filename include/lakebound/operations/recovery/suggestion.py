"""Which action repairs the doctor's decisive finding."""

from __future__ import annotations

from lakebound.inspection.doctor.diagnosis import Diagnosis
from lakebound.operations.recovery.plan import PlanRefusedError, RepairAction
from lakebound.settings import Settings
from lakebound.spec.pipeline import PipelineSpec

ACTION_OF_RUNBOOK: dict[str, RepairAction] = {
    "crash-loop": "resume",
    "stall": "resume",
    "bad-entry": "rebase",
    "catalog-behind": "repoint",
    "ledger-behind": "rebase",
    "no-ledger": "rebase",
    "table-restored": "rebase",
    "retention-passed": "accept_loss",
    "topic-recreated": "new_incarnation",
    "two-drivers": "drop_zombie",
}
"""By the page that a finding names; a finding whose page is not here is repaired outside of Lakebound."""


def suggested_action(spec: PipelineSpec, settings: Settings) -> RepairAction:
    """Examine the pipeline, and return the action for its decisive finding.

    Raises:
        PlanRefusedError: Nothing is wrong, the next start repairs it, or no action repairs it.
    """
    from lakebound.inspection.doctor.examine import examine_pipeline

    return action_for(examine_pipeline(spec, settings))


def action_for(diagnosis: Diagnosis) -> RepairAction:
    """Return the action for a diagnosis. Pure.

    Raises:
        PlanRefusedError: There is none.
    """
    decisive = diagnosis.decisive
    if decisive is None:
        raise PlanRefusedError(diagnosis.subject, "auto", "the doctor finds nothing wrong; there is nothing to do")
    action = ACTION_OF_RUNBOOK.get(decisive.runbook or "")
    if diagnosis.verdict == "healthy" and any(finding.rule == "not-wanted" for finding in diagnosis.findings):
        action = "resume"
    if action is None:
        page = f"; see the runbook {decisive.runbook}" if decisive.runbook else ""
        raise PlanRefusedError(diagnosis.subject, "auto", f"{decisive.rule}: {decisive.sentence}{page}")
    return action
