"""The lease: which application may write for a pipeline, with an epoch that only grows.

The lease keeps two applications apart in ordinary life. What keeps a zombie out is the fence in the table itself:
every commit carries the epoch, and a table refuses a commit made on a handle older than a later epoch's ``open`` entry.
"""

from __future__ import annotations

import os
import time
from typing import Any

import structlog

from lakebound.control.folder import ControlFolder, locked, read_json, write_json
from lakebound.control.private_files import tighten
from lakebound.control.process_identity import PidSpace, ProcessIdentity, identity_of, lives, own_space
from lakebound.control.sights import unchanged_seconds
from lakebound.errors import LeaseHeldError, LeaseLostError, LockHeldError
from lakebound.frozen import FrozenRecord

_RENEWAL_DEADLINE_SECONDS = 5.0
"""A holder renews every second or few: the next renewal is the next attempt."""

_log = structlog.get_logger(__name__)


class Lease(FrozenRecord):
    """The lease as it stands in the file. Times are epoch seconds of the holder's clock.

    Attributes:
        boot_id: Of the holder's machine; None in a file of an older release.
        pid_namespace: In which ``pid`` counts; None in a file of an older release.
    """

    epoch: int
    app_id: str
    host: str
    pid: int
    pid_started_at: float
    acquired_at: float
    heartbeat_at: float
    ttl_seconds: float
    released: bool = False
    spark_ui: str | None = None
    boot_id: str | None = None
    pid_namespace: str | None = None

    @property
    def holder(self) -> ProcessIdentity:
        """The process that took it."""
        return ProcessIdentity(self.pid, self.pid_started_at, PidSpace(self.host, self.boot_id, self.pid_namespace))

    def age_seconds(self, now: float) -> float:
        """Seconds since the holder's last sign of life."""
        return now - self.heartbeat_at

    @property
    def sign(self) -> str:
        """A text that each sign of life changes."""
        return f"{self.epoch} {self.app_id} {self.heartbeat_at!r}"

    def has_our_clock(self) -> bool:
        """Whether the holder's clock is this machine's; a file of an older release does not say, and counts as such."""
        return self.boot_id is None or self.boot_id == own_space().boot_id

    def holder_is_dead(self) -> bool:
        """Whether the holder's process is known to be gone; False where that cannot be known from here."""
        return lives(self.holder) is False


def read_lease(control: ControlFolder) -> Lease | None:
    """Return the lease as it stands, or None where there never was one."""
    body: Any = read_json(control.lease)
    return None if body is None else Lease.model_validate(body)


def readable_lease(control: ControlFolder) -> Lease | None:
    """Return the lease, or None where there is none that can be read: a torn one keeps nobody out, the tables' epochs do."""
    try:
        return read_lease(control)
    except ValueError:
        return None


def lease_is_live(control: ControlFolder, lease: Lease, now: float) -> bool:
    """Whether the holder still counts as alive: not released, its process not seen dead, and not silent for the lease's time.

    On this machine its silence is told by the clock. That of another machine is told by this machine's looks alone: the first
    look finds it alive, and whoever wants to know looks again.

    Args:
        control: The pipeline's folder.
        lease: As it stands.
        now: Epoch seconds.
    """
    if lease.released or lease.holder_is_dead():
        return False
    silent = None if lease.has_our_clock() else unchanged_seconds(control.lease, lease.sign)
    return (lease.age_seconds(now) if silent is None else silent) <= lease.ttl_seconds


def acquire(control: ControlFolder, app_id: str, ttl_seconds: float, *, above_epoch: int = 0, by_force: bool = False) -> Lease:
    """Take the lease for this process and return it.

    Args:
        control: The pipeline's folder.
        app_id: Of this application.
        ttl_seconds: How long the lease outlives the last heartbeat.
        above_epoch: The new epoch is larger than this, too: the largest epoch in the tables' ledgers, so that
            a lost state folder cannot make epochs start again.
        by_force: Take it from a live holder, too; the tables refuse that one once an entry of the new epoch is in them.

    Raises:
        LeaseHeldError: A live application holds it.
        LockHeldError: Its file is locked.
    """
    tighten(control.home)
    with locked(control.lease):
        now = time.time()
        _move_aside_if_torn(control)
        held = read_lease(control)
        if held is not None and held.app_id != app_id and lease_is_live(control, held, now) and not by_force:
            raise LeaseHeldError(control.pipeline, held.app_id, held.epoch, held.age_seconds(now))
        own = identity_of(os.getpid())
        lease = Lease(
            epoch=max(held.epoch if held else 0, above_epoch) + 1,
            app_id=app_id,
            host=own.space.host or "",
            pid=own.pid,
            pid_started_at=own.started_at,
            acquired_at=now,
            heartbeat_at=now,
            ttl_seconds=ttl_seconds,
            boot_id=own.space.boot_id,
            pid_namespace=own.space.namespace,
        )
        write_json(control.lease, lease.model_dump(), durable=True)
    return lease


def renew(control: ControlFolder, own: Lease, *, spark_ui: str | None = None) -> Lease:
    """Write a sign of life and return the lease as written.

    Args:
        control: State folder of the pipeline.
        own: The lease as this process wrote it last.
        spark_ui: Address of the application's Spark UI; None keeps the address that ``own`` has.

    Raises:
        LeaseLostError: Another application took the lease meanwhile.
        LockHeldError: Its file is locked.
    """
    return _replace(control, own, heartbeat_at=time.time(), spark_ui=spark_ui or own.spark_ui)


def release(control: ControlFolder, own: Lease) -> None:
    """Give the lease back; nothing happens when it is no longer held, or torn."""
    try:
        _replace(control, own, released=True)
    except (LeaseLostError, LockHeldError, ValueError):
        return


def _move_aside_if_torn(control: ControlFolder) -> None:
    """Make room for a lease where a power cut has torn the file: ``above_epoch`` keeps epochs growing without it."""
    if control.lease.exists() and readable_lease(control) is None:
        aside = control.lease.with_name(f"{control.lease.name}.torn-{time.time_ns()}")
        os.replace(control.lease, aside)
        _log.warning("torn_lease_moved_aside", pipeline=control.pipeline, to=str(aside))


def check_held(control: ControlFolder, own: Lease) -> None:
    """Raise LeaseLostError once another application has taken the lease.

    Raises:
        LeaseLostError: There is no lease, or its epoch is not that of ``own``.
    """
    found = read_lease(control)
    if found is None or found.epoch != own.epoch:
        raise LeaseLostError(control.pipeline, own.epoch, found.epoch if found else 0)


def _replace(control: ControlFolder, own: Lease, **changes: object) -> Lease:
    with locked(control.lease, _RENEWAL_DEADLINE_SECONDS):
        found = read_lease(control)
        if found is None or found.epoch != own.epoch or found.app_id != own.app_id:
            raise LeaseLostError(control.pipeline, own.epoch, found.epoch if found else 0)
        lease = own.model_copy(update=changes)
        write_json(control.lease, lease.model_dump())
    return lease
