"""What the operator and its trigger decide: attach or submit, ended or stalled, incident or crash loop. Pure.

How a task that finds a living application knows what to do (``decide_start``):

| the application found alive | means | so |
| --- | --- | --- |
| was submitted by this same try | the task resumes, or a worker was lost | attach |
| belongs to an earlier try of this run | a person cleared the task | stop it, submit a new one |
| belongs to a run that is over, which was deferred to its end | a person marked the task | stop it, submit a new one |
| belongs to a run that ended by itself, or died in a worker | Airflow was killed, a trigger crashed | attach |
| belongs to a run of which Airflow knows nothing | Airflow's database was lost | attach |
| belongs to a run that is not over | two runs, one pipeline | attach, and watch only |
| has no owner in Airflow | a person started it by hand | attach, and watch only |
| was condemned | it stalled | end it, submit a new one |

So an Airflow that is killed and started again finds its application, and a task that was cleared or marked while no
triggerer ran stops it. Never does one application stand beside another.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from lakebound.control.desired import Desired
from lakebound.control.progress import Outcome, Progress
from lakebound.control.submission import Custody, Owner, Submission
from lakebound.ledger.marks import NextOffsets, lag
from lakebound.spec.limits import ThresholdsSpec
from lakebound.spec.pipeline import parse_freshness

# An application writes its first progress when Python and JVM are up, which takes long on a busy machine.
START_SECONDS = 180.0
LONGEST_START_SECONDS = 900.0
"""With signs of life: long enough to read the ledger of a table that has to be scanned for it."""

LANDED_LONG_SECONDS = 600.0

_OVER = frozenset({"success", "failed", "skipped", "removed", "upstream_failed"})


class Start(StrEnum):
    """What a task does about the application when it starts."""

    IDLE = "idle"
    ATTACH = "attach"
    REPLACE = "replace"
    SUBMIT = "submit"


@dataclass(frozen=True)
class StartDecision:
    """What to do, and why, in words for the log."""

    start: Start
    reason: str


def decide_start(
    desired: Desired, submission: Submission | None, alive: bool, me: Owner, owner_state: str | None
) -> StartDecision:
    """Return what the task does first.

    Args:
        desired: The desired state.
        submission: The record of the application that was submitted last.
        alive: Whether an application of the pipeline is starting or running.
        me: This try.
        owner_state: What Airflow says of the task that owns ``submission``; None when it knows no such task.
    """
    if not alive:
        if desired.wants_app:
            return StartDecision(Start.SUBMIT, "no application is running")
        return StartDecision(Start.IDLE, f"the pipeline is {desired.state}: {desired.reason or 'no reason given'}")
    if submission is None or submission.owner is None:
        return StartDecision(Start.ATTACH, "an application that was started outside Airflow is running")
    app, owner = submission.app_id, submission.owner
    if submission.custody is Custody.CONDEMNED:
        return StartDecision(Start.REPLACE, f"{app} stalled")
    if owner == me:
        return StartDecision(Start.ATTACH, f"{app} was submitted by this try")
    if owner.is_same_run(me):
        return StartDecision(Start.REPLACE, f"{app} belongs to try {owner.try_number}, which was cleared")
    if owner_state in _OVER and submission.custody is Custody.WATCHED:
        return StartDecision(Start.REPLACE, f"{app} belongs to run {owner.run_id}, which was marked {owner_state}")
    if owner_state in _OVER or owner_state is None:
        return StartDecision(Start.ATTACH, f"{app} outlived run {owner.run_id}")
    return StartDecision(Start.ATTACH, f"{app} is supervised by run {owner.run_id}, which is {owner_state}")


def belongs_to(submission: Submission, me: Owner, owner_state: str | None) -> bool:
    """Whether a task that attaches becomes the application's owner; else it only watches.

    Args:
        submission: Record of the application that the task found alive.
        me: This try of the task.
        owner_state: What Airflow says of the task that owns ``submission``; None when it knows no such task.
    """
    if submission.owner is None:
        return False
    return submission.owner == me or owner_state is None or owner_state in _OVER


# --- while it runs -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class KafkaView:
    """How far Kafka was ahead of the application, as seen from outside.

    Attributes:
        behind_since: Epoch seconds at which records were first seen waiting with the same marks as now; None when
            nothing waits.
        marks: The application's high-water marks at that time.
        waiting_records: Offsets between the marks and Kafka's end.
    """

    behind_since: float | None = None
    marks: NextOffsets | None = None
    waiting_records: int = 0


def look_at_kafka(before: KafkaView, progress: Progress | None, latest: NextOffsets, now: float) -> KafkaView:
    """Return the view after one more look at Kafka's latest offsets.

    Args:
        before: The view after the look before this one.
        progress: Newest progress of the application; None when it has written none.
        latest: Kafka's end: per topic and partition, the offset that the next record gets.
        now: Epoch seconds of this look.
    """
    if progress is None or not progress.high_water_marks:
        return KafkaView()
    marks = progress.high_water_marks
    waiting = lag(marks, latest)
    if not waiting:
        return KafkaView(marks=marks)
    unchanged = before.behind_since is not None and before.marks == marks
    return KafkaView(before.behind_since if unchanged else now, marks, waiting)


def seconds_without_progress(progress: Progress, committed_at: float, now: float) -> float:
    """Return how long an application has done nothing about records that wait.

    A search for records on which the transform raises is progress, which only its end shows in the tables.

    Args:
        progress: Of the application.
        committed_at: Since when the tables have stood where they stand, in epoch seconds.
        now: Epoch seconds.
    """
    return now - max(committed_at, progress.search.changed_at if progress.search is not None else 0.0)


def patience_seconds(thresholds: ThresholdsSpec, freshness: str) -> float:
    """Return how long an application may be without progress: between two batches nothing is committed.

    Args:
        thresholds: The pipeline's.
        freshness: What the application runs with.
    """
    return thresholds.stall_seconds + 2 * (parse_freshness(freshness) or 0.0)


@dataclass(frozen=True)
class Stall:
    """The verdict on an application that lives and does not land."""

    kind: Literal["silent", "never_started", "not_committing"]
    reason: str


def stall(
    thresholds: ThresholdsSpec,
    freshness: str,
    submission: Submission,
    progress: Progress | None,
    kafka: KafkaView,
    now: float,
) -> Stall | None:
    """Return the verdict on a living application, or None while there is nothing to say.

    An application that says it waits out an outage is believed until its own limit ends it. One that searches a batch for
    records on which the transform raises is believed as long as it tries further ones.

    Args:
        thresholds: The pipeline's.
        freshness: What the application runs with; between two batches nothing is committed.
        submission: Of the application.
        progress: The latest, perhaps of the application before.
        kafka: The outside view.
        now: Epoch seconds.
    """
    limit, age = thresholds.stall_seconds, now - submission.submitted_at
    if progress is None or progress.app_id != submission.app_id:
        if age > max(START_SECONDS, limit):
            return Stall(
                "never_started", f"{submission.app_id} was submitted {age:.0f} s ago and has not reported any progress"
            )
        return None
    silent = now - progress.updated_at
    if silent > limit:
        return Stall("silent", f"{submission.app_id} has reported no progress for {silent:.0f} s, more than {limit:.0f} s")
    starts = now - max(submission.submitted_at, progress.state_since or 0.0)
    if progress.state == "starting" and starts > LONGEST_START_SECONDS:
        return Stall(
            "never_started", f"{submission.app_id} has been starting for {starts:.0f} s: it is alive, but lands nothing"
        )
    if progress.state != "running" or kafka.behind_since is None or kafka.marks != progress.high_water_marks:
        return None
    behind = seconds_without_progress(progress, kafka.behind_since, now)
    if behind > patience_seconds(thresholds, freshness):
        return Stall(
            "not_committing",
            f"{kafka.waiting_records} records wait in Kafka, but {submission.app_id} has committed nothing for {behind:.0f} s",
        )
    return None


def is_outdated(running_hash: str, current_hash: str) -> bool:
    """Whether the application runs another YAML or transform than the files hold now; unknown hashes are not."""
    return bool(running_hash and current_hash) and running_hash != current_hash


# --- when it ended -----------------------------------------------------------------------------------------------


class End(StrEnum):
    """What an application's end means for the task."""

    DONE = "done"
    RESTART = "restart"
    SUPERSEDED = "superseded"
    REFUSED = "refused"
    FAILED = "failed"


@dataclass(frozen=True)
class EndDecision:
    """What the end means, and why, in words for the log and the alert.

    Attributes:
        end: What it means.
        reason: Why.
        landed: Whether the application committed any row.
        is_outage: Whether it failed by something that passes by itself.
    """

    end: End
    reason: str
    landed: bool
    is_outage: bool = False


def decide_end(submission: Submission, outcome: Outcome | None, progress: Progress | None, desired: Desired) -> EndDecision:
    """Return what the end of an application means.

    Args:
        submission: Of the application that ended.
        outcome: Its own last word; None when it died without one.
        progress: Its latest progress.
        desired: The desired state now: a graceful end for the sake of a newer generation means that a new one starts at once.
    """
    landed = has_landed(submission, outcome, progress)
    if outcome is None:
        return EndDecision(
            End.FAILED, f"{submission.app_id} died without an outcome (it was killed, or it was out of memory)", landed
        )
    if outcome.verdict == "refused":
        return EndDecision(End.REFUSED, outcome.reason, landed)
    if outcome.verdict == "superseded":
        return EndDecision(End.SUPERSEDED, outcome.reason, landed)
    if outcome.verdict == "failed":
        return EndDecision(End.FAILED, outcome.reason, landed, outcome.is_outage)
    if outcome.verdict == "stopped" and desired.wants_app and desired.generation > submission.generation:
        return EndDecision(End.RESTART, f"restart to generation {desired.generation}", landed)
    return EndDecision(End.DONE, f"{outcome.verdict}: {outcome.reason}", landed)


def has_landed(submission: Submission, outcome: Outcome | None, progress: Progress | None) -> bool:
    """Whether the application committed any row, and was not ended by a query of it that could not.

    Args:
        submission: Record of the application in question.
        outcome: Its own last word; None when it still lives or died without one.
        progress: Newest progress of the pipeline, perhaps of another application, which then does not count; None when there
            is none.
    """
    if outcome is not None and outcome.stuck is not None:
        return False
    if outcome is not None and outcome.commits > 0:
        return True
    if progress is None or progress.app_id != submission.app_id:
        return False
    return any(table.rows > 0 for table in progress.tables.values())


def is_incident(uptime_seconds: float, landed: bool) -> bool:
    """Whether a failed application is worth an incident's alert: it had landed data for long before it died."""
    return landed and uptime_seconds >= LANDED_LONG_SECONDS
