"""Writes what a person asks of a pipeline, and looks how far it is: for ``lakebound control`` and the control DAG."""

from __future__ import annotations

import time

from lakebound.control.applications import app_is_alive
from lakebound.control.desired import Desired, change_desired, read_desired
from lakebound.control.folder import ControlFolder
from lakebound.control.progress import read_outcome, readable_progress
from lakebound.control.requests import Awaited, Request, RequestState, Standing, request_state
from lakebound.control.submission import read_submission

POLL_SECONDS = 0.2
POLL_SECONDS_IN_A_STORE = 1.0


def write_request(control: ControlFolder, request: Request, *, by: str) -> Desired:
    """Write what is asked for, and return the desired state with its generation.

    Args:
        control: State folder of the pipeline.
        request: What is asked.
        by: Who asks; it is kept with the desired state.

    Raises:
        HeldError: The pipeline is held, and this request may not end that.
    """
    return change_desired(
        control,
        request.state,
        restart=request.restart,
        freshness=request.freshness,
        until=request.until,
        reason=request.reason,
        by=by,
        release_hold=request.may_end_hold,
    )


def look(control: ControlFolder) -> Standing:
    """Return the pipeline as it stands."""
    submission = read_submission(control)
    return Standing(
        desired=read_desired(control),
        submission=submission,
        alive=app_is_alive(control),
        progress=readable_progress(control),
        outcome=None if submission is None else read_outcome(control, submission.app_id),
    )


def wait_for_request(control: ControlFolder, awaited: Awaited, desired: Desired, wait_seconds: float) -> RequestState:
    """Return how far the request is, at the latest when the wait is over.

    Args:
        control: State folder of the pipeline.
        awaited: What must become so.
        desired: The desired state as it was written.
        wait_seconds: How long to wait; with 0, one look is taken.
    """
    deadline = time.monotonic() + wait_seconds
    while True:
        found = request_state(awaited, desired.state, desired.generation, look(control))
        if found.state != "waiting" or time.monotonic() >= deadline:
            return found
        time.sleep(POLL_SECONDS_IN_A_STORE if control.is_shared else POLL_SECONDS)
