"""Requests to a registry, several at once, until a deadline."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

_Asked = TypeVar("_Asked")
_Answer = TypeVar("_Answer")
AT_ONCE = 8
"""Requests under way: a subject may have hundreds of versions, and a registry take its time for each."""


@dataclass(frozen=True)
class Deadline:
    """For all requests together.

    Attributes:
        seconds: That there were at its beginning.
        ends: By the monotonic clock.
    """

    seconds: float
    ends: float

    @classmethod
    def within(cls, seconds: float) -> Deadline:
        """Return one that begins now."""
        return cls(seconds, clock() + seconds)

    def part(self, seconds: float) -> Deadline:
        """Return one that begins now, and is not later than this one."""
        return Deadline(seconds, min(self.ends, clock() + seconds))


def clock() -> float:
    """Return the time of deadlines, in seconds."""
    return time.monotonic()


def all_at_once(ask: Callable[[_Asked], _Answer], what: Sequence[_Asked], deadline: Deadline) -> list[_Answer]:
    """Return what a function that asks a registry returns for each of many values.

    Requests that are under way at the deadline end by their own limit of time, and the function goes on with their answers.

    Args:
        ask: Asks for one.
        what: In this order.
        deadline: Of all.

    Raises:
        TimeoutError: Not all were answered by then.
        Exception: The first that ``ask`` raises.
    """
    if not what:
        return []
    pool = ThreadPoolExecutor(min(AT_ONCE, len(what)), thread_name_prefix="schema-versions")
    try:
        return list(pool.map(ask, what, timeout=deadline.ends - clock()))
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
