"""The lease: which application may write for a pipeline, with an epoch that only grows.

The lease keeps two applications apart in ordinary life. What keeps a zombie out is the fence in the table itself:
every commit carries the epoch, and a table refuses a commit made on a handle older than a later epoch's ``open`` entry.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import structlog

from lakebound.control.folder import MOST_BYTES, ControlFolder, change_text, read_json, read_text, write_json, write_text
from lakebound.control.private_files import tighten
from lakebound.control.process_identity import PidSpace, ProcessIdentity, identity_of, lives, own_space
from lakebound.control.sights import unchanged_seconds
from lakebound.control.state_text import parsed_json
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
    return _parsed(read_text(control.lease, most_bytes=MOST_BYTES))


def readable_lease(control: ControlFolder) -> Lease | None:
    """Return the lease, or None where there is none that can be read: a torn one keeps nobody out, the tables' epochs do."""
    try:
        return read_lease(control)
    except ValueError:
        return None


def lease_is_live(control: ControlFolder, lease: Lease, now: float) -> bool:
    """Whether the holder still counts as alive: not released, its process not seen dead, and not silent for the lease's time.

    On this machine its silence is told by the clock. That of another machine is told by looks alone: the first look of a
    machine finds it alive, and whoever wants to know looks again. Where state is shared, a machine that has watched the
    silence says so, and the others need not watch it anew.

    Args:
        control: The pipeline's folder.
        lease: As it stands.
        now: Epoch seconds.
    """
    if lease.released or lease.holder_is_dead():
        return False
    silent = None if lease.has_our_clock() else unchanged_seconds(control.lease, lease.sign)
    if silent is not None and control.is_shared:
        return not is_seen_silent(control, lease, silent)
    return (lease.age_seconds(now) if silent is None else silent) <= lease.ttl_seconds


def is_seen_silent(control: ControlFolder, lease: Lease, silent_seconds: float) -> bool:
    """Whether a machine has seen the lease of another one unchanged for longer than it lasts.

    Args:
        control: The pipeline's shared state.
        lease: As it stands.
        silent_seconds: For how long this machine has seen it unchanged; where that is long enough, the others are told.
    """
    try:
        told = read_json(control.lease_silence) == {"sign": lease.sign}
        if not told and silent_seconds > lease.ttl_seconds:
            write_json(control.lease_silence, {"sign": lease.sign})
    except (OSError, ValueError) as exc:
        _log.warning("silence_of_the_lease_not_told", pipeline=control.pipeline, reason=str(exc))
        told = False
    return told or silent_seconds > lease.ttl_seconds


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
    own, taken = identity_of(os.getpid()), list[Lease]()

    def decide(text: str | None) -> str:
        now, held = time.time(), _held_or_aside(control, text)
        if held is not None and held.app_id != app_id and lease_is_live(control, held, now) and not by_force:
            raise LeaseHeldError(control.pipeline, held.app_id, held.epoch, held.age_seconds(now))
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
        taken.append(lease)
        return _text(lease)

    change_text(control.lease, decide, durable=True)
    return taken[-1]


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


def _held_or_aside(control: ControlFolder, text: str | None) -> Lease | None:
    """Return the lease that a text says.

    Where a power cut has torn the file, it is moved aside: ``above_epoch`` keeps epochs growing without it.
    """
    try:
        return _parsed(text)
    except ValueError:
        aside = control.lease.with_name(f"{control.lease.name}.torn-{time.time_ns()}")
        if isinstance(control.lease, Path) and isinstance(aside, Path):
            os.replace(control.lease, aside)
        else:
            write_text(aside, text or "")
        _log.warning("torn_lease_moved_aside", pipeline=control.pipeline, to=str(aside))
        return None


def _parsed(text: str | None) -> Lease | None:
    return None if text is None else Lease.model_validate(parsed_json(text))


def _text(lease: Lease) -> str:
    return json.dumps(lease.model_dump())


def check_held(control: ControlFolder, own: Lease) -> None:
    """Raise LeaseLostError once another application has taken the lease.

    Args:
        control: The pipeline's state.
        own: The lease that the application has taken.

    Raises:
        LeaseLostError: There is no lease, or its epoch is not that of ``own``.
    """
    found = read_lease(control)
    if found is None or found.epoch != own.epoch:
        raise LeaseLostError(control.pipeline, own.epoch, found.epoch if found else 0)


def _replace(control: ControlFolder, own: Lease, **changes: object) -> Lease:
    lease = own.model_copy(update=changes)

    def decide(text: str | None) -> str:
        found = _parsed(text)
        if found is None or found.epoch != own.epoch or found.app_id != own.app_id:
            raise LeaseLostError(control.pipeline, own.epoch, found.epoch if found else 0)
        return _text(lease)

    change_text(control.lease, decide, deadline_seconds=_RENEWAL_DEADLINE_SECONDS)
    return lease
