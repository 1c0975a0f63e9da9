"""Named points at which a test can kill, stop, hold or fail the application. Inert unless LAKEBOUND_FAULTS is set.

The variable holds rules ``ACTION@POINT[/DETAIL][#NTH]``, separated by commas: ``kill@after_commit/delta#3`` kills the
application the third time that a Delta commit has just succeeded.

| action | what happens |
| --- | --- |
| kill | SIGKILL to the whole process group, JVM included |
| stop | SIGSTOP to the whole process group; this thread does nothing more before it |
| hold | this thread waits until the application is killed |
| fail | InjectedFaultError is raised |
"""

from __future__ import annotations

import os
import re
import signal
import threading
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import NoReturn

import psutil

from lakebound.errors import LakeboundError

POINTS = (
    "between_batches",
    "windows_rebuilt",
    "batch_begins",
    "round_begins",
    "after_trim",
    "after_data_files",
    "before_commit",
    "topic_begun",
    "topic_rows_sent",
    "topic_delivered",
    "store_changes_made",
    "store_begun",
    "store_rows_sent",
    "store_ledger_sent",
    "store_ledger_gone",
    "store_keys_gone",
    "after_commit",
    "batch_ends",
    "epoch_sent",
    "epoch_noted",
)
_RULE = re.compile(r"^(kill|stop|hold|fail)@([a-z_]+)(?:/([a-z_]+))?(?:#(\d+))?$")
_seen: Counter[str] = Counter()
_lock = threading.Lock()


class InjectedFaultError(LakeboundError, passes=True):
    """A test asked for this failure."""

    def __init__(self, point: str) -> None:
        super().__init__(f"fault injected at {point} (LAKEBOUND_FAULTS)")


@dataclass(frozen=True)
class FaultRule:
    """What to do at which point, on its nth occurrence."""

    action: str
    point: str
    detail: str
    nth: int


def parse(text: str) -> tuple[FaultRule, ...]:
    """Return the rules in ``text``.

    Raises:
        ValueError: A rule is not of the form, or names no known point.
    """
    rules = []
    for part in filter(None, text.split(",")):
        match = _RULE.match(part)
        if match is None or match[2] not in POINTS:
            form = f"ACTION@POINT[/DETAIL][#NTH] with a point of {', '.join(POINTS)}"
            raise ValueError(f"LAKEBOUND_FAULTS: {part!r} is not {form}")
        rules.append(FaultRule(match[1], match[2], match[3] or "", int(match[4] or 1)))
    return tuple(rules)


@cache
def _rules() -> tuple[FaultRule, ...]:
    return parse(os.environ.get("LAKEBOUND_FAULTS", ""))


def wanted(point: str, detail: str = "") -> bool:
    """Return whether any rule names the point."""
    return any(rule.point == point and rule.detail in ("", detail) for rule in _rules())


def reach(point: str, detail: str = "") -> None:
    """Do what the rules ask for here; usually nothing.

    Args:
        point: Name of the point; see the module.
        detail: What it concerns, such as a table's format, for rules that name it.

    Raises:
        InjectedFaultError: A rule says ``fail``.
    """
    if not _rules():
        return
    with _lock:
        _seen[f"{point}/"] += 1
        if detail:
            _seen[f"{point}/{detail}"] += 1
        due = [rule for rule in _rules() if rule.point == point and rule.detail in ("", detail)]
        due = [rule for rule in due if _seen[f"{point}/{rule.detail}"] == rule.nth]
    for rule in due:
        _act(rule)


def _act(rule: FaultRule) -> None:
    if rule.action == "kill":
        os.killpg(os.getpgid(0), signal.SIGKILL)
    elif rule.action == "stop":
        _stop()
    elif rule.action == "fail":
        raise InjectedFaultError(f"{rule.point}/{rule.detail}")
    else:
        _hold()


def _stop() -> None:
    """Stop the other processes of the group, then this one before its thread does anything else.

    A signal to a process is for any of its threads to take, so this one would go on, past the point, until another has
    (``man 7 signal``, "Process-directed and thread-directed signals"); it might then be stopped with a catalog locked.
    """
    group = os.getpgid(0)
    for pid in psutil.pids():
        with suppress(ProcessLookupError):
            if pid != os.getpid() and os.getpgid(pid) == group:
                os.kill(pid, signal.SIGSTOP)
    signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)


def _hold() -> NoReturn:
    while True:
        threading.Event().wait()
