"""What the doctor says: findings of single rules, and the one verdict that follows from them. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, get_args

from pydantic import Field, computed_field

from lakebound.frozen import Frozen
from lakebound.ledger.lost import LostRange
from lakebound.ledger.marks import loss

DoctorVerdict = Literal["healthy", "starting", "repairable", "needs_approval", "needs_person"]
"""From the least to the most serious: the worst finding decides.

healthy · starting: not known yet, look again later · repairable: the next start repairs it and loses nothing ·
needs_approval: the repair loses records, or ends an application of somebody else · needs_person: facts contradict each other.
"""

_ORDER = get_args(DoctorVerdict)


class RuleFinding(Frozen):
    """What one rule found."""

    rule: str = Field(description="Its name, in kebab-case; never changes.")
    verdict: DoctorVerdict
    sentence: str = Field(description="What is wrong, what it costs, and what happens or must be done next.")
    runbook: str | None = Field(default=None, description="File name, without .md, in include/runbooks; None when healthy.")
    evidence: dict[str, Any] = Field(default_factory=dict, description="The facts that contradict each other, or that decide.")
    replays_records: int = Field(default=0, ge=0, description="Offsets that are read again; none is landed twice.")
    loses: tuple[LostRange, ...] = ()


class Diagnosis(Frozen):
    """The doctor's answer for one pipeline, or for one foreign checkpoint."""

    subject: str = Field(description="The pipeline's name, or the checkpoint's path.")
    findings: tuple[RuleFinding, ...] = ()
    numbers: dict[str, float | None] = Field(default_factory=dict, description="Warning numbers, units in the names.")

    @computed_field  # type: ignore[prop-decorator]
    @property
    def verdict(self) -> DoctorVerdict:
        """The worst of the findings; healthy without any."""
        return worst(finding.verdict for finding in self.findings)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def loses_records(self) -> int:
        """Offsets that are lost, over all findings."""
        return loss(lost for finding in self.findings for lost in finding.loses)

    @property
    def decisive(self) -> RuleFinding | None:
        """The finding that decides the verdict; None without findings."""
        return next((finding for finding in self.findings if finding.verdict == self.verdict), None)


def worst(verdicts: Iterable[DoctorVerdict]) -> DoctorVerdict:
    """Return the most serious verdict; healthy when there is none."""
    return max(verdicts, key=_ORDER.index, default="healthy")
