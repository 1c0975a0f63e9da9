"""The operator that has a pipeline's application in its care: starts it or finds it again, defers, ends with its verdict.

Nothing here waits: a worker is busy for a moment when the application starts and when it ends; in between the task is
deferred. Which application is attached to, and which is stopped first, says ``lakebound.control.supervision``.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NoReturn

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowFailException

from lakebound.control.applications import ask_stop, living_submission
from lakebound.control.crash_loop import read_crash_loop
from lakebound.control.desired import change_desired, read_desired
from lakebound.control.folder import ControlFolder
from lakebound.control.progress import Outcome, read_outcome, readable_progress
from lakebound.control.situations import start_awaited, start_command
from lakebound.control.submission import Custody, Owner, Submission, app_id_for, read_submission, write_submission
from lakebound.control.supervision import End, EndDecision, Start, belongs_to, decide_end, decide_start, has_landed, is_incident
from lakebound.errors import LakeboundError
from lakebound.landing.run_spec import make_run_spec
from lakebound.settings import Settings, load_settings
from lakebound.tables.outages import passes
from lakebound_airflow.backends.choice import backend_for, backend_of
from lakebound_airflow.backends.connection import SPARK_CONN_ID, choose_target
from lakebound_airflow.hooks.task_state import dag_is_paused, state_of_owner
from lakebound_airflow.links import SparkUiLink
from lakebound_airflow.notifications.alerts import StreamVerdict, alert
from lakebound_airflow.pipelines import control_of, spec_of
from lakebound_airflow.triggers.stream import ReplaceTrigger, StreamTrigger, WantedTrigger
from lakebound_airflow.triggers.stream_watch import submission_of

VERDICT_KEY = "verdict"
# An application that stalled hears no request; it is given a moment, in case it was only slow.
CONDEMNED_STOP_SECONDS = 5.0
STOP_MARGIN_SECONDS = 30.0

Context = Mapping[str, Any]


class StreamFailedError(LakeboundError):
    """The application ended with an error, or without an outcome."""

    def __init__(self, reason: str, log: str) -> None:
        super().__init__(f"{reason}; {log}" if log else reason)


class StreamStalledError(LakeboundError):
    """The application lives and does not land."""


class StreamStuckError(LakeboundError):
    """An application that must be replaced cannot be ended from here."""


class StreamOperator(BaseOperator):
    """Lands one pipeline; see the module.

    Success: the application was stopped or is complete (XCom: its outcome). Failure: it failed, stalled or refused to
    start; the exception says why. Clearing or marking the task stops the application gracefully.

    Args:
        pipeline: Its name; YAML and desired state are read at each start.
        spark_conn_id: Connection that says where applications run (``lakebound_airflow.backends.target``).
    """

    operator_extra_links = (SparkUiLink(),)
    ui_color = "#d5e8d4"

    def __init__(self, *, pipeline: str, spark_conn_id: str = SPARK_CONN_ID, **kwargs: Any) -> None:
        # A second try is how a person's "clear" shows: starting again is the next run's business.
        kwargs["retries"] = 0
        kwargs.setdefault("on_failure_callback", hand_over)
        super().__init__(**kwargs)
        self.pipeline = pipeline
        self.spark_conn_id = spark_conn_id

    def execute(self, context: Context) -> Any:
        """Start, attach or wait; always defers."""
        with noting_outages(context):
            return self._start(context)

    def resume(self, context: Context, event: dict[str, str]) -> Any:
        """Act on what the trigger saw.

        Args:
            context: Of the task.
            event: What happened (``event``), why (``reason``), and the application (``app_id``) where there is one.

        Raises:
            StreamStuckError: An application that must be replaced cannot be ended from here.
            StreamStalledError: The application lives and does not land.
            StreamFailedError: The application ended with an error, or without an outcome.
            AirflowFailException: The application refused to start or to continue, or runs where its trigger cannot see it.
        """
        with noting_outages(context):
            return self._act(context, event)

    def _act(self, context: Context, event: dict[str, str]) -> Any:
        settings = load_settings()
        control = control_of(self.pipeline, settings)
        kind, reason = event["event"], event["reason"]
        self.log.info("%s: %s", kind, reason)
        if kind in ("wanted", "replaced"):
            return self._start(context)
        if kind == "stuck":
            raise StreamStuckError(reason)
        submission = submission_of(control, event["app_id"])
        self._take(control, submission, context)
        if kind == "stalled":
            self._stalled(context, control, submission, reason)
        if kind == "elsewhere":
            self._elsewhere(context, control, submission, reason)
        return self._ended(context, settings, control, submission)

    # --- start ---------------------------------------------------------------------------------------------------

    def _start(self, context: Context) -> NoReturn:
        settings = load_settings()
        control, me = control_of(self.pipeline, settings), owner_of(context)
        submission = living_submission(control)
        owner_state = self._owner_state(submission, me)
        decision = decide_start(read_desired(control), submission, submission is not None, me, owner_state)
        self.log.info("%s: %s", decision.start, decision.reason)
        if decision.start is Start.IDLE:
            self.defer(trigger=WantedTrigger(self.pipeline, str(settings.home)), method_name="resume")
        if decision.start is Start.REPLACE and submission is not None:
            self._replace(settings, control, submission, decision.reason)
        if decision.start is Start.SUBMIT or submission is None:
            self._obey_failed_starts(settings, control, me)
            submission = self._submit(settings, control, me)
        if belongs_to(submission, me, owner_state):
            submission = submission.model_copy(update={"owner": me, "custody": Custody.WATCHED})
            write_submission(control, submission)
        owned = submission.owner == me
        trigger = StreamTrigger(self.pipeline, str(settings.home), submission.app_id, owned)
        self.defer(trigger=trigger, method_name="resume")

    def _obey_failed_starts(self, settings: Settings, control: ControlFolder, me: Owner) -> None:
        """Defer while the pause after starts that landed nothing lasts; a person's request ends it.

        After a crash loop a person has unpaused this DAG, or no run of it would be here: that is a request, too.
        """
        limits = spec_of(self.pipeline, settings).limits
        desired = read_desired(control)
        loop = read_crash_loop(control).since(desired.since)
        if loop.is_over_limit(limits.max_failed_starts) and loop.was_unpaused(
            limits.max_failed_starts, dag_is_paused(me.dag_id)
        ):
            reason = f"somebody unpaused the DAG {me.dag_id}"
            self.log.info("%s: the crash loop is over", reason)
            change_desired(control, "running", freshness=desired.freshness, until=desired.until, reason=reason, by="airflow")
            return
        not_before = loop.not_before(limits.failed_start_pause_seconds)
        if time.time() < not_before and not loop.is_over_limit(limits.max_failed_starts):
            self.log.info(str(start_awaited(self.pipeline, loop, limits.max_failed_starts, not_before)))
            self.defer(
                trigger=WantedTrigger(self.pipeline, str(settings.home), limits.failed_start_pause_seconds),
                method_name="resume",
            )

    def _owner_state(self, submission: Submission | None, me: Owner) -> str | None:
        if submission is None or submission.owner is None or submission.owner.is_same_run(me):
            return None
        return state_of_owner(submission.owner)

    def _submit(self, settings: Settings, control: ControlFolder, me: Owner) -> Submission:
        spec, desired = spec_of(self.pipeline, settings), read_desired(control)
        target = choose_target(self.spark_conn_id, self.pipeline, settings)
        app_id = app_id_for(self.pipeline, desired.generation, me.key)
        submission = backend_for(target, settings).submit(make_run_spec(spec, settings, desired, app_id), me)
        self.log.info("application %s on %s (%s); log: %s", submission.app_id, target.backend, target.master, submission.log)
        return submission

    def _replace(self, settings: Settings, control: ControlFolder, submission: Submission, reason: str) -> NoReturn:
        # Asked here and not in the trigger: the application stops even while no triggerer runs.
        ask_stop(control, submission.app_id, reason=reason, by="airflow")
        stop_seconds = CONDEMNED_STOP_SECONDS
        if submission.custody is not Custody.CONDEMNED:
            stop_seconds = spec_of(self.pipeline, settings).limits.stop_timeout_seconds + STOP_MARGIN_SECONDS
        trigger = ReplaceTrigger(self.pipeline, str(settings.home), submission.app_id, stop_seconds)
        self.defer(trigger=trigger, method_name="resume")

    # --- end -----------------------------------------------------------------------------------------------------

    def _ended(self, context: Context, settings: Settings, control: ControlFolder, submission: Submission) -> Any:
        outcome = read_outcome(control, submission.app_id)
        progress, desired = readable_progress(control), read_desired(control)
        decision = decide_end(submission, outcome, progress, desired)
        push_verdict(context, decision.end, decision.landed, decision.is_outage)
        if decision.end is End.RESTART:
            self.log.info(decision.reason)
            self._start(context)
        if decision.end is End.REFUSED:
            page = outcome.runbook if outcome is not None else LakeboundError.runbook
            alert(context, control, "refused", decision.reason, submission.app_id, runbook=page)
            had_read = outcome is not None and outcome.records > 0
            what = f"refused to continue: {decision.reason}" if had_read else f"refused to start: {decision.reason}"
            raise AirflowFailException(f"{submission.app_id} {what} (runbook include/runbooks/{page}.md)")
        if decision.end is End.FAILED:
            self._failed(context, settings, control, submission, decision)
        if decision.end is End.SUPERSEDED:
            self.log.warning("another application now writes for %s: %s", self.pipeline, decision.reason)
        if outcome is not None and outcome.verdict == "completed":
            self._rest_after_completion(settings, control, outcome)
        return None if outcome is None else outcome.model_dump(mode="json")

    def _failed(
        self, context: Context, settings: Settings, control: ControlFolder, submission: Submission, decision: EndDecision
    ) -> NoReturn:
        outcome = read_outcome(control, submission.app_id)
        ended_at = outcome.ended_at if outcome else time.time()
        verdict: StreamVerdict = "incident" if is_incident(ended_at - submission.submitted_at, decision.landed) else "failed"
        page = outcome.runbook if outcome is not None and outcome.is_outage else LakeboundError.runbook
        alert(
            context,
            control,
            verdict,
            decision.reason,
            submission.app_id,
            runbook=page if page != LakeboundError.runbook else None,
        )
        raise StreamFailedError(decision.reason, backend_of(submission, settings).where_log_is(submission))

    def _stalled(self, context: Context, control: ControlFolder, submission: Submission, reason: str) -> NoReturn:
        if submission.owner is not None:
            write_submission(control, submission.model_copy(update={"custody": Custody.CONDEMNED}))
        push_verdict(context, End.FAILED, has_landed(submission, None, readable_progress(control)))
        alert(context, control, "stalled", reason, submission.app_id)
        raise StreamStalledError(reason)

    def _elsewhere(self, context: Context, control: ControlFolder, submission: Submission, reason: str) -> NoReturn:
        """Stop an application that ran where its trigger cannot see it; such starts count, until the DAG is paused."""
        ask_stop(control, submission.app_id, reason=reason, by="airflow")
        if submission.owner is not None:
            write_submission(control, submission.model_copy(update={"custody": Custody.CONDEMNED}))
        push_verdict(context, End.REFUSED, landed=False)
        alert(context, control, "refused", reason, submission.app_id)
        raise AirflowFailException(reason)

    def _rest_after_completion(self, settings: Settings, control: ControlFolder, outcome: Outcome) -> None:
        """Stop a pipeline that would else run its bounded run again and again."""
        desired = read_desired(control)
        bounded = desired.until is not None or spec_of(self.pipeline, settings).runs_continuously
        if bounded and desired.state == "running":
            reason = f"bounded run complete ({outcome.records} records); start it again: {start_command(self.pipeline)}"
            change_desired(control, "stopped", reason=reason, by="airflow")
            self.log.info(reason)

    def _take(self, control: ControlFolder, submission: Submission, context: Context) -> None:
        if submission.owner == owner_of(context):
            write_submission(control, submission.model_copy(update={"custody": Custody.TAKEN}))


def owner_of(context: Context) -> Owner:
    """Return this try."""
    ti = context["ti"]
    return Owner(dag_id=ti.dag_id, run_id=ti.run_id, task_id=ti.task_id, try_number=ti.try_number)


def push_verdict(context: Context, end: End, landed: bool, is_outage: bool = False) -> None:
    """Leave word for the crash-loop guard, which cannot see an exception.

    Args:
        context: Airflow's context of the task.
        end: What the end of the application means.
        landed: Whether it committed any row.
        is_outage: Whether it failed by something that passes by itself.
    """
    context["ti"].xcom_push(key=VERDICT_KEY, value={"end": end.value, "landed": landed, "is_outage": is_outage})


@contextmanager
def noting_outages(context: Context) -> Iterator[None]:
    """Leave word for the crash-loop guard when an outage kept the task itself from its work: a full disk, a master away."""
    try:
        yield
    except Exception as exc:
        if passes(exc):
            push_verdict(context, End.FAILED, landed=False, is_outage=True)
        raise


def hand_over(context: Context) -> None:
    """Note that the task ended by itself, so that the next run attaches to an application that goes on.

    Runs in the worker when the task fails there: when its trigger crashed, for instance. When a person marks a deferred
    task, no worker runs, and the note stays away.
    """
    operator = context["task"]
    control = control_of(operator.pipeline, load_settings())
    submission = read_submission(control)
    if submission is None or submission.owner != owner_of(context) or submission.custody is Custody.CONDEMNED:
        return
    write_submission(control, submission.model_copy(update={"custody": Custody.HANDED_OVER}))
