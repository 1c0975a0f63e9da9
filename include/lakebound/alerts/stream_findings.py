"""What the applications of a pipeline did wrong: events, which stand until an application lands again. Pure but for its end."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from lakebound.control import situations
from lakebound.control.desired import Desired
from lakebound.control.findings import Fact, Finding, Findings, Severity, read_source, write_findings
from lakebound.control.folder import ControlFolder, locked
from lakebound.control.progress import Outcome, Progress

SOURCE = "stream"
RUNS_LONG_SECONDS = 120.0
"""An application without anything to land counts as healthy after this time."""
_SILENT_SECONDS = 30.0

_SEVERITIES = {"failed": Severity.WARNING, "incident": Severity.WARNING}
_DONE = {
    "stalled": "the application is ended, and the next run of ingest__{pipeline} starts another from the tables",
    "failed": "the next run of ingest__{pipeline} starts another from the tables",
    "incident": "the next run of ingest__{pipeline} starts another from the tables",
    "refused": "the application ended, and a person must decide",
    "crash_loop": "ingest__{pipeline} is paused",
}


@dataclass(frozen=True)
class StreamFacts:
    """What decides whether an event is over: the wish, the newest progress, and how the newest application ended."""

    desired: Desired
    progress: Progress | None = None
    outcome: Outcome | None = None


def event(
    pipeline: str, verdict: str, reason: str, *, runbook: str, now: float, facts: Mapping[str, Fact] | None = None
) -> Finding:
    """Return the finding of something that happened just now; ``facts`` name application, DAG and run.

    Args:
        pipeline: Name of the pipeline, for the sentence on what was done already.
        verdict: What happened: ``stalled``, ``failed``, ``incident``, ``refused`` or ``crash_loop``; it becomes the cause.
        reason: One sentence on what happened, for the alert.
        runbook: Name of the page in ``include/runbooks``, without its ending.
        now: Epoch seconds at which it happened.
        facts: Evidence by name, of which None values are left out; None when there is no evidence.
    """
    return Finding(
        cause=verdict,
        severity=_SEVERITIES.get(verdict, Severity.CRITICAL),
        what=reason,
        since=now,
        evidence={**{name: value for name, value in (facts or {}).items() if value is not None}, "event_at": round(now, 3)},
        runbook=runbook,
        done=_DONE.get(verdict, "").format(pipeline=pipeline),
    )


def with_event(before: Iterable[Finding], found: Finding) -> tuple[Finding, ...]:
    """Return the findings with one more; of one cause only the newest is kept, from the time of the first."""
    same = [one.since for one in before if one.cause == found.cause]
    others = tuple(one for one in before if one.cause != found.cause)
    return (*others, found.model_copy(update={"since": min([found.since, *same])}))


def still_wrong(findings: Iterable[Finding], facts: StreamFacts, now: float) -> tuple[Finding, ...]:
    """Return those that are not over.

    Args:
        findings: Events that stood at the last look.
        facts: Wish, progress and outcome of the pipeline as they are now.
        now: Epoch seconds of this look.
    """
    return tuple(one for one in findings if not _is_over(one, facts, now))


def waiting(pipeline: str, progress: Progress | None, now: float) -> tuple[Finding, ...]:
    """Return the outage that the application says it waits out, if it does, and the attempts that fail in a row.

    Args:
        pipeline: Name of the pipeline that is looked at.
        progress: Newest progress of its application; None when no application has written any.
        now: Epoch seconds of this look.
    """
    if progress is None or now - progress.updated_at > _SILENT_SECONDS:
        return ()
    if progress.state == "waiting" and not situations.awaits_topic(progress, now):
        return (_of_situation("waiting", situations.waiting(progress), progress, now, Severity.CRITICAL),)
    if progress.failures and progress.state != "waiting":
        return (_of_situation("failing", situations.failing(progress), progress, now, Severity.WARNING),)
    return ()


def _of_situation(cause: str, found: situations.Situation, progress: Progress, now: float, severity: Severity) -> Finding:
    return Finding(
        cause=cause,
        severity=severity,
        what=f"{progress.app_id}: {found}",
        since=now,
        evidence={"app_id": progress.app_id},
        runbook=found.runbook,
        done="the application waits for it, and continues by itself",
    )


def add_event(control: ControlFolder, found: Finding) -> Findings:
    """Write the event down beside those that are not over."""
    with locked(control.findings / f"{SOURCE}.json"):
        before = read_source(control, SOURCE)
        return write_findings(control, SOURCE, with_event(before.findings if before else (), found))


def look_again(control: ControlFolder, facts: StreamFacts, now: float) -> Findings:
    """Write down which of the events still stand.

    Args:
        control: State folder of the pipeline; its findings of the stream are replaced.
        facts: Wish, progress and outcome of the pipeline as they are now.
        now: Epoch seconds of this look.
    """
    with locked(control.findings / f"{SOURCE}.json"):
        before = read_source(control, SOURCE)
        return write_findings(control, SOURCE, still_wrong(before.findings if before else (), facts, now))


def _is_over(finding: Finding, facts: StreamFacts, now: float) -> bool:
    at = float(finding.evidence.get("event_at") or finding.since)
    if not facts.desired.wants_app:
        return True
    if facts.outcome is not None and facts.outcome.verdict in ("completed", "stopped") and facts.outcome.ended_at > at:
        return True
    progress = facts.progress
    if progress is None or progress.started_at <= at or progress.state != "running":
        return False
    has_landed = progress.last_commit_at is not None and progress.last_commit_at > progress.started_at
    return has_landed or (now - progress.started_at > RUNS_LONG_SECONDS and now - progress.updated_at < _SILENT_SECONDS)
