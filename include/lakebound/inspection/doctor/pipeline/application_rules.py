"""Rules about the application and its control files: each looks at the facts and says what it found. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from lakebound.control import situations
from lakebound.control.desired import LostDesired
from lakebound.control.progress import Outcome
from lakebound.control.supervision import START_SECONDS, KafkaView, patience_seconds, seconds_without_progress, stall
from lakebound.errors import MissingTopicError, error_named
from lakebound.inspection.doctor.diagnosis import RuleFinding
from lakebound.inspection.doctor.pipeline.facts import PipelineFacts
from lakebound.inspection.doctor.pipeline.numbers import lag_records, lag_seconds, recovery_debt_records, seconds_since_commit
from lakebound.inspection.doctor.wording import needs_approval, needs_person, repairable, starting, warning

_BLOCKING = ("desired state", "submission")
"""Files without which nothing starts an application."""

_UPDATE_SECONDS = 10.0


def control_file_unreadable(facts: PipelineFacts) -> Iterator[RuleFinding]:
    """A control file is damaged. Lease and progress are written again; a desired state or a submission blocks each start."""
    for name, problem in facts.unreadable.items():
        if name in _BLOCKING:
            sentence = (
                f"the {name}: {problem}. Nothing can be started while this file is there. Move it to another folder: no "
                f"record is lost, because the tables contain the epoch and the offsets"
            )
            yield needs_person("control-file-unreadable", sentence, "control-files", file=name)
        else:
            sentence = f"the {name}: {problem}. The next start moves this file aside or writes it again; no record is lost"
            yield repairable("control-file-torn", sentence, "control-files", file=name)


def desired_state_lost(facts: PipelineFacts) -> Iterator[RuleFinding]:
    """A person may have stopped the pipeline: the file that says so is gone."""
    if isinstance(facts.desired, LostDesired):
        sentence = (
            f"the pipeline is held: {facts.desired.reason}. No record is lost, because the tables contain the epoch and the "
            f"offsets; if it should run, start it: {situations.start_command(facts.spec.pipeline)}"
        )
        yield needs_person("desired-state-lost", sentence, "control-files", file="desired state")


def held_or_stopped(facts: PipelineFacts) -> Iterator[RuleFinding]:
    """Nothing runs, because the desired state says so."""
    desired = facts.desired
    if desired is not None and not desired.wants_app and not isinstance(desired, LostDesired):
        by = f" by {desired.by}" if desired.by else ""
        yield warning("not-wanted", f"the pipeline is {desired.state}{by}: {desired.reason or 'no reason given'}; nothing runs")


def never_started(facts: PipelineFacts) -> Iterator[RuleFinding]:
    """The pipeline was never started, and nothing has been landed."""
    if not facts.is_wanted or facts.living is not None or facts.has_run or facts.unreadable:
        return
    asked_at = facts.desired.since if facts.desired is not None else 0.0
    if asked_at and facts.now - asked_at >= START_SECONDS:
        by = f" by {facts.desired.by}" if facts.desired is not None and facts.desired.by else ""
        sentence = (
            f"it should run: a start was asked for{by} at {situations.clock_time(asked_at)}, but no application was started. "
            f"Records wait in Kafka. Check that Airflow runs and that its DAG ingest__{facts.spec.pipeline} is there: "
            f"lakebound status; without Airflow: lakebound run {facts.spec.pipeline} --detach"
        )
        yield warning("start-missing", sentence, "application-dead")
    else:
        yield starting("never-started", str(situations.never_started(facts.spec.pipeline)))


def application_dead(facts: PipelineFacts) -> Iterator[RuleFinding]:
    """The desired state is running, and no application runs: the next start continues from the tables."""
    if not facts.is_wanted or facts.living is not None or not facts.has_run or _rests_between_runs(facts):
        return
    if _refused(facts) is not None:
        return  # that says why none lives, and another start would be refused, too
    debt = recovery_debt_records(facts)
    how = facts.last_end.described if facts.last_end is not None else "nothing is known about the last application"
    sentence = (
        f"no application runs, but the desired state is running ({how}). The next start continues from the tables: at least "
        f"{debt} offsets are read again; none is landed twice, and none is lost"
    )
    evidence = {"lag_records": lag_records(facts), "unclean": facts.last_end is not None and facts.last_end.is_unclean}
    yield repairable("application-dead", sentence, "application-dead", replays=debt, **evidence)


def checkpoint_lost(facts: PipelineFacts) -> Iterator[RuleFinding]:
    """The temporary checkpoint of an application that did not end cleanly is gone or damaged. It is never read again."""
    died = facts.living is None and facts.last_end is not None and facts.last_end.is_unclean
    runs = facts.own_progress is not None and facts.own_progress.state == "running" and facts.own_progress.batch is not None
    if facts.scratch.torn and died:
        what = f"files of the Spark checkpoint are damaged ({', '.join(facts.scratch.torn)})"
    elif facts.scratch.exists is False and (died or runs):
        what = "the Spark checkpoint is gone"
    else:
        return
    sentence = f"{what}. Nothing is lost: Lakebound never reads a checkpoint again, and the next query starts from the tables"
    build = repairable if runs or facts.is_wanted else warning
    yield build("checkpoint-lost", sentence, "application-dead")


def crash_loop(facts: PipelineFacts) -> Iterator[RuleFinding]:
    """Several starts in a row landed nothing: the application refuses the next one."""
    loop, limit = facts.crash_loop, facts.spec.limits.max_failed_starts
    if facts.is_wanted and facts.living is None and loop.is_over_limit(limit):
        sentence = str(situations.crash_looping(facts.spec.pipeline, loop))
        yield needs_person("crash-loop", sentence, "crash-loop", ends=list(loop.ends))


def last_start_refused(facts: PipelineFacts) -> Iterator[RuleFinding]:
    """The last application refused to start, for a reason that only it can see."""
    outcome = _refused(facts)
    if outcome is None or outcome.runbook in {table.refusal.runbook for table in facts.tables if table.refusal}:
        return  # or the table itself shows the reason still: ``table_feature`` names it
    not_before = facts.crash_loop.not_before(facts.spec.limits.failed_start_pause_seconds)
    refused = situations.refused(facts.spec.pipeline, outcome, not_before, facts.now)
    sentence = f"{outcome.app_id} {outcome.verdict}: {outcome.reason}; {refused.command}"
    yield needs_person("start-refused", sentence, outcome.runbook, error_class=outcome.error_class)


def _refused(facts: PipelineFacts) -> Outcome | None:
    outcome = facts.outcome
    if facts.living is not None or not facts.is_wanted or outcome is None:
        return None
    return outcome if error_named(outcome.error_class).is_seen_by_a_start_alone else None


def two_drivers(facts: PipelineFacts) -> Iterator[RuleFinding]:
    """Two applications run. The tables accept only the later epoch; the other application uses resources until it notices."""
    lease, submission, progress = facts.lease, facts.submission, facts.progress
    if lease is None or not facts.lease_live:
        return
    age = facts.now - submission.submitted_at if submission is not None else 0.0
    beside = submission is not None and submission.app_id != lease.app_id and facts.submission_alive and age > START_SECONDS
    zombie = progress is not None and progress.app_id != lease.app_id and facts.now - progress.updated_at < _UPDATE_SECONDS
    late = facts.now - lease.acquired_at > _UPDATE_SECONDS
    other = submission.app_id if beside and submission else progress.app_id if zombie and late and progress else None
    if other is not None:
        sentence = (
            f"two applications run: {lease.app_id} holds the lease (epoch {lease.epoch}), and {other} runs without it. The "
            f"tables refuse the commits of {other}; ending it removes nothing that was landed"
        )
        yield needs_approval("two-drivers", sentence, "two-drivers", holder=lease.app_id, other=other)


def application_starting(facts: PipelineFacts) -> Iterator[RuleFinding]:
    """An application runs and does not land yet: it starts, waits for the end of an outage, or is ending."""
    progress = facts.own_progress
    if facts.living is None or _stalled(facts) is not None:
        return
    if progress is None:
        yield starting("application-starting", f"{facts.living} was started and has not reported any progress yet")
    elif progress.state == "waiting":
        waits = situations.waiting(progress)
        rule = "topic-awaited" if issubclass(error_named(progress.waiting_error), MissingTopicError) else "application-waiting"
        yield starting(rule, f"{facts.living}: {waits}", waits.runbook)
    elif progress.state != "running":
        yield starting("application-starting", f"{facts.living} is {progress.state}")


def stalled(facts: PipelineFacts) -> Iterator[RuleFinding]:
    """An application reports nothing, or lands nothing although records wait."""
    found = _stalled(facts)
    if found is not None:
        sentence = f"{found}; the next start replaces the application and continues from the tables; nothing is lost"
        yield repairable("stalled", sentence, "stall", replays=recovery_debt_records(facts))


def _stalled(facts: PipelineFacts) -> str | None:
    if facts.living is None:
        return None
    if facts.submission is not None and facts.submission.app_id == facts.living:
        silence = stall(facts.spec.thresholds, _freshness(facts), facts.submission, facts.progress, KafkaView(), facts.now)
        if silence is not None:
            return silence.reason
    elif facts.own_progress is not None and facts.now - facts.own_progress.updated_at > facts.spec.thresholds.stall_seconds:
        return f"{facts.living} has reported no progress for {facts.now - facts.own_progress.updated_at:.0f} s"
    return _not_committing(facts)


def _not_committing(facts: PipelineFacts) -> str | None:
    """One reading is enough: the oldest waiting record is too old, and the application made no progress for as long."""
    progress, waits = facts.own_progress, lag_seconds(facts)
    if progress is None or progress.state != "running" or not waits:
        return None
    since_commit = seconds_since_commit(facts)
    seen_at = 0.0 if since_commit is None else facts.now - since_commit
    committed_at = max(progress.started_at, progress.last_commit_at or 0.0, seen_at)
    quiet = seconds_without_progress(progress, committed_at, facts.now)
    if min(waits, quiet) <= patience_seconds(facts.spec.thresholds, _freshness(facts)):
        return None
    return f"{lag_records(facts)} offsets wait in Kafka, but {facts.living} has committed nothing for {quiet:.0f} s"


def _freshness(facts: PipelineFacts) -> str:
    return facts.spec.pace(facts.wanted_freshness)


def _rests_between_runs(facts: PipelineFacts) -> bool:
    """Whether the pipeline runs on a schedule and its last run ended well."""
    if facts.spec.runs_continuously or facts.last_end is None:
        return False
    return not facts.last_end.is_unclean


APPLICATION_RULES = (
    control_file_unreadable,
    desired_state_lost,
    crash_loop,
    two_drivers,
    last_start_refused,
    stalled,
    application_dead,
    checkpoint_lost,
    application_starting,
    never_started,
    held_or_stopped,
)
