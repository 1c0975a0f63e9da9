"""Have a pipeline for oneself: nothing starts, nothing runs, and the lease is ours, while a repair is applied."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

from lakebound.control import ControlFolder
from lakebound.control_plane import DEFAULT_STOP_SECONDS, ask_stop, kill_leftovers, living_submission, wait_ended
from lakebound.desired import change_desired, read_desired
from lakebound.errors import DeadlineExceededError
from lakebound.lease import Lease, acquire, release, renew
from lakebound.run_spec import Places
from lakebound.spec import PipelineSpec
from lakebound.submission import read_submission
from lakebound.tables import open_table

_RENEWALS_PER_TTL = 5


@contextmanager
def taken_over(spec: PipelineSpec, places: Places, *, by: str, reason: str) -> Iterator[Lease]:
    """Hold the pipeline, end its application, take the lease; afterwards give the lease back and restore the wish.

    The wish is written first, so that no continuous DAG starts an application in between. It stays ``held``, with the reason,
    when the block raises: a repair that was cut short is looked at before anything runs again.

    Yields:
        The lease, with an epoch above every epoch in the tables.

    Raises:
        LeaseHeldError: A live application holds the lease and does not end.
        DeadlineExceededError: The application runs where this machine cannot end it.
    """
    control = ControlFolder(places.home, spec.pipeline)
    before = read_desired(control)
    change_desired(control, "held", freshness=before.freshness, until=before.until, reason=reason, by=by)
    end_application(control, reason=reason, by=by)
    lease = acquire(
        control, f"repair-{uuid.uuid4().hex[:10]}", spec.limits.lease_ttl_seconds, above_epoch=highest_epoch(spec, places)
    )
    ended = threading.Event()
    renewing = threading.Thread(target=_renew, args=(control, lease, ended), name="repair-lease", daemon=True)
    renewing.start()
    try:
        yield lease
    finally:
        ended.set()
        renewing.join(timeout=10)
        release(control, lease)
    change_desired(control, before.state, freshness=before.freshness, until=before.until, reason=before.reason, by=before.by)


def end_application(control: ControlFolder, *, reason: str, by: str, deadline_seconds: float = DEFAULT_STOP_SECONDS) -> None:
    """Ask the pipeline's application to end, wait, and end by force what does not obey.

    Raises:
        DeadlineExceededError: It runs where this machine cannot end it.
    """
    living = living_submission(control)
    if living is None:
        return
    ask_stop(control, living.app_id, reason=reason, by=by)
    if wait_ended(control, living.app_id, deadline_seconds):
        return
    submission = read_submission(control)
    if submission is None or submission.app_id != living.app_id or not kill_leftovers(submission):
        raise DeadlineExceededError(f"the end of {living.app_id} of pipeline {control.pipeline!r}", deadline_seconds)


def highest_epoch(spec: PipelineSpec, places: Places) -> int:
    """Return the highest epoch in the ledgers of the pipeline's tables and quarantine; 0 without tables."""
    tables = [open_table(table, places) for table in (*spec.tables, spec.quarantine_table)]
    return max((table.read_ledger().epoch for table in tables if table.exists()), default=0)


def _renew(control: ControlFolder, lease: Lease, ended: threading.Event) -> None:
    while not ended.wait(lease.ttl_seconds / _RENEWALS_PER_TTL):
        lease = renew(control, lease)
