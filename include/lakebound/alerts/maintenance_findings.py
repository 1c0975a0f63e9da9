"""What of the last maintenance runs failed, or that they died. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from lakebound.control.findings import Finding, Severity
from lakebound.operations.maintenance.steps import RunReport

SOURCE = "maintenance"
_RECENT_SECONDS = 86_400.0
_TEXT = 300
_WHOLE_RUN = ("", "run")


def maintenance_findings(runs: Sequence[RunReport], now: float) -> tuple[Finding, ...]:
    """Return the steps whose last try failed, one finding for each table and kind, and one when the last run died.

    Args:
        runs: Reports, oldest first.
        now: Epoch seconds; a failure of more than a day ago that was never tried again is not told any more.
    """
    failing: dict[tuple[str, str], Finding] = {}
    for run in runs:
        tried: set[tuple[str, str]] = {(step.step.table, step.step.kind) for step in run.steps if step.outcome != "skipped"}
        problems: dict[tuple[str, str], str] = {
            (step.step.table, step.step.kind): step.problem for step in run.steps if step.outcome == "failed"
        }
        if run.problem:
            problems[_WHOLE_RUN] = f"{run.run_id}: {run.problem}"
        else:
            tried.add(_WHOLE_RUN)
        for key in tried - set(problems):
            failing.pop(key, None)
        for key, problem in problems.items():
            failing[key] = _finding(key, problem, run, failing.get(key))
    return tuple(one for one in failing.values() if now - float(one.evidence["tried_at"] or 0.0) <= _RECENT_SECONDS)


def _finding(key: tuple[str, str], problem: str, run: RunReport, before: Finding | None) -> Finding:
    table, kind = key
    ended_at = run.ended_at_ms / 1000
    return Finding(
        cause=f"{table}:{kind}" if table else kind,
        severity=Severity.WARNING,
        what=(f"maintenance of {table}: {kind} failed: " if table else "maintenance run failed: ")
        + (problem[:_TEXT] or "no reason given"),
        since=before.since if before is not None else ended_at,
        evidence={"run_id": run.run_id, "tried_at": ended_at, "tries": int(before.evidence["tries"] or 0) + 1 if before else 1},
        runbook="maintenance-failed",
        done="no record was lost; the next run tries it again",
    )
