"""Faults that a test asks the server for."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Literal

from tests.support.s3.call import Call

Kind = Literal["status", "silence", "disconnect", "half body", "delay"]


@dataclass(frozen=True)
class Fault:
    """What goes wrong, with which requests, and how often.

    Args:
        kind: ``status`` answers an error; ``silence`` never answers; ``disconnect`` closes the connection; ``half body``
            sends half of what a GET asked for and closes; ``delay`` lasts longer, half of it before the effect and half behind.
        operations: S3's names (``PutObject``), with ``*`` for any text; empty for all.
        methods: GET, PUT …; empty for all.
        key: Pattern of the key, with ``*`` for any text, also slashes.
        bucket: Pattern of the bucket.
        access_key_id: Pattern of the key that signed, so that one of two clients is hit.
        skip: How many requests that match pass first.
        count: How many are hit then; None for all.
        after_effect: Let the request take effect first (the client does not learn of it).
        status: Of an answered error.
        code: S3's name of the error.
        seconds: Of a delay; at most so long is a silent connection held before it is closed.
    """

    kind: Kind
    operations: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    key: str = "*"
    bucket: str = "*"
    access_key_id: str = "*"
    skip: int = 0
    count: int | None = 1
    after_effect: bool = False
    status: int = 500
    code: str = "InternalError"
    seconds: float = 600.0

    def matches(self, call: Call, access_key_id: str) -> bool:
        """Say whether the request is of those that are hit."""
        return (
            (not self.methods or call.method in self.methods)
            and (not self.operations or any(fnmatchcase(call.operation, pattern) for pattern in self.operations))
            and fnmatchcase(call.key, self.key)
            and fnmatchcase(call.bucket, self.bucket)
            and fnmatchcase(access_key_id, self.access_key_id)
        )


def slow_down(**chosen: Any) -> Fault:
    """Return the fault of a store that is asked too often."""
    return Fault("status", status=503, code="SlowDown", **chosen)


def conflict(**chosen: Any) -> Fault:
    """Return the fault of a conditional write that met another one."""
    return Fault("status", status=409, code="ConditionalRequestConflict", **chosen)


DELTA_COMMIT = "*_delta_log/*.json"
"""Key of a commit of a Delta table."""


def around_commits() -> tuple[Fault, ...]:
    """Return a commit that is done and not answered, data files that are refused for a while, a commit that comes by half."""
    return (
        Fault("disconnect", methods=("PUT",), key=DELTA_COMMIT, after_effect=True, count=2),
        slow_down(methods=("PUT",), key="*.parquet", skip=3, count=3),
        Fault("half body", methods=("GET",), key=DELTA_COMMIT, skip=2, count=2),
    )


@dataclass(frozen=True)
class Plan:
    """What is done with one request beside answering it."""

    delay_seconds: float = 0.0
    fault: Fault | None = None


@dataclass
class _Rule:
    fault: Fault
    met: int = 0

    @property
    def hits(self) -> int:
        hits = max(0, self.met - self.fault.skip)
        return hits if self.fault.count is None else min(hits, self.fault.count)


class Faults:
    """The faults in force. Delays add up; of the others, the first that matches acts."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._rules: dict[int, _Rule] = {}
        self._numbers = itertools.count(1)
        self.generation = 0

    def add(self, fault: Fault) -> int:
        """Bring a fault into force; return its number."""
        with self._lock:
            number = next(self._numbers)
            self._rules[number] = _Rule(fault)
            return number

    def remove(self, number: int) -> None:
        """End one fault."""
        with self._lock:
            self._rules.pop(number, None)
            self.generation += 1

    def clear(self) -> None:
        """End all faults; connections that are held in silence are closed."""
        with self._lock:
            self._rules.clear()
            self.generation += 1

    def hits(self) -> dict[int, int]:
        """Return number → how many requests it has hit."""
        with self._lock:
            return {number: rule.hits for number, rule in self._rules.items()}

    def plan(self, call: Call, access_key_id: str) -> Plan:
        """Return what happens to a request, and count it."""
        delay, acting = 0.0, None
        with self._lock:
            for rule in self._rules.values():
                if not rule.fault.matches(call, access_key_id) or (acting and rule.fault.kind != "delay"):
                    continue
                before, rule.met = rule.hits, rule.met + 1
                if rule.hits == before:
                    continue
                if rule.fault.kind == "delay":
                    delay += rule.fault.seconds
                else:
                    acting = rule.fault
        return Plan(delay, acting)


def fault_of_json(sent: Mapping[str, Any]) -> Fault:
    """Return the fault that was sent as JSON, which has lists instead of tuples."""
    return Fault(**{name: tuple(value) if isinstance(value, list) else value for name, value in sent.items()})
