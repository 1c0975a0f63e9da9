"""Asks applications to stop, and waits until they have: for the operator, the control DAG, ``lakebound down`` and repairs."""

from __future__ import annotations

import time
from pathlib import Path

from lakebound.control.desired import request_stop
from lakebound.control.folder import ControlFolder, names_of_pipelines
from lakebound.control.lease import lease_is_live, readable_lease
from lakebound.control.processes import ProcessRecord, kill, wait_until
from lakebound.control.progress import read_outcome
from lakebound.control.submission import BackendName, Submission, process_is_alive, read_submission
from lakebound.errors import DeadlineExceededError
from lakebound.settings import Settings

DEFAULT_STOP_SECONDS = 90.0
# How long an application that a remote master was asked to start counts as alive without a lease.
REMOTE_START_SECONDS = 180.0


def pipelines_with_state(settings: Settings) -> list[ControlFolder]:
    """Return the folder of every pipeline that ever ran here."""
    return [ControlFolder(settings.home, name) for name in names_of_pipelines(settings.home)]


def living_submission(control: ControlFolder) -> Submission | None:
    """Return the application of the pipeline that is starting, running or ending; None if there is none.

    The submission record names one that has not taken the lease yet, the lease one that was started past the record.
    """
    submission = read_submission(control)
    lease = readable_lease(control)
    if (
        lease is not None
        and lease_is_live(control, lease, time.time())
        and (submission is None or submission.app_id != lease.app_id)
    ):
        return Submission(
            app_id=lease.app_id, host=lease.host, submitted_at=lease.acquired_at, spark_ui=lease.spark_ui, log=None
        )
    if submission is not None and submission_is_alive(control, submission):
        return submission
    return None


def last_application(control: ControlFolder) -> Submission | None:
    """Return the application that was started last, living or not; None where none is known.

    The lease names one that was started past the submission record; but a lease that was given back may be a repair's.
    """
    submission, lease = read_submission(control), readable_lease(control)
    if lease is None or lease.released or (submission is not None and submission.submitted_at > lease.acquired_at):
        return submission
    if submission is not None and submission.app_id == lease.app_id:
        return submission
    return Submission(app_id=lease.app_id, submitted_at=lease.acquired_at, spark_ui=lease.spark_ui).led_by(lease.holder)


def app_is_alive(control: ControlFolder) -> bool:
    """Whether an application of the pipeline is starting or running."""
    return living_submission(control) is not None


def holds_lease(control: ControlFolder, app_id: str) -> bool:
    """Whether that application has the pipeline's lease and gives signs of life."""
    lease = readable_lease(control)
    return lease is not None and lease.app_id == app_id and lease_is_live(control, lease, time.time())


def submission_is_alive(control: ControlFolder, submission: Submission) -> bool:
    """Whether that application is starting, running or ending."""
    if holds_lease(control, submission.app_id):
        return True
    alive = process_is_alive(submission)
    if alive is not None:
        return alive
    if submission.backend is BackendName.LOCAL and submission.pid is None:
        return False
    # It runs where this machine cannot look: its lease speaks for it, and before it has one, its age.
    lease = readable_lease(control)
    had_lease = lease is not None and lease.app_id == submission.app_id
    if had_lease or read_outcome(control, submission.app_id) is not None:
        return False
    return time.time() - submission.submitted_at < REMOTE_START_SECONDS


def ask_stop(control: ControlFolder, app_id: str, *, reason: str, by: str) -> None:
    """Ask one application to end after the batch in flight; it keeps the desired state as it is.

    Args:
        control: State folder of the pipeline.
        app_id: The application that is to end; others continue.
        reason: Why it is to end; the application repeats it in its outcome.
        by: Who asks, such as ``lakebound run`` or ``airflow``; it is kept with the request.
    """
    request_stop(control, app_id, reason=reason, by=by)


def wait_ended(control: ControlFolder, app_id: str, deadline_seconds: float = DEFAULT_STOP_SECONDS) -> bool:
    """Wait until that application lives no longer.

    Args:
        control: State folder of the pipeline.
        app_id: The application whose end is awaited.
        deadline_seconds: How long to wait at most.

    Returns:
        Whether it ended within the deadline.
    """

    def lives() -> bool:
        submission = read_submission(control)
        if submission is not None and submission.app_id == app_id:
            return submission_is_alive(control, submission)
        return holds_lease(control, app_id)

    try:
        return wait_until(lambda: not lives(), deadline_seconds, f"the end of {app_id}")
    except DeadlineExceededError:
        return False


def stop_streams(
    settings: Settings, *, reason: str = "lakebound down", by: str = "cli", deadline_seconds: float = DEFAULT_STOP_SECONDS
) -> list[str]:
    """Ask every living application to end, all at once, wait, and end by force what does not obey.

    Stop Airflow first: while it runs, a task that sees its application stop starts the next one.

    Args:
        settings: This machine's settings; all pipelines with a state folder below its home are meant.
        reason: Why they are to end; each application repeats it in its outcome.
        by: Who asks, such as ``lakebound run`` or ``airflow``; it is kept with the request.
        deadline_seconds: How long all of them together may take before they are ended by force.

    Returns:
        The ids of the applications that were stopped.

    Raises:
        DeadlineExceededError: One still lives, and runs where this machine cannot end it.
    """
    living = [(control, living_submission(control)) for control in pipelines_with_state(settings)]
    stopping = [(control, submission.app_id) for control, submission in living if submission is not None]
    for control, app_id in stopping:
        ask_stop(control, app_id, reason=reason, by=by)
    deadline = time.monotonic() + deadline_seconds
    for control, app_id in stopping:
        if not wait_ended(control, app_id, max(1.0, deadline - time.monotonic())):
            _end_by_force(control, app_id, deadline_seconds)
    for control in pipelines_with_state(settings):
        kill_leftovers(read_submission(control))
    return [app_id for _, app_id in stopping]


def end_application(control: ControlFolder, *, reason: str, by: str, deadline_seconds: float = DEFAULT_STOP_SECONDS) -> None:
    """Ask the pipeline's application to end, wait, and end by force what does not obey.

    Args:
        control: State folder of the pipeline.
        reason: Why it is to end; the application repeats it in its outcome.
        by: Who asks, such as ``lakebound run`` or ``airflow``; it is kept with the request.
        deadline_seconds: How long it may take before it is ended by force.

    Raises:
        DeadlineExceededError: It runs where this machine cannot end it.
    """
    living = living_submission(control)
    if living is None:
        return
    ask_stop(control, living.app_id, reason=reason, by=by)
    if not wait_ended(control, living.app_id, deadline_seconds):
        _end_by_force(control, living.app_id, deadline_seconds)


def kill_leftovers(submission: Submission | None) -> bool:
    """End at once whatever is left of a local application's session; return whether it could be looked at from here.

    Only for an application that did not end when it was asked to, or whose end is known: what of it was not
    committed is read again by the next one.
    """
    record = None if submission is None else _process_record(submission)
    if record is None:
        return False
    kill(record)
    return True


def _end_by_force(control: ControlFolder, app_id: str, deadline_seconds: float) -> None:
    submission = read_submission(control)
    if submission is None or submission.app_id != app_id or not kill_leftovers(submission):
        raise DeadlineExceededError(f"the end of {app_id} of pipeline {control.pipeline!r}", deadline_seconds)


def _process_record(submission: Submission) -> ProcessRecord | None:
    if submission.process is None or process_is_alive(submission) is None:
        return None
    return ProcessRecord.of(submission.process, submission.app_id, submission.log or Path("/dev/null"))
