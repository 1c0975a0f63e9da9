"""The last task of an ingest run: it decides whether the run counts towards the crash-loop limit.

Airflow pauses a DAG after so many failed runs in a row, whatever they did. A run's state is that of its last task, so
this one fails only when the stream failed *and* had landed nothing. The stream's own task stays red either way.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from airflow.sdk import BaseOperator, TriggerRule

from lakebound.control.crash_loop import read_crash_loop, write_crash_loop
from lakebound.control.desired import read_desired
from lakebound.control.folder import ControlFolder
from lakebound.control.progress import read_outcome, readable_progress
from lakebound.control.situations import Situation, crash_looping, start_paused
from lakebound.control.submission import Owner, Submission, read_submission
from lakebound.control.supervision import has_landed
from lakebound.errors import LakeboundError
from lakebound.settings import load_settings
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
        limit: The DAG's ``max_consecutive_failed_dag_runs``.
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
            NothingLandedError: It counts.
        """
        ti = context["ti"]
        control = control_of(self.pipeline, load_settings())
        stream = Owner(dag_id=ti.dag_id, run_id=ti.run_id, task_id=self.stream_task_id)
        failed = state_of_owner(stream) == "failed"
        submission = self._submission(control, stream)
        landed = self._landed(context, control, submission)
        end_id, now = submission.app_id if submission else ti.run_id, time.time()
        loop = read_crash_loop(control).since(read_desired(control).since)
        loop = loop.after(end_id, barren=failed and not landed, at=now, reason=self._reason(control, submission))
        write_crash_loop(control, loop)
        if not failed:
            return
        if landed:
            self.log.warning("the application landed data before it ended; the next run starts it again")
            return
        is_over = loop.is_over_limit(self.limit)
        not_before = loop.not_before(self.pause_seconds)
        error = NothingLandedError(
            self.pipeline,
            crash_looping(self.pipeline, loop) if is_over else start_paused(self.pipeline, loop, self.limit, not_before),
        )
        if is_over:
            alert(context, control, "crash_loop", str(error))
        raise error

    def _submission(self, control: ControlFolder, stream: Owner) -> Submission | None:
        """Return the application of this run; None when none was submitted."""
        submission = read_submission(control)
        if submission is None or submission.owner is None or not submission.owner.is_same_run(stream):
            return None
        return submission

    def _reason(self, control: ControlFolder, submission: Submission | None) -> str:
        outcome = read_outcome(control, submission.app_id) if submission is not None else None
        return outcome.reason if outcome is not None else "the ingest task failed, its log says why"

    def _landed(self, context: Context, control: ControlFolder, submission: Submission | None) -> bool:
        verdict = context["ti"].xcom_pull(task_ids=self.stream_task_id, key=VERDICT_KEY)
        if isinstance(verdict, dict):
            return bool(verdict.get("landed"))
        if submission is None:
            return False
        return has_landed(submission, read_outcome(control, submission.app_id), readable_progress(control))
