"""What a pipeline's situation is: one sentence, and the one command that ends it. Pure.

``lakebound status``, alerts, the doctor, refusals and runbooks take their words from here, so that they say the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lakebound.control.crash_loop import CrashLoop
from lakebound.control.progress import Outcome, Progress, ReferenceProgress, SearchProgress
from lakebound.errors import BrokerUnavailableError, LakeboundError, MissingTopicError, error_named
from lakebound.spec.times import in_utc

WAITS_LONG_SECONDS = 300.0
"""A topic that a person is about to create is there by then; afterwards somebody is told."""


@dataclass(frozen=True)
class Situation:
    """What keeps a pipeline from landing.

    Attributes:
        name: In kebab-case.
        text: What is so, since when, and why.
        command: What ends it; empty where it ends by itself.
        runbook: The page; None where there is nothing more to say.
    """

    name: str
    text: str
    command: str = ""
    runbook: str | None = None

    def __str__(self) -> str:
        """Return the sentence with its command."""
        return f"{self.text}; {self.command}" if self.command else self.text


def start_command(pipeline: str) -> str:
    """Return the command that says that a pipeline may run, whatever kept it from running."""
    return f"lakebound start {pipeline}"


def restart_command(pipeline: str) -> str:
    """Return the command that ends an application, so that the next one has the current YAML and transform."""
    return f"lakebound control {pipeline} restart"


def outdated(pipeline: str) -> str:
    """Return what is said of an application that runs an older YAML or transform: a start alone does not replace it."""
    return (
        f"outdated: YAML or transform changed since it started; to take the change: lakebound check {pipeline}, then "
        f"{restart_command(pipeline)}"
    )


def never_started(pipeline: str) -> Situation:
    """No application of the pipeline ever ran."""
    return Situation("never-started", "it was never started", f"start it: {start_command(pipeline)}")


def rows_changed(pipeline: str, table: str, changes: str) -> str:
    """Return what is said of a table of which others changed rows.

    Args:
        pipeline: Which lands in it.
        table: Its id.
        changes: The commits, or who found them.
    """
    return (
        f"others changed rows of table {table} ({changes}); see what is missing or too many: "
        f"lakebound prove {pipeline} --deep. Rows that have to go: lakebound erase {pipeline} --where CONDITION. "
        f"If the change is right: lakebound acknowledge {pipeline} {table} (runbook rows-changed)"
    )


def dag_paused(pipeline: str) -> Situation:
    """The pipeline is wanted, and Airflow starts nothing."""
    text = f"it should run, but its DAG ingest__{pipeline} is paused, so nothing starts it"
    return Situation("dag-paused", text, f"start it: {start_command(pipeline)}", "application-dead")


def crash_looping(pipeline: str, loop: CrashLoop) -> Situation:
    """Starts in a row landed nothing, and no further one is made."""
    text = (
        f"the last {len(loop.ends)} starts ended without landing a record (the last one at {clock_time(loop.at)}: "
        f"{loop.reason or 'no reason is known'}); the pipeline is not started any more"
    )
    return Situation("crash-loop", text, f"remove the cause, then start it: {start_command(pipeline)}", "crash-loop")


def start_paused(pipeline: str, loop: CrashLoop, limit: int, not_before: float) -> Situation:
    """A start failed, and the next one is made after a pause.

    Args:
        pipeline: Name of the pipeline, for the command that starts it at once.
        loop: The failed starts in a row.
        limit: After how many of them no start is made any more (``limits.max_failed_starts``).
        not_before: Epoch seconds at which the next start may be made.
    """
    text = (
        f"start {len(loop.ends)} of at most {limit} ended without landing a record ({loop.reason or 'no reason is known'}); "
        f"the next start is at {clock_time(not_before)} or later"
    )
    return Situation("start-paused", text, f"to start it at once: {start_command(pipeline)}", "crash-loop")


def outage(pipeline: str, loop: CrashLoop, not_before: float) -> Situation:
    """The last start was ended by something that passes by itself, and the next one is made after a pause.

    Args:
        pipeline: Name of the pipeline, for the command that starts it at once.
        loop: The failed starts in a row, with those that an outage ended.
        not_before: Epoch seconds at which the next start may be made.
    """
    ends = loop.outages
    text = (
        f"an outage ended the last start ({ends.reason or 'no reason is known'}), outage number {ends.count} in a row; such "
        f"starts do not count as failed, and the next start is at {clock_time(not_before)} or later"
    )
    return Situation("outage", text, f"to start it at once: {start_command(pipeline)}", ends.runbook)


def start_awaited(pipeline: str, loop: CrashLoop, limit: int, not_before: float) -> Situation:
    """The next start is made after a pause, for the reason of the last end.

    Args:
        pipeline: Name of the pipeline, for the command that starts it at once.
        loop: The failed starts in a row, with those that an outage ended.
        limit: After how many failed starts no start is made any more (``limits.max_failed_starts``).
        not_before: Epoch seconds at which the next start may be made.
    """
    if loop.outages.at > loop.at:
        return outage(pipeline, loop, not_before)
    return start_paused(pipeline, loop, limit, not_before)


def topic_missing(topics: Sequence[str], bootstrap_servers: str, pipeline: str, landed: Sequence[str] = ()) -> Situation:
    """Topics of the pipeline are not on the broker.

    Args:
        topics: Their names.
        bootstrap_servers: Of the broker.
        pipeline: Its name.
        landed: Those of them that were landed from, so that somebody has deleted them.
    """
    names = ", ".join(topics)
    text = (
        f"topic {names} is not on the broker at {bootstrap_servers}"
        if len(topics) == 1
        else (f"the topics {names} are not on the broker at {bootstrap_servers}")
    )
    if landed:
        text += (
            f"; records of {', '.join(landed)} were landed before, so the topic was deleted: its records that were not landed "
            f"are lost, and a topic that is created again under this name is a different topic"
        )
        return Situation("topic-missing", text, "follow the runbook topic-missing", "topic-missing")
    return Situation("topic-missing", text, f"create it: lakebound create-topic --pipeline {pipeline}", "topic-missing")


def awaits_topic(progress: Progress, now: float) -> bool:
    """Whether the application waits for a topic, and not for long: a person is about to create it."""
    waited = now - (progress.waiting_since or progress.updated_at)
    return issubclass(error_named(progress.waiting_error), MissingTopicError) and waited < WAITS_LONG_SECONDS


def waiting(progress: Progress) -> Situation:
    """The application waits for something outside of it, and continues by itself."""
    # Progress that an older version wrote names no error: it waited for Kafka only.
    runbook = error_named(progress.waiting_error or BrokerUnavailableError.__name__).runbook
    return Situation("waiting", f"waiting: {progress.waiting_for or 'for what it needs'}", "", runbook)


def searching(search: SearchProgress) -> Situation:
    """The application looks for the records of a batch on which the transform raises; nothing lands meanwhile."""
    text = (
        f"the transform raises on records of a batch of {search.records}, which are searched for since "
        f"{clock_time(search.since)}: {search.found} found, {search.tried} parts of the batch tried"
    )
    return Situation("searching", text, "", "quarantine-flood")


def failing(progress: Progress) -> Situation:
    """The application lives and tries again and again what fails."""
    since = clock_time(progress.failing_since or progress.updated_at)
    text = f"failing since {since}, {progress.failures} times in a row: {progress.last_failure}"
    runbook = error_named(progress.failing_error).runbook
    return Situation("failing", text, "", runbook if runbook != LakeboundError.runbook else "stall")


def stale_reference(name: str, reference: ReferenceProgress) -> str:
    """Return why a newer version of reference data is not used, and since when the one in use is.

    Args:
        name: The transform's name for it.
        reference: As the application tells it.
    """
    return (
        f"reference {name} is not refreshed: {reference.problem}. The stream continues with version {reference.version}, "
        f"loaded at {clock_time(reference.loaded_at)} (runbook reference-stale)"
    )


def refused(pipeline: str, outcome: Outcome, not_before: float, now: float, *, is_paused: bool = False) -> Situation:
    """The last application refused to start or to continue. Airflow tries again, up to the limit of failed starts.

    Args:
        pipeline: Name of the pipeline, for the command that starts it at once.
        outcome: How its application ended.
        not_before: Epoch seconds at which the next start may be made; in the past where no pause is left.
        now: Epoch seconds.
        is_paused: Whether its DAG is known to be paused, so that no start follows by itself.
    """
    start = start_command(pipeline)
    if is_paused:
        ends = f"remove the cause, then start it: {start}"
    elif now < not_before:
        ends = f"remove the cause: the next start is at {clock_time(not_before)} or later; to start it at once: {start}"
    else:
        ends = f"remove the cause: Airflow starts it again by itself, while the DAG is not paused; to start it at once: {start}"
    return Situation("last-start-refused", _how_it_ended(outcome), ends, outcome.runbook)


def failed(outcome: Outcome) -> Situation:
    """The last application failed; nothing keeps the next one from starting."""
    return Situation("last-start-failed", _how_it_ended(outcome), "", outcome.runbook)


def _how_it_ended(outcome: Outcome) -> str:
    return f"the last application {outcome.verdict} at {clock_time(outcome.ended_at)}: {outcome.reason}"


def clock_time(epoch_seconds: float) -> str:
    """Return a time as ``2026-11-20 14:05:09 UTC``."""
    return in_utc(round(epoch_seconds) * 1000)
