"""Which process one is, and whether it still lives: a pid alone may by now be somebody else's, or another container's.

A pid counts within one PID namespace of one boot of one machine. Containers may share a host name, and Docker or
Kubernetes gives a restarted one its old name, so the name alone does not say that a pid is of the place that one sees.
Files of older releases name the host only. What is not known is not compared.
"""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import psutil

START_TOLERANCE_SECONDS = 2.0
"""The kernel counts a process's start from boot, and the time of boot moves a little when the clock is corrected."""

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_OWN_NAMESPACE = Path("/proc/self/ns/pid")
_NAMESPACE_OF_THE_MACHINE = "pid:[4026531836]"
"""The kernel gives its first PID namespace, which holds what runs outside of containers, this number at every boot."""


@dataclass(frozen=True)
class PidSpace:
    """Where a pid counts; None for what is not known.

    Attributes:
        host: The machine's name, or the container's.
        boot_id: What the kernel calls the time since the machine was started.
        namespace: What the kernel calls the PID namespace.
    """

    host: str | None = None
    boot_id: str | None = None
    namespace: str | None = None


@dataclass(frozen=True)
class ProcessIdentity:
    """A process that runs, or once ran.

    Attributes:
        pid: Its id where it ran.
        started_at: When it was started, in epoch seconds.
        space: Where its pid counts.
    """

    pid: int
    started_at: float
    space: PidSpace


def own_space() -> PidSpace:
    """Return where the pids count that this process sees."""
    return PidSpace(host=socket.gethostname(), boot_id=_boot_id(), namespace=_namespace())


def identity_of(pid: int) -> ProcessIdentity:
    """Return which process of this machine a pid now names.

    Raises:
        psutil.Error: There is no such process, or it may not be looked at.
    """
    return ProcessIdentity(pid, started_at(pid), own_space())


def started_at(pid: int) -> float:
    """Return when a process was started, in epoch seconds.

    Raises:
        psutil.Error: There is no such process, or it may not be looked at.
    """
    return float(psutil.Process(pid).create_time())


def is_visible(space: PidSpace, own: PidSpace) -> bool | None:
    """Return whether the pids of a space are those that are seen from here; None where that cannot be known.

    False means that everything in that space has ended: it is an earlier boot of this machine. That is only known where
    neither of the two is a container's, whose name tells nothing of the machine.

    Args:
        space: Of the process that is asked about.
        own: Of the process that asks.
    """
    if _differ(space.host, own.host) or _differ(space.namespace, own.namespace):
        return None
    if _differ(space.boot_id, own.boot_id):
        return False if space.namespace == own.namespace == _NAMESPACE_OF_THE_MACHINE else None
    return True


def find(identity: ProcessIdentity) -> psutil.Process | None:
    """Return the process if it is there and can be seen from here; it may be a zombie.

    Raises:
        psutil.Error: It may not be looked at.
    """
    return _started_here(identity) if is_visible(identity.space, own_space()) else None


def lives(identity: ProcessIdentity) -> bool | None:
    """Return whether the process still runs; None where that cannot be known from here.

    A zombie, which has ended and was not waited for yet, does not.
    """
    is_here = is_visible(identity.space, own_space())
    if not is_here:
        return is_here
    try:
        process = _started_here(identity)
        return process is not None and is_running(process)
    except psutil.Error:
        return None


def is_running(process: psutil.Process) -> bool:
    """Return whether a process of psutil still runs; a zombie, which only waits for its parent, does not."""
    try:
        # The main thread of a JVM may be gone while others still write and listen.
        return process.is_running() and (process.status() != psutil.STATUS_ZOMBIE or process.num_threads() > 1)
    except psutil.NoSuchProcess:
        return False


def is_start_of(process: psutil.Process, since: float) -> bool:
    """Return whether a process is the one that was started at a time."""
    return abs(process.create_time() - since) < START_TOLERANCE_SECONDS


def _started_here(identity: ProcessIdentity) -> psutil.Process | None:
    try:
        process = psutil.Process(identity.pid)
        return process if is_start_of(process, identity.started_at) else None
    except psutil.NoSuchProcess:
        return None


def _differ(one: str | None, other: str | None) -> bool:
    return one is not None and other is not None and one != other


@cache
def _boot_id() -> str | None:
    try:
        return _BOOT_ID.read_text().strip() or None
    except OSError:
        return None


def _namespace() -> str | None:
    # Not kept: a process that is forked into another namespace would take its parent's for its own.
    try:
        return os.readlink(_OWN_NAMESPACE)
    except OSError:
        return None
