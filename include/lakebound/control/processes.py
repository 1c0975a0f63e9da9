"""Detached processes: start one, know it again later, end exactly it.

A process leads a session of its own, so it outlives whoever started it. What it starts is found by that session, even
after its leader died; what left the session (a shell of a task, for instance) is found by a mark in the environment,
which every descendant inherits unless it is started from here, too. A record on disk names the process by more than
its pid, which may by now belong to somebody else (``lakebound.control.process_identity``).
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeVar

import psutil

from lakebound.control.private_files import make_private_folder, open_private
from lakebound.control.process_identity import PidSpace, ProcessIdentity, find, is_running, is_visible, own_space, started_at
from lakebound.errors import DeadlineExceededError, ServiceError

# How long what a process left behind may take, once it is asked.
ORPHAN_DEADLINE_SECONDS = 10.0

# The variable that holds a process's mark.
MARK = "LAKEBOUND_STARTED_AS"

T = TypeVar("T")

# Handles of this interpreter's own children.
_children: dict[int, subprocess.Popen[bytes]] = {}


@dataclass(frozen=True)
class ProcessRecord:
    """A process that was started.

    Attributes:
        name: What it is, for messages.
        pid: Its process id, also the id of its session.
        create_time: When it was created, seconds since the epoch, as the kernel tells.
        log: The file that receives its standard output and error.
        mark: What stands in the environment of all that it starts; None where only its session is known.
        boot_id: Of the machine on which ``pid`` counts; None in a record of an older release.
        pid_namespace: In which ``pid`` counts; None in a record of an older release.
    """

    name: str
    pid: int
    create_time: float
    log: Path
    mark: str | None = None
    boot_id: str | None = None
    pid_namespace: str | None = None

    @classmethod
    def of(cls, process: ProcessIdentity, name: str, log: Path, mark: str | None = None) -> ProcessRecord:
        """Return the record of a process.

        Args:
            process: Which one it is.
            name: What it is, for messages.
            log: The file that receives its output.
            mark: What stands in the environment of all that it starts.
        """
        space = process.space
        return cls(name, process.pid, process.started_at, log, mark, boot_id=space.boot_id, pid_namespace=space.namespace)

    @property
    def process(self) -> ProcessIdentity:
        """Which process it is. A record does not name its host: the boot does."""
        return ProcessIdentity(self.pid, self.create_time, PidSpace(boot_id=self.boot_id, namespace=self.pid_namespace))

    def save(self, file: Path) -> None:
        """Write the record as JSON, all or nothing."""
        make_private_folder(file.parent)
        partial = file.with_name(f".{file.name}.{os.getpid()}")
        with open_private(partial, "w") as written:
            written.write(json.dumps({**asdict(self), "log": str(self.log)}, indent=2) + "\n")
        partial.replace(file)

    @classmethod
    def load(cls, file: Path) -> ProcessRecord | None:
        """Return the record in ``file``, or None when there is none that can be read."""
        try:
            fields = json.loads(file.read_text())
            return cls(
                name=str(fields["name"]),
                pid=int(fields["pid"]),
                create_time=float(fields["create_time"]),
                log=Path(fields["log"]),
                mark=fields.get("mark"),
                boot_id=fields.get("boot_id"),
                pid_namespace=fields.get("pid_namespace"),
            )
        except (OSError, ValueError, KeyError, TypeError):
            return None


def start(
    name: str,
    command: Sequence[str],
    log: Path,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> ProcessRecord:
    """Start a process in a session of its own, its output appended to ``log``; return its record.

    Args:
        name: What it is, for messages.
        command: The program and its arguments. Never secrets: every user of the machine can read them.
        log: The file for standard output and error.
        environment: The whole environment of the process (default: this process's).
        folder: The working directory (default: this process's).

    Raises:
        ServiceError: The program cannot be started.
    """
    make_private_folder(log.parent)
    mark = uuid.uuid4().hex
    with open_private(log, "ab") as output:
        try:
            child = subprocess.Popen(
                list(command),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=folder,
                env={**(os.environ if environment is None else environment), MARK: mark},
                start_new_session=True,
            )
        except OSError as error:
            raise ServiceError(name, f"cannot start {command[0]}: {error}") from error
    _children[child.pid] = child
    return ProcessRecord.of(ProcessIdentity(child.pid, _create_time(child.pid), own_space()), name, log, mark)


def handle_of(record: ProcessRecord) -> subprocess.Popen[bytes]:
    """Return the handle of a process that this interpreter has just started; it tells the exit code.

    Raises:
        KeyError: Another interpreter started it, or its end was noticed already.
    """
    return _children[record.pid]


def is_alive(record: ProcessRecord) -> bool:
    """Return whether the very process of this record still runs; a zombie does not."""
    leader = find(record.process)
    if leader is not None and (child := _children.get(record.pid)) is not None:
        # Asking is what lets the kernel forget a child that has ended.
        if child.poll() is None:
            return True
        del _children[record.pid]
        return False
    return leader is not None and is_running(leader)


def members(record: ProcessRecord) -> list[psutil.Process]:
    """Return the living processes of the record: its leader, the rest of its session, and what left the session.

    The kernel hands out a leader's pid again only after the last member of its session is gone.
    """
    is_here = is_visible(record.process.space, own_space())
    is_own_session = is_here and (find(record.process) is not None or not psutil.pid_exists(record.pid))
    return [
        process
        for process in psutil.process_iter()
        if ((is_own_session and _is_in_session(process, record.pid)) or _has_mark(process, record.mark)) and is_running(process)
    ]


def stop(record: ProcessRecord, deadline_seconds: float = 30.0) -> bool:
    """End the process: ask it (TERM), wait, ask what it left behind, and at last end all of that by force (KILL).

    Args:
        record: The process, as ``start`` returned it.
        deadline_seconds: How long to wait for the process before it is ended by force.

    Returns:
        True if no force was needed; also if it did not run any more.
    """
    graceful = True
    if is_alive(record):
        leader = find(record.process)
        _signal([leader] if leader else [], signal.SIGTERM)
        graceful = _gone_within(lambda: not is_alive(record), deadline_seconds)
    if graceful and (orphans := members(record)):
        _signal(orphans, signal.SIGTERM)
        graceful = _gone_within(lambda: not members(record), min(deadline_seconds, ORPHAN_DEADLINE_SECONDS))
    if not graceful:
        kill(record)
    return graceful


def kill(record: ProcessRecord, deadline_seconds: float = 10.0) -> None:
    """End the process and everything that it left behind at once (KILL).

    Args:
        record: The process, as ``start`` returned it.
        deadline_seconds: How long to wait until nothing of it lives.

    Raises:
        ServiceError: Something of it still lives after the deadline.
    """

    def killed() -> bool:
        left = members(record)
        _signal(left, signal.SIGKILL)
        return not left and not is_alive(record)

    if not _gone_within(killed, deadline_seconds):
        pids = ", ".join(str(member.pid) for member in members(record))
        raise ServiceError(record.name, f"still runs after SIGKILL (pid {pids})", record.log)


def wait_until(
    condition: Callable[[], T],
    deadline_seconds: float,
    what: str,
    poll_seconds: float = 0.1,
) -> T:
    """Return the first truthy answer of ``condition``.

    Args:
        condition: Asked again and again; what it raises is passed on at once.
        deadline_seconds: How long to go on asking.
        what: What is waited for, for the message.
        poll_seconds: The pause between two questions.

    Raises:
        DeadlineExceededError: No truthy answer in time.
    """
    deadline = time.monotonic() + deadline_seconds
    while not (answer := condition()):
        if time.monotonic() >= deadline:
            raise DeadlineExceededError(what, deadline_seconds)
        time.sleep(poll_seconds)
    return answer


def last_lines(log: Path, count: int = 15) -> str:
    """Return the last lines of a log file, or an empty text if there is none; reads at most 64 KiB of it."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - 65_536))
            return "\n".join(file.read().decode(errors="replace").splitlines()[-count:])
    except OSError:
        return ""


def _signal(targets: Sequence[psutil.Process], number: signal.Signals) -> None:
    for target in targets:
        with suppress(psutil.NoSuchProcess):
            target.send_signal(number)


def _gone_within(gone: Callable[[], bool], deadline_seconds: float) -> bool:
    try:
        return wait_until(gone, deadline_seconds, "the end of a process", poll_seconds=0.05)
    except DeadlineExceededError:
        return False


def _create_time(pid: int) -> float:
    try:
        return started_at(pid)
    except psutil.NoSuchProcess:
        return time.time()


def _is_in_session(process: psutil.Process, session: int) -> bool:
    try:
        return os.getsid(process.pid) == session
    except (ProcessLookupError, PermissionError):
        return False


def _has_mark(process: psutil.Process, mark: str | None) -> bool:
    try:
        return mark is not None and process.environ().get(MARK) == mark
    except (psutil.Error, OSError):
        return False
