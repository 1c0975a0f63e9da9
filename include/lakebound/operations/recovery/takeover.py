"""Exclusive access to a pipeline during a repair: nothing starts, nothing runs, and the repair has the lease."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import structlog

from lakebound.control.applications import end_application
from lakebound.control.desired import Desired, change_desired, read_desired
from lakebound.control.folder import ControlFolder, locked
from lakebound.control.lease import Lease, acquire, release, renew
from lakebound.errors import CatalogBehindError, DeadlineExceededError, LakeboundError, LeaseLostError, LockHeldError
from lakebound.spec.pipeline import PipelineSpec
from lakebound.tables.places import Places
from lakebound.tables.table import Table, open_table

_RENEWALS_PER_TTL = 5
_ANOTHER_REPAIR_SECONDS = 3600.0
"""As long as another repair, or a step of maintenance, may take."""

_log = structlog.get_logger(__name__)


class DesiredChangedError(LakeboundError):
    """Somebody has said what they want of the pipeline after the plan was made: that stands."""

    def __init__(self, pipeline: str, found: Desired) -> None:
        who = f" by {found.by}" if found.by else ""
        super().__init__(
            f"pipeline {pipeline!r}: since the plan was made, the desired state was changed{who} to {found.state} "
            f"({found.reason or 'no reason given'}); nothing was applied. Ask why, and plan again"
        )


@contextmanager
def taken_over(
    spec: PipelineSpec, places: Places, *, by: str, reason: str, by_force: bool = False, seen: Desired | None = None
) -> Iterator[Lease]:
    """Hold the pipeline, end its application, take the lease; afterwards release the lease and restore the desired state.

    One repair at a time: a second one waits for the first. The desired state is written first, so that no continuous DAG starts
    an application in between. It stays ``held``, with the reason, when the block raises: a person looks at an interrupted
    repair before anything runs again.

    Args:
        spec: The pipeline.
        places: Where its tables and its state are.
        by: Who repairs, for the desired state.
        reason: Why, for the desired state.
        by_force: Continue when the application cannot be ended from here; the tables then refuse its commits.
        seen: The desired state on which the plan is based; None where the plan does not change it.

    Yields:
        The lease, with an epoch above every epoch in the tables.

    Raises:
        LeaseHeldError: A live application holds the lease and does not end.
        LockHeldError: Another repair does not come to its end.
        DesiredChangedError: Somebody has changed the desired state since the plan was made; nothing was done.
        DeadlineExceededError: The application runs where this machine cannot end it.
    """
    control = ControlFolder(places.home, spec.pipeline, places.state)
    with locked(control.repair, _ANOTHER_REPAIR_SECONDS):
        before = read_desired(control)
        if seen is not None and before != seen:
            raise DesiredChangedError(spec.pipeline, before)
        change_desired(control, "held", freshness=before.freshness, until=before.until, reason=reason, by=by)
        try:
            _end(spec, control, reason=reason, by=by, by_force=by_force)
            lease = acquire(
                control,
                f"repair-{uuid.uuid4().hex[:10]}",
                spec.limits.lease_ttl_seconds,
                above_epoch=highest_epoch(spec, places),
                by_force=by_force,
            )
        except BaseException:
            # The repair did not begin: restore the desired state.
            _restore_desired(control, before)
            raise
        with _renewed(control, lease):
            yield lease
        _restore_desired(control, before)


def highest_epoch(spec: PipelineSpec, places: Places) -> int:
    """Return the highest epoch in the ledgers of the pipeline's tables and quarantine; 0 without tables that can be read."""
    tables = [open_table(table, places) for table in (*spec.tables, spec.quarantine_table)]
    return max((_epoch(table) for table in tables if table.exists()), default=0)


def _epoch(table: Table) -> int:
    try:
        return table.read_ledger(to_reset=True).epoch
    except CatalogBehindError:
        return 0  # a repair that commits nothing to it has the catalog name the newest first


def _restore_desired(control: ControlFolder, before: Desired) -> None:
    change_desired(control, before.state, freshness=before.freshness, until=before.until, reason=before.reason, by=before.by)


def _end(spec: PipelineSpec, control: ControlFolder, *, reason: str, by: str, by_force: bool) -> None:
    if not by_force:
        end_application(control, reason=reason, by=by)
        return
    try:
        # An application that still runs normally ends well within the lifetime of its lease.
        end_application(control, reason=reason, by=by, deadline_seconds=spec.limits.lease_ttl_seconds)
    except DeadlineExceededError as exc:
        _log.warning("repair_goes_on_beside_the_application", pipeline=spec.pipeline, reason=str(exc))


@contextmanager
def _renewed(control: ControlFolder, lease: Lease) -> Iterator[None]:
    """Renew the lease inside the block, and release it afterwards."""
    ended = threading.Event()
    renewing = threading.Thread(target=_renew, args=(control, lease, ended), name="repair-lease", daemon=True)
    renewing.start()
    try:
        yield
    finally:
        ended.set()
        renewing.join(timeout=10)
        release(control, lease)


def _renew(control: ControlFolder, lease: Lease, ended: threading.Event) -> None:
    while not ended.wait(lease.ttl_seconds / _RENEWALS_PER_TTL):
        try:
            lease = renew(control, lease)
        except LeaseLostError as exc:
            # Whoever took it wins: the tables refuse the repair's next commit.
            _log.warning("repair_lost_the_lease", pipeline=control.pipeline, reason=str(exc))
            return
        except (LockHeldError, OSError) as exc:
            _log.warning("repair_did_not_renew_its_lease", pipeline=control.pipeline, reason=str(exc))
