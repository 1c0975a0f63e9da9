"""Waiting for a condition, with a deadline that a slow machine keeps, too.

The suite runs several processes on two cores, and the machines of continuous integration are slower than most. A longer
deadline costs nothing where the condition comes true, so each is stretched.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

STRETCH = 3
"""How much longer than on a quiet machine something may take."""

HANGS_SECONDS = 600.0
"""A call that has not returned by then hangs. Less than pytest's own limit, which ends the test without its traces."""

T = TypeVar("T")


def wait_until(condition: Callable[[], T], deadline_seconds: float, what: str, poll_seconds: float = 0.1) -> T:
    """Return the first truthy answer of the condition; fail when there is none within three times the deadline."""
    end = time.monotonic() + STRETCH * deadline_seconds
    while not (answer := condition()):
        assert time.monotonic() < end, f"waited {STRETCH * deadline_seconds:g} s for {what}, in vain"
        time.sleep(poll_seconds)
    return answer
