"""What the doctor's diagnosis means for alerts. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from lakebound.control.findings import Fact, Finding, Severity
from lakebound.control.situations import clock_time
from lakebound.control.state_text import cut_text
from lakebound.inspection.doctor.diagnosis import Diagnosis, RuleFinding

SOURCE = "doctor"

RECORDS_LOST_FROM = "records_lost_from"
"""Evidence: when Kafka's retention deletes the first record that waits, by what the doctor knew when it looked."""

NEVER_STARTED = "never-started"
_CRITICAL = frozenset({"broker-unavailable", "application-waiting"})
"""Nothing lands meanwhile, so they are not called better at first than later."""

_INFO = frozenset({"checkpoint-grows"})
_TEXT = 200


def doctor_findings(diagnosis: Diagnosis, now: float) -> tuple[Finding, ...]:
    """Return what of a diagnosis is wrong; what a later look may call well is not.

    Of a pipeline that nobody has asked to start nothing is: who starts it is told by then.
    """
    if any(rule.rule == NEVER_STARTED for rule in diagnosis.findings):
        return ()
    left = diagnosis.numbers.get("seconds_to_data_loss")
    facts: dict[str, Fact] = {} if left is None else {RECORDS_LOST_FROM: clock_time(now + left)}
    return tuple(
        _finding(rule, severity, now, facts) for rule in diagnosis.findings if (severity := severity_of(rule)) is not None
    )


def severity_of(found: RuleFinding) -> Severity | None:
    """Return how much a finding matters; None where nothing is wrong: such a finding says how it is, and names no page."""
    if found.runbook is None:
        return None
    if found.rule in _CRITICAL or found.verdict in ("needs_person", "needs_approval"):
        return Severity.CRITICAL
    if found.verdict == "starting":
        return None
    return Severity.INFO if found.rule in _INFO else Severity.WARNING


def _finding(found: RuleFinding, severity: Severity, now: float, facts: Mapping[str, Fact]) -> Finding:
    subject = found.evidence.get("table") or found.evidence.get("reference")
    return Finding(
        cause=f"{found.rule}:{subject}" if subject else found.rule,
        severity=severity,
        what=found.sentence,
        since=now,
        evidence={**{name: _fact(value) for name, value in found.evidence.items()}, **facts},
        runbook=found.runbook,
        done="the next start repairs it" if found.verdict == "repairable" else "",
    )


def _fact(value: Any) -> Fact:
    if value is None or isinstance(value, str | int | float | bool):
        return value
    return cut_text(json.dumps(value, default=str), _TEXT)
