"""Applications as detached spark-submit processes on this machine: they outlive the task, the worker and Airflow."""

from __future__ import annotations

from lakebound.control.applications import kill_leftovers, submission_is_alive
from lakebound.control.folder import ControlFolder
from lakebound.control.submission import Owner, Submission
from lakebound.landing.local_launch import launch_stream
from lakebound.landing.run_spec import RunSpec
from lakebound.settings import Settings


class LocalBackend:
    """Each application leads a session of its own, because Airflow signals a task's whole process group."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def submit(self, run_spec: RunSpec, owner: Owner | None) -> Submission:
        """Start the application, or return the one that already lives for the pipeline.

        Raises:
            SubmitFailedError: It could not be started.
        """
        submission, _ = launch_stream(run_spec, self._settings, owner)
        return submission

    def is_alive(self, control: ControlFolder, submission: Submission) -> bool:
        """Whether the application is starting, running or ending."""
        return submission_is_alive(control, submission)

    def kill(self, submission: Submission) -> bool:
        """End the application's whole session, Python and JVM, at once."""
        return kill_leftovers(submission)

    def where_log_is(self, submission: Submission) -> str:
        """Return where its log is. Its lines stay there: errors in it may quote records."""
        return f"the application's log: {submission.log}" if submission.log else ""
