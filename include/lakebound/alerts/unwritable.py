"""The alert that the state cannot be written, and how often it is told where nothing can be remembered. Pure."""

from __future__ import annotations

import os
from pathlib import Path

from lakebound.alerts.model import EVERYTHING, Memory, Policy
from lakebound.control.findings import Finding, Findings, Severity

SOURCE, CAUSE = "state", "unwritable"

_TURN_SECONDS = 3600
_ROUND_SECONDS = 60


def look_at_state(home: Path, problem: OSError | None, memory: Memory, now: float) -> Findings:
    """Return whether the state can be written, as findings.

    Args:
        home: LAKEBOUND_HOME.
        problem: What its disk answered; None where it took the file.
        memory: Of alerts, which knows since when.
        now: Epoch seconds.
    """
    found = () if problem is None else (_unwritable(home, problem, memory, now),)
    return Findings(source=SOURCE, pipeline=EVERYTHING, at=now, findings=found)


def told_at_once(policy: Policy) -> Policy:
    """Return the policy for a round that nobody remembers: what has to last for a while before it is told never would."""
    return policy.model_copy(update={"open_after_seconds": 0.0})


def is_turn_without_memory(now: float) -> bool:
    """Return whether a round that nobody remembers sends: in the first minute of each hour, so that people get one an hour."""
    return now % _TURN_SECONDS < _ROUND_SECONDS


def _unwritable(home: Path, problem: OSError, memory: Memory, now: float) -> Finding:
    reason = os.strerror(problem.errno or 0)
    return Finding(
        cause=CAUSE,
        severity=Severity.CRITICAL,
        what=f"{home} cannot be written ({reason}): no application can be started, and progress is not recorded",
        since=next((alert.since for alert in memory.alerts if alert.key == (EVERYTHING, f"{SOURCE}:{CAUSE}")), now),
        evidence={"folder": str(home), "reason": reason},
        runbook="disk-full",
        done="alerts are still sent; applications that run continue",
    )
