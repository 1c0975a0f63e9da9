"""Which objectives of a pipeline are missed now. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from lakebound.control.desired import Desired
from lakebound.control.findings import Finding, Severity
from lakebound.control.progress import Outcome, Progress
from lakebound.control.quarantine_rate import flood_of
from lakebound.control.status import waiting_records
from lakebound.control.summaries import ProofSummary, ValidationSummary
from lakebound.landing.landed_freshness import WINDOW_SECONDS
from lakebound.spec.objectives import ObjectivesSpec
from lakebound.spec.times import seconds_in_words

SOURCE = "objectives"


@dataclass(frozen=True)
class ObjectiveFacts:
    """What the objectives are judged by.

    Attributes:
        desired: The desired state: where nothing is to land, nothing is late.
        progress: The application's latest.
        outcome: How that application ended; None while it lives.
    """

    desired: Desired = field(default_factory=Desired)
    progress: Progress | None = None
    outcome: Outcome | None = None
    proof: ProofSummary | None = None
    validation: ValidationSummary | None = None

    @property
    def is_wanted(self) -> bool:
        """Whether the pipeline is wanted running."""
        return self.desired.wants_app


def objective_findings(spec: ObjectivesSpec, facts: ObjectiveFacts, now: float) -> tuple[Finding, ...]:
    """Return a finding for each objective that is missed.

    Args:
        spec: The pipeline's objectives; one that is not set is not judged.
        facts: The pipeline as it was read.
        now: Epoch seconds.
    """
    found = (
        _freshness(spec, facts, now),
        _lag(spec, facts, now),
        _completeness(spec, facts),
        _quality(spec, facts),
        _quarantine_rate(spec, facts, now),
    )
    return tuple(finding for findings in found for finding in findings)


def _freshness(spec: ObjectivesSpec, facts: ObjectiveFacts, now: float) -> Iterator[Finding]:
    progress, allowed = facts.progress, spec.freshness_p99_seconds
    if allowed is None or not facts.is_wanted or progress is None or progress.freshness_p99_seconds is None:
        return
    p99 = progress.freshness_p99_seconds
    is_recent = progress.last_commit_at is not None and now - progress.last_commit_at <= WINDOW_SECONDS
    if is_recent and p99 > allowed:
        yield Finding(
            cause="freshness",
            severity=Severity.WARNING,
            what=f"the p99 of freshness is {p99:g} s; the objective is {allowed:g} s",
            since=now,
            evidence={"freshness_p99_seconds": p99, "objective_seconds": allowed, "app_id": progress.app_id},
            runbook="freshness",
        )


def _lag(spec: ObjectivesSpec, facts: ObjectiveFacts, now: float) -> Iterator[Finding]:
    """The newest landed record is older than every record that waits, so its age is more than any of them waits."""
    progress, allowed = facts.progress, spec.lag_seconds
    if allowed is None or not facts.is_wanted or progress is None or progress.newest_record_ms is None:
        return
    behind, age = waiting_records(progress), now - progress.newest_record_ms / 1000
    if behind and age > allowed:
        yield Finding(
            cause="lag",
            severity=Severity.WARNING,
            what=f"{behind} records wait, and the newest that landed is {seconds_in_words(age)} old; "
            f"the objective is {allowed:g} s",
            since=now,
            evidence={"lag_records": behind, "age_seconds": round(age, 1), "objective_seconds": allowed},
            runbook="lag",
        )


def _completeness(spec: ObjectivesSpec, facts: ObjectiveFacts) -> Iterator[Finding]:
    proof = facts.proof
    if spec.completeness and proof is not None and not proof.ok:
        yield Finding(
            cause="completeness",
            severity=Severity.CRITICAL,
            what=proof.sentence,
            since=proof.at,
            evidence={"missing": proof.missing, "duplicated": proof.duplicated},
            runbook="proof-failed",
        )


def _quality(spec: ObjectivesSpec, facts: ObjectiveFacts) -> Iterator[Finding]:
    allowed, validation = spec.quality_pass_rate, facts.validation
    rate = validation.pass_rate if validation is not None else None
    if allowed is None or validation is None or rate is None or rate >= allowed:
        return
    yield Finding(
        cause="quality",
        severity=Severity.WARNING,
        what=f"{rate:.2%} of the rows in the last validation are correct; the objective is {allowed:.2%}",
        since=validation.at,
        evidence={"evaluated": validation.evaluated, "passed": validation.passed, "objective": allowed},
        runbook="quality",
    )


def _quarantine_rate(spec: ObjectivesSpec, facts: ObjectiveFacts, now: float) -> Iterator[Finding]:
    flood = flood_of(spec, facts.desired, facts.progress, facts.outcome, now)
    if flood is None:
        return
    recent = flood.recent
    yield Finding(
        cause="quarantine-rate",
        severity=Severity.CRITICAL if flood.has_stopped else Severity.WARNING,
        what=str(flood),
        since=now,
        evidence={
            "records": recent.records,
            "quarantined": recent.quarantined,
            "share": round(recent.share, 4),
            "objective": flood.allowed,
            "over_seconds": recent.over_seconds,
            **{f"reason {reason}": count for reason, count in recent.reasons.items()},
        },
        runbook="quarantine-flood",
        done="the application ended, and the pipeline is held" if flood.has_stopped else "",
    )
