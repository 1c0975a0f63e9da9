"""The last task of an ingest run: it decides whether the run counts towards the crash-loop limit.

Airflow pauses a DAG after a number of failed runs in a row, whatever they did. A run's state is that of its last task, so
this one fails only when the stream failed, had landed nothing, and no outage was the reason. The stream's own task stays red
either way. The first such run does not fail (``lakebound.control.crash_loop.failed_runs_limit``).
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from airflow.sdk import BaseOperator, TriggerRule

from lakebound.control.crash_loop import CrashLoop, read_crash_loop, write_crash_loop
from lakebound.control.desired import read_desired
from lakebound.control.folder import ControlFolder
from lakebound.control.progress import Outcome, read_outcome, readable_progress
from lakebound.control.situations import Situation, crash_looping, outage, start_paused
from lakebound.control.submission import Owner, Submission, read_submission
from lakebound.control.supervision import has_landed
from lakebound.errors import LakeboundError
from lakebound.settings import load_settings
from lakebound.tables.outages import passes
from lakebound_airflow.hooks.task_state import state_of_owner
from lakebound_airflow.notifications.alerts import alert
from lakebound_airflow.operators.stream import VERDICT_KEY
from lakebound_airflow.pipelines import control_of

Context = Mapping[str, Any]


class NothingLandedError(LakeboundError):
    """The application ended in failure before it had landed a row."""

    def __init__(self, pipeline: str, situation: Situation) -> None:
        super().__init__(f"pipeline {pipeline!r}: {situation}")


class CrashLoopGuard(BaseOperator):
    """Fails when the stream failed without landing anything, and alerts when that makes the DAG pause.

    Args:
        pipeline: Its name.
        limit: ``limits.max_failed_starts``.
        pause_seconds: Before the next start after the first that landed nothing.
        stream_task_id: The task that has the application in its care.
    """

    def __init__(self, *, pipeline: str, limit: int, stream_task_id: str, pause_seconds: float = 0.0, **kwargs: Any) -> None:
        kwargs.setdefault("trigger_rule", TriggerRule.ALL_DONE)
        kwargs["retries"] = 0
        super().__init__(**kwargs)
        self.pipeline = pipeline
        self.limit = limit
        self.pause_seconds = pause_seconds
        self.stream_task_id = stream_task_id

    def execute(self, context: Context) -> None:
        """Judge the run.

        Raises:
            NothingLandedError: It counts, for Airflow, too.
        """
        ti = context["ti"]
        control = control_of(self.pipeline, load_settings())
        stream = Owner(dag_id=ti.dag_id, run_id=ti.run_id, task_id=self.stream_task_id)
        failed = state_of_owner(stream) == "failed"
        submission = self._submission(control, stream)
        outcome = read_outcome(control, submission.app_id) if submission is not None else None
        landed = self._landed(context, control, submission)
        end_id, now = submission.app_id if submission else ti.run_id, time.time()
        reason = outcome.reason if outcome is not None else "the ingest task failed, its log says why"
        before = read_crash_loop(control).since(read_desired(control).since)
        if failed and not landed and self._is_outage(context, outcome):
            loop = before.after_outage(end_id, at=now, reason=reason, runbook=outcome.page if outcome else None)
            loop = loop.model_copy(update={"failed_runs": 0})
            self._write(control, loop)
            self.log.warning(str(outage(self.pipeline, loop, loop.not_before(self.pause_seconds))))
            return
        loop = before.after(end_id, barren=failed and not landed, at=now, reason=reason)
        fails_run = loop.is_over_limit(self.limit) or len(loop.ends) > 1
        if not fails_run:
            loop = loop.model_copy(update={"failed_runs": 0})
        elif loop.ends != before.ends:
            loop = loop.model_copy(update={"failed_runs": before.failed_runs + 1})
        if not self._write(control, loop) or not failed:
            return
        if landed:
            self.log.warning("the application landed data before it ended; the next run starts it again")
            return
        self._tell(context, control, loop, fails_run=fails_run)

    def _tell(self, context: Context, control: ControlFolder, loop: CrashLoop, *, fails_run: bool) -> None:
        """Say that a start landed nothing, and alert when no further one is made.

        Raises:
            NothingLandedError: The run counts for Airflow, too.
        """
        is_over, not_before = loop.is_over_limit(self.limit), loop.not_before(self.pause_seconds)
        situation = crash_looping(self.pipeline, loop) if is_over else start_paused(self.pipeline, loop, self.limit, not_before)
        error = NothingLandedError(self.pipeline, situation)
        if is_over:
            alert(context, control, "crash_loop", str(error))
        if fails_run:
            raise error
        self.log.warning(str(error))

    def _write(self, control: ControlFolder, loop: CrashLoop) -> bool:
        """Write the count; return whether that was possible. A disk that is full for now is an outage, too."""
        try:
            write_crash_loop(control, loop)
        except OSError as exc:
            if not passes(exc):
                raise
            self.log.warning("the count of failed starts cannot be written (%s), so this end does not count", exc)
            return False
        return True

    def _is_outage(self, context: Context, outcome: Outcome | None) -> bool:
        """Whether the stream failed by something that passes by itself."""
        verdict = context["ti"].xcom_pull(task_ids=self.stream_task_id, key=VERDICT_KEY)
        told = isinstance(verdict, dict) and bool(verdict.get("is_outage"))
        return told or (outcome is not None and outcome.is_outage)

    def _submission(self, control: ControlFolder, stream: Owner) -> Submission | None:
        """Return the application of this run; None when none was submitted."""
        submission = read_submission(control)
        if submission is None or submission.owner is None or not submission.owner.is_same_run(stream):
            return None
        return submission

    def _landed(self, context: Context, control: ControlFolder, submission: Submission | None) -> bool:
        verdict = context["ti"].xcom_pull(task_ids=self.stream_task_id, key=VERDICT_KEY)
        if isinstance(verdict, dict):
            return bool(verdict.get("landed"))
        if submission is None:
            return False
        return has_landed(submission, read_outcome(control, submission.app_id), readable_progress(control))
