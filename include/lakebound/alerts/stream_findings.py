"""What the applications of a pipeline did wrong: events, which stand until an application lands again. Pure but for its end.

The task that has an application in its care writes its events down. ``ended_event`` finds an end that no task has noted,
because no task has it in care, or because Airflow is down. Both give one event, which is told once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from lakebound.alerts.concerns import DEAD
from lakebound.control import situations
from lakebound.control.desired import Desired
from lakebound.control.findings import Fact, Finding, Findings, Severity, change_findings
from lakebound.control.folder import ControlFolder
from lakebound.control.progress import Outcome, Progress
from lakebound.control.submission import Submission
from lakebound.control.supervision import START_SECONDS, End, decide_end, is_incident
from lakebound.errors import LakeboundError

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
    """What decides whether an event is over, and whether there is a new one.

    Attributes:
        desired: The desired state.
        progress: The newest.
        outcome: How the application that was submitted last ended; None when it lives, or died without one.
        dead: That application, when it lives no longer; None otherwise.
    """

    desired: Desired
    progress: Progress | None = None
    outcome: Outcome | None = None
    dead: Submission | None = None


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
        facts: Desired state, progress and outcome of the pipeline as they are now.
        now: Epoch seconds of this look.
    """
    return tuple(one for one in findings if not _is_over(one, facts, now))


def ended_event(pipeline: str, noted: Iterable[Finding], facts: StreamFacts, now: float) -> Finding | None:
    """Return how the last application ended, if that was badly and is not noted.

    Args:
        pipeline: Name of the pipeline.
        noted: The events that stand.
        facts: Of the pipeline as they are now.
        now: Epoch seconds of this look.
    """
    submission, outcome = facts.dead, facts.outcome
    if submission is None or not facts.desired.wants_app or _is_being_started(submission, now):
        return None
    if any(one.evidence.get("app_id") == submission.app_id for one in noted):
        return None
    ended_at = _last_sign(submission, facts)
    end = decide_end(submission, outcome, facts.progress, facts.desired)
    # What ended before the desired state was changed is what the person who wrote it knew.
    if ended_at < facts.desired.since or end.end not in (End.FAILED, End.REFUSED):
        return None
    has_page = outcome is not None and (end.end is End.REFUSED or outcome.is_outage)
    page = outcome.runbook if outcome is not None and has_page else LakeboundError.runbook
    if end.end is End.FAILED and page == LakeboundError.runbook:
        page = DEAD
    was_long = is_incident(ended_at - submission.submitted_at, end.landed)
    verdict = "refused" if end.end is End.REFUSED else "incident" if was_long else "failed"
    found = event(pipeline, verdict, end.reason, runbook=page, now=now, facts={"app_id": submission.app_id})
    # Nobody has it in care, so nobody is known to start another.
    return found if end.end is End.REFUSED else found.model_copy(update={"done": ""})


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
    return change_findings(control, SOURCE, lambda before: with_event(before, found))


def look_again(control: ControlFolder, facts: StreamFacts, now: float) -> Findings:
    """Write down which of the events still stand, and an end that nobody has noted.

    Args:
        control: State folder of the pipeline; its findings of the stream are replaced.
        facts: Desired state, progress and outcome of the pipeline as they are now.
        now: Epoch seconds of this look.
    """

    def decide(before: tuple[Finding, ...]) -> tuple[Finding, ...]:
        standing = still_wrong(before, facts, now)
        ended = ended_event(control.pipeline, standing, facts, now)
        return standing if ended is None else with_event(standing, ended)

    return change_findings(control, SOURCE, decide)


def _is_being_started(submission: Submission, now: float) -> bool:
    """Whether its process may not be there yet."""
    return submission.pid is None and submission.remote_id is None and now - submission.submitted_at < START_SECONDS


def _last_sign(submission: Submission, facts: StreamFacts) -> float:
    """Return when the application was last known to live."""
    if facts.outcome is not None:
        return facts.outcome.ended_at
    own = facts.progress is not None and facts.progress.app_id == submission.app_id
    return facts.progress.updated_at if facts.progress is not None and own else submission.submitted_at


def _is_over(finding: Finding, facts: StreamFacts, now: float) -> bool:
    at = float(finding.evidence.get("event_at") or finding.since)
    if not facts.desired.wants_app:
        return True
    if facts.outcome is not None and facts.outcome.verdict in ("completed", "stopped") and facts.outcome.ended_at > at:
        return True
    progress = facts.progress
    if progress is None or progress.state != "running":
        return False
    # An end may be noted when another application has run for long, such as after an outage of Airflow.
    is_another = finding.evidence.get("app_id", progress.app_id) != progress.app_id
    if progress.started_at <= at and not (is_another and now - progress.updated_at < _SILENT_SECONDS):
        return False
    has_landed = progress.last_commit_at is not None and progress.last_commit_at > progress.started_at
    return has_landed or (now - progress.started_at > RUNS_LONG_SECONDS and now - progress.updated_at < _SILENT_SECONDS)
